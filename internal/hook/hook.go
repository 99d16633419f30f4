// Package hook runs configured commands before and after a tool call with one bounded JSON document on stdin. A hook
// can block a call, never rewrite it.
package hook

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Event is when a hook runs.
type Event string

const (
	BeforeTool Event = "before_tool"
	AfterTool  Event = "after_tool"
)

// Hook is one configured command.
type Hook struct {
	Event   Event
	Tools   []string // tool name patterns; empty: all
	Command []string // argv, no shell
	Timeout time.Duration
	Block   bool // what a failure of the hook itself means: true blocks the call, false warns
}

// Payload is the document on a hook's stdin.
type Payload struct {
	Event   Event          `json:"event"`
	Session string         `json:"session,omitempty"`
	Dir     string         `json:"dir"`
	CallID  string         `json:"callId"`
	Tool    string         `json:"tool"`
	Server  string         `json:"server,omitempty"`
	Path    []string       `json:"path,omitempty"` // subagents, outermost first
	Input   jsontext.Value `json:"input"`          // the whole call
	Result  string         `json:"result,omitempty"`
	IsError bool           `json:"isError,omitempty"`
}

// Runner runs hooks; the zero Runner has none.
type Runner struct{}

// NewRunner makes a runner; env is the environment of hook commands.
func NewRunner(hooks []Hook, dir string, env []string) *Runner { return &Runner{} }

// Run runs every matching hook of p.Event in order. It returns warnings for people and, for before_tool, the
// refusal: "" lets the call go on; otherwise the sentence (sanitized, bounded) that the model gets.
// A hook refuses by exit code 2 with the reason on stderr, or by {"decision":"block","reason":"..."} on stdout.
func (r *Runner) Run(ctx context.Context, p Payload) (warnings []string, refusal string) {
	panic("to be built")
}
