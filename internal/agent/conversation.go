package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"magi-code/internal/codemode"
	"magi-code/internal/hook"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

const (
	// defaultMaxTurns is how many provider round trips one turn may have when the configuration does not say.
	defaultMaxTurns = 100
	// defaultResultLimit is how many bytes of one result a model gets when the configuration does not say.
	defaultResultLimit = 100 << 10
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
	// AlwaysAsk reports a call that a person must confirm each time, whatever the rules allow (it would touch a protected
	// file); may be nil.
	AlwaysAsk func(c tool.Call) bool
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

// Conversation is what a user has with a model: one per session. One turn runs at a time.
type Conversation struct {
	cfg     Config
	started time.Time
	history history
	ids     map[string]bool // call ids in history; used by the turn that runs
	asking  chan struct{}   // holds one: the question that stands
	running chan struct{}   // holds one: the turn that runs
	scripts codemode.Runner

	mu      sync.Mutex
	closed  bool
	left    []leftover // calls that outlived their turn
	project *string    // what the project's file says, read once
}

// ErrClosed is returned by Send after Close.
var ErrClosed = errors.New("the conversation is closed")

// New makes a conversation; a resumed session's messages are its history.
func New(c Config) *Conversation {
	if c.MaxTurns <= 0 {
		c.MaxTurns = defaultMaxTurns
	}
	if c.Gate == nil {
		c.Gate = NewGate(permission.Rules{}, nil)
	}
	if c.ResultLimit <= 0 {
		c.ResultLimit = defaultResultLimit
	}
	conv := &Conversation{
		cfg: c, started: time.Now(), ids: map[string]bool{},
		asking: make(chan struct{}, 1), running: make(chan struct{}, 1),
	}
	if c.Session != nil {
		conv.history.messages = session.Messages(c.Session.Entries())
	}
	for _, m := range conv.history.messages {
		for _, b := range m.Blocks {
			if b.Kind == provider.ToolCall {
				conv.ids[b.CallID] = true
			}
		}
	}
	return conv
}

// Turn is the outcome of one turn.
type Turn struct {
	Text  string // the final answer
	Stop  StopReason
	Usage provider.Usage // subagents included
}

// Send runs one user turn and returns after its last event. Cancelling ctx interrupts it: running calls get a bounded
// time to end, history stays valid for the next turn. The error is nil for every Stop but StopFailed. A Send while
// another one runs waits for it.
func (c *Conversation) Send(ctx context.Context, prompt []provider.Block) (Turn, error) {
	select {
	case c.running <- struct{}{}:
		defer func() { <-c.running }()
	case <-ctx.Done():
		return Turn{Stop: StopInterrupted}, nil
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return Turn{Stop: StopFailed}, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &turn{c: c, out: &stream{to: c.cfg.Emit, session: c.cfg.Session}}
	t.out.emit(Event{Kind: EventTurnStart, Text: c.cfg.Scrub.Text(textOf(prompt))})
	text, stop, err := t.run(ctx, prompt)
	outcome := Turn{Text: c.cfg.Scrub.Text(text), Stop: stop, Usage: t.out.spent()}
	last := Event{Kind: EventTurnEnd, Text: outcome.Text, Stop: stop, Usage: outcome.Usage}
	if err != nil {
		last.Stop, outcome.Stop = StopFailed, StopFailed
		last.IsError, last.Err, last.Hint = true, c.cfg.Scrub.Text(err.Error()), hintOf(err)
	}
	t.note(last)
	t.out.end(last)
	return outcome, err
}

// run prepares the turn and runs it. The prompt enters the history only when the turn can start.
func (t *turn) run(ctx context.Context, prompt []provider.Block) (string, StopReason, error) {
	c := t.c
	c.mu.Lock()
	t.provider, t.model = c.cfg.Provider, c.cfg.Model
	t.excludeDirect, t.excludeCodeMode = c.cfg.ExcludeDirect, c.cfg.ExcludeCodeMode
	c.mu.Unlock()
	if t.provider == nil {
		return "", StopFailed, errors.New("no provider is chosen")
	}
	if len(repair([]provider.Message{{Role: provider.User, Blocks: prompt}})) == 0 {
		return "", StopFailed, errors.New("the prompt is empty")
	}
	if err := t.prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return "", StopInterrupted, nil
		}
		return "", StopFailed, err
	}
	r := &run{t: t, model: t.model, system: t.system, history: &c.history, ids: c.ids, keep: true}
	if err := r.equip(); err != nil {
		return "", StopFailed, err
	}
	if err := r.remember(provider.Message{Role: provider.User, Blocks: prompt}); err != nil {
		return "", StopFailed, err
	}
	return r.loop(ctx)
}

// prepare freezes the catalog and makes the system prompt, and tells what there is to tell about them.
func (t *turn) prepare(ctx context.Context) error {
	var set tool.Set
	var notices []string
	if t.c.cfg.Tools != nil {
		var err error
		set, notices, err = t.c.cfg.Tools(ctx)
		t.tell(notices)
		if err != nil {
			return fmt.Errorf("prepare the tools: %w", err)
		}
	}
	notices, err := t.freeze(set)
	t.tell(notices)
	if err != nil {
		return fmt.Errorf("prepare the tools: %w", err)
	}
	project, notice := t.c.instructions()
	if notice != "" {
		t.tell([]string{notice})
	}
	t.system = t.c.cfg.Scrub.Text(systemPrompt(t.c.cfg.Dir, project, t.c.started))
	return nil
}

// tell emits notices and keeps them in the session.
func (t *turn) tell(notices []string) {
	for _, n := range notices {
		n = t.c.cfg.Scrub.Text(n)
		t.out.emit(Event{Kind: EventNotice, Text: n})
		t.keep(n)
	}
}

// note keeps in the session how a turn ended that did not end with an answer.
func (t *turn) note(last Event) {
	if last.Stop == StopDone {
		return
	}
	text := "turn ended: " + string(last.Stop)
	if last.Err != "" {
		text += ": " + last.Err
	}
	t.keep(text)
}

// keep writes a note to the session. A note that cannot be written is told, and ends nothing.
func (t *turn) keep(text string) {
	if err := t.out.record(session.Entry{Kind: session.Note, Text: text}); err != nil {
		t.out.emit(Event{Kind: EventNotice, Text: "a note could not be recorded: " + err.Error()})
	}
}

// instructions returns the project's instructions as they were at the first turn; later changes count for the next
// conversation, so that the system prompt stays the same. The notice comes once.
func (c *Conversation) instructions() (text, notice string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.project == nil {
		text, notice = projectInstructions(c.cfg.Dir)
		c.project = &text
	}
	return *c.project, notice
}

// SetModel changes provider and model from the next turn on.
func (c *Conversation) SetModel(p provider.Provider, model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Provider, c.cfg.Model = p, model
}

// SetExclusions changes the two exclusion lists from the next turn on.
func (c *Conversation) SetExclusions(direct, codeMode []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.ExcludeDirect, c.cfg.ExcludeCodeMode = slices.Clone(direct), slices.Clone(codeMode)
}

// Messages returns a copy of the history.
func (c *Conversation) Messages() []provider.Message { return c.history.copy() }

// leftover waits for calls that did not end in time.
type leftover func(ctx context.Context) error

func (c *Conversation) leaveBehind(l leftover) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = append(c.left, l)
}

// Close waits until no turn runs and no interrupted call is left, up to ctx, and closes the session.
func (c *Conversation) Close(ctx context.Context) error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil
	}
	err := c.settle(ctx)
	if c.cfg.Session != nil {
		err = errors.Join(err, c.cfg.Session.Close())
	}
	return err
}

func (c *Conversation) settle(ctx context.Context) error {
	select {
	case c.running <- struct{}{}:
		<-c.running
	case <-ctx.Done():
		return fmt.Errorf("a turn still runs: %w", context.Cause(ctx))
	}
	c.mu.Lock()
	left := c.left
	c.left = nil
	c.mu.Unlock()
	for _, wait := range left {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	return c.scripts.Close(ctx)
}

func textOf(blocks []provider.Block) string {
	var parts []string
	for _, b := range blocks {
		if b.Kind == provider.Text {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// hintOf returns the cure that an error carries.
func hintOf(err error) string {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return e.Hint
	}
	return ""
}
