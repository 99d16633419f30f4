package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

// toolGrace is how long running tools may take to end once their turn is interrupted. Transports and processes have
// shorter bounds of their own, so it passes only for a tool that ignores its context.
const toolGrace = 2 * time.Second

// maxTogether is how many calls of one answer run at once; the others wait. An answer can hold thousands, and each may be a
// process or walk through a tree of folders.
const maxTogether = 16

// turn is what the main run and its children share: one frozen catalog, one provider, one way out.
type turn struct {
	c        *Conversation
	out      *stream
	provider provider.Provider
	model    string
	system   string
	frozen   tool.Set
	// the exclusion lists, as they were when the turn began
	excludeDirect, excludeCodeMode []string
}

// run is one model at work in a turn: the main one, or a subagent.
type run struct {
	t       *turn
	path    []string // subagents, outermost first
	prefix  string   // put before the provider's call ids, so that they are unique in the session
	under   string   // the subagents call that started this run
	depth   int
	top     ceiling
	model   string
	system  string
	kit     kit
	history *history
	ids     map[string]bool // call ids in history
	keep    bool            // whether messages go to the session: those of the main run

	// One place for each child at work. Those of scripts have places of their own: a script that waited for one held by a child
	// which itself waits for an engine would wait in vain.
	children, scripted chan struct{}
}

// loop asks the model and runs its calls until it answers without one. The text is that of the last answer that had any.
func (r *run) loop(ctx context.Context) (text string, stop StopReason, err error) {
	key := r.cacheKey()
	tools := r.kit.direct.All()
	for range r.t.c.cfg.MaxTurns {
		if ctx.Err() != nil {
			return text, StopInterrupted, nil
		}
		a, err := r.ask(ctx, provider.Request{
			Model: r.model, System: r.system, Messages: repair(r.history.copy()), Tools: tools, CacheKey: key,
		})
		if a.text() != "" {
			text = a.text()
		}
		if ctx.Err() != nil {
			return text, StopInterrupted, r.keepPartial(a)
		}
		if err != nil {
			return text, StopFailed, err
		}
		calls := r.adopt(&a)
		if err := r.remember(provider.Message{Role: provider.Assistant, Blocks: a.blocks}); err != nil {
			return text, StopFailed, err
		}
		if len(calls) == 0 {
			return text, stopFor(a.stop), nil
		}
		results := r.callAll(ctx, calls)
		if err := r.remember(provider.Message{Role: provider.User, Blocks: results}); err != nil {
			return text, StopFailed, err
		}
	}
	if ctx.Err() != nil {
		return text, StopInterrupted, nil
	}
	return text, StopMaxTurns, nil
}

func stopFor(s provider.Stop) StopReason {
	switch s {
	case provider.MaxTokens:
		return StopMaxTokens
	case provider.Refusal:
		return StopRefusal
	default:
		return StopDone
	}
}

// cacheKey names the standing part of the run's requests: it changes exactly when what is advertised, the system prompt
// or the model changes.
func (r *run) cacheKey() string {
	h := sha256.New()
	for _, part := range []string{r.t.provider.Name(), r.model, r.system, r.kit.direct.Digest()} {
		fmt.Fprintf(h, "%d:", len(part))
		_, _ = io.WriteString(h, part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// remember writes a message to the session and only then to the history that the next request is made of.
func (r *run) remember(m provider.Message) error {
	m.Blocks = scrubBlocks(r.t.c.cfg.Scrub, m.Blocks)
	if len(m.Blocks) == 0 {
		return nil
	}
	if r.keep {
		e := session.Entry{Kind: session.Message, Message: &m}
		if m.Role == provider.Assistant {
			e.Model = r.model
		}
		if err := r.t.out.record(e); err != nil {
			return fmt.Errorf("record a message of the conversation: %w", err)
		}
	}
	r.history.add(m)
	return nil
}

// keepPartial remembers the text of an answer that was interrupted. Its calls did not run and its thoughts are not
// whole, so both are left out.
func (r *run) keepPartial(a answer) error {
	if a.text() == "" {
		return nil
	}
	return r.remember(provider.Message{Role: provider.Assistant, Blocks: []provider.Block{{Kind: provider.Text, Text: a.text()}}})
}

// pendingCall is a call of an answer that waits to be dispatched.
type pendingCall struct {
	id    string // as it stands in the history
	name  string
	input []byte
}

// adopt takes the calls of an answer and makes the blocks fit for history: every call has an id of its own and a name
// that providers take back, texts are not empty.
func (r *run) adopt(a *answer) []pendingCall {
	var calls []pendingCall
	blocks := a.blocks[:0]
	for _, b := range a.blocks {
		if isHollow(b) {
			continue
		}
		if b.Kind == provider.ToolCall {
			b.CallID = r.ownID(b.CallID)
			calls = append(calls, pendingCall{id: b.CallID, name: b.Name, input: b.Input})
			b.Name = safeName(b.Name)
			if len(b.Input) == 0 {
				b.Input = []byte("{}")
			}
		}
		blocks = append(blocks, b)
	}
	a.blocks = blocks
	return calls
}

// ownID returns id, or another one when it is empty or was used before: providers refuse a history with twins.
func (r *run) ownID(id string) string {
	for n := len(r.ids) + 1; id == "" || r.ids[id]; n++ {
		id = fmt.Sprintf("call_%d", n)
	}
	r.ids[id] = true
	return id
}

// safeName returns a name that every provider accepts in history.
func safeName(name string) string {
	clean := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			return c
		}
		return '_'
	}, name)
	if clean == "" {
		return "unnamed"
	}
	return clean[:min(len(clean), maxNameShown)]
}

// callAll runs the calls of one answer together and returns their results in the order of the calls. When ctx ends, it
// waits toolGrace and completes the rest as interrupted: a tool that ignores its context is left behind, and its
// conversation waits for it in Close.
func (r *run) callAll(ctx context.Context, calls []pendingCall) []provider.Block {
	type numbered struct {
		at     int
		result tool.Result
	}
	ended := make(chan numbered, len(calls))
	places := make(chan struct{}, maxTogether)
	var work sync.WaitGroup
	for i, call := range calls {
		work.Go(func() {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
			case <-ctx.Done(): // dispatch says so
			}
			ended <- numbered{i, r.dispatch(ctx, request{id: r.prefix + call.id, under: r.under, name: call.name, input: call.input})}
		})
	}
	blocks := make([]provider.Block, len(calls))
	for i, call := range calls {
		blocks[i] = interruptedResult(call.id)
	}
	var grace <-chan time.Time
	stopped := ctx.Done()
	for left := len(calls); left > 0; {
		select {
		case n := <-ended:
			blocks[n.at].Content, blocks[n.at].IsError = n.result.ForModel(r.t.c.cfg.ResultLimit), n.result.IsError
			left--
		case <-stopped:
			stopped = nil
			timer := time.NewTimer(toolGrace)
			defer timer.Stop()
			grace = timer.C
		case <-grace:
			r.t.c.leaveBehind(func(ctx context.Context) error {
				for range left {
					select {
					case <-ended:
					case <-ctx.Done():
						return fmt.Errorf("a tool ignores that it was interrupted: %w", context.Cause(ctx))
					}
				}
				work.Wait()
				return nil
			})
			return blocks
		}
	}
	work.Wait()
	return blocks
}
