package agent

import (
	"context"

	"magi-code/internal/hook"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

// Config are the parts of a conversation. Funcs may be called from the run's goroutines.
type Config struct {
	Provider provider.Provider
	Model    string
	Dir      string // working folder, for the system prompt
	// Tools returns what can be called, at the start of each user turn; notices are told to the user before it.
	Tools func(ctx context.Context) (set tool.Set, notices []string, err error)
	Gate  *Gate
	Ask   permission.Asker // nil: nobody can be asked
	// Preview returns the diff that a call would make, for the question; may be nil.
	Preview func(ctx context.Context, c tool.Call) string
	Hooks   *hook.Runner
	Session *session.Session // nil: nothing is kept
	// Exclusions are name patterns, independent of each other.
	ExcludeDirect, ExcludeCodeMode []string
	Profiles                       []Profile
	MaxTurns                       int // provider round trips of one turn
	ResultLimit                    int // text bytes of one result shown to the model
	Scrub                          *secret.Scrubber
	Emit                           func(Event) // called in order from one goroutine at a time; may block
}

// Profile is a subagent profile from $MC_HOME/subagents/NAME.md: front matter, then instructions.
type Profile struct {
	Name, Description, Instructions string
	Tools                           []string // name patterns that the child may use; empty: all of the parent's
	Model                           string
}

// Gate holds the permission rules of the process: those of settings and flags, and those granted for this session.
type Gate struct{}

// NewGate makes a gate; always, when not nil, is called to write a permanent allow rule.
func NewGate(rules permission.Rules, always func(ctx context.Context, pattern string) error) *Gate {
	return &Gate{}
}

// Conversation is what a user has with a model: one per session. One turn runs at a time.
type Conversation struct{}

// New makes a conversation; a resumed session's messages are its history.
func New(c Config) *Conversation { panic("to be built") }

// Turn is the outcome of one turn.
type Turn struct {
	Text  string // the final answer
	Stop  StopReason
	Usage provider.Usage
}

// Send runs one user turn and returns after its last event. Cancelling ctx interrupts it: running calls get a bounded
// time to end, history stays valid for the next turn. The error is nil for every Stop but StopFailed.
func (c *Conversation) Send(ctx context.Context, prompt []provider.Block) (Turn, error) {
	panic("to be built")
}

// SetModel changes provider and model from the next turn on.
func (c *Conversation) SetModel(p provider.Provider, model string) { panic("to be built") }

// Messages returns a copy of the history.
func (c *Conversation) Messages() []provider.Message { panic("to be built") }

// Close waits until no turn runs, up to ctx, and closes the session.
func (c *Conversation) Close(ctx context.Context) error { panic("to be built") }

// LoadProfiles reads dir/*.md. A malformed profile is left out with a warning.
func LoadProfiles(dir string) (profiles []Profile, warnings []string) { panic("to be built") }
