// Package hook runs configured commands before and after a tool call with one bounded JSON document on stdin. A hook
// can block a call, never rewrite it.
package hook

import (
	"context"
	_ "embed" // for PayloadSchema
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/permission"
	"magi-code/internal/untrusted"
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
	Tools   []string      // tool name patterns; empty: all
	Command []string      // argv, no shell
	Timeout time.Duration // 0: 10 s; at most 60 s
	Block   bool          // what a failure of the hook itself means: true blocks the call, false warns
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
	IsError bool           `json:"isError,omitzero"`
}

// PayloadSchema is the JSON Schema of the document that a hook reads.
//
//go:embed payload.schema.json
var PayloadSchema string

const (
	defaultTimeout = 10 * time.Second
	maxTimeout     = 60 * time.Second // a call waits for its hooks
	maxResult      = 64 << 10         // bytes of the result in a document
	maxDocument    = 4 << 20          // bytes of a document: an input has at most 1 MiB, which JSON can make longer
	maxOutput      = 64 << 10         // bytes read of each of stdout and stderr; the rest is thrown away
	maxReason      = 2 << 10          // bytes of a refusal or warning
	refuse         = 2                // exit code
)

// Runner runs hooks; the zero Runner and the nil one have none. It may be used by several goroutines at once.
type Runner struct {
	hooks []Hook
	dir   string
	env   []string
}

// NewRunner makes a runner; dir is the folder in which hooks run, env is the environment of hook commands.
func NewRunner(hooks []Hook, dir string, env []string) *Runner {
	r := &Runner{dir: dir, env: append([]string{}, env...)} // never nil, which would stand for everything we have
	for _, h := range hooks {
		h.Tools = slices.Clone(h.Tools)
		h.Command = slices.Clone(h.Command)
		r.hooks = append(r.hooks, h)
	}
	return r
}

// Run runs every matching hook of p.Event, one after the other, until one refuses. It returns warnings for people and,
// for before_tool, the refusal: "" lets the call go on; otherwise the hook's name and reason (sanitized, bounded), to be
// put behind words such as "refused by a hook: ".
//
// A hook refuses by exit code 2 with the reason on stderr, or by exit code 0 and {"decision":"block","reason":"..."} on
// stdout. Any other exit code, a timeout, a malformed or unknown decision, and a command that cannot be started are
// failures of the hook: its Block field says whether they refuse the call or only warn. A hook that is still under way
// when ctx ends refuses. Hooks after a tool cannot refuse: what would be a refusal is a warning. When a hook ends, the
// processes that it left behind end with it.
func (r *Runner) Run(ctx context.Context, p Payload) (warnings []string, refusal string) {
	if r == nil {
		return nil, ""
	}
	var document []byte
	for _, h := range r.hooks {
		if h.Event != p.Event || !matches(h.Tools, p.Tool) {
			continue
		}
		v := verdict{}
		var err error
		if document == nil {
			document, err = encode(p)
		}
		if err != nil {
			v.failure = err.Error()
		} else {
			v = r.judge(ctx, h, document)
		}
		switch text := v.text(h); {
		case text == "":
		case p.Event == BeforeTool && (v.refused || v.interrupted || h.Block):
			return warnings, text
		default:
			warnings = append(warnings, "hook "+text)
		}
	}
	return warnings, ""
}

func matches(patterns []string, name string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if permission.Match(p, name) {
			return true
		}
	}
	return false
}

// encode writes the document of a call. What the model wrote is kept as it is; only invalid UTF-8 is replaced.
func encode(p Payload) ([]byte, error) {
	p.Result, _ = untrusted.Cut(p.Result, maxResult)
	document, err := json.Marshal(p, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return nil, errors.New("the call cannot be written as JSON")
	}
	if len(document) > maxDocument {
		return nil, fmt.Errorf("the call has more than %d bytes", maxDocument)
	}
	return append(document, '\n'), nil
}
