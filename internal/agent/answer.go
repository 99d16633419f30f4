package agent

import (
	"context"
	"errors"
	"strings"

	"magi-code/internal/provider"
)

// answer is one answer of a model, complete or as far as it came.
type answer struct {
	blocks []provider.Block
	begun  string // text of a block that did not end
	stop   provider.Stop
	usage  provider.Usage
}

// text is what the answer says, without thoughts.
func (a answer) text() string {
	var parts []string
	for _, b := range a.blocks {
		if b.Kind == provider.Text && b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	if a.begun != "" {
		parts = append(parts, a.begun)
	}
	return strings.Join(parts, "\n\n")
}

var errNoEnd = errors.New("the provider's answer ended without saying why")

// ask sends one request and passes its stream on as events. What came before an error or an interruption is returned.
func (r *run) ask(ctx context.Context, q provider.Request) (a answer, err error) {
	scrub := r.t.c.cfg.Scrub
	words, thoughts := wordScrubber{s: scrub}, wordScrubber{s: scrub}
	say := func(kind EventKind, text string) {
		if text != "" {
			r.emit(Event{Kind: kind, Text: text})
		}
	}
	done := false
	for e, err := range r.t.provider.Stream(ctx, q) {
		if err != nil {
			return a, err
		}
		switch e.Kind {
		case provider.TextDelta:
			a.begun += e.Text
			say(EventText, words.next(e.Text))
		case provider.ThinkingDelta:
			say(EventThinking, thoughts.next(e.Text))
		case provider.BlockDone:
			a.blocks = append(a.blocks, e.Block)
			say(EventThinking, thoughts.flush())
			say(EventText, words.flush())
			if e.Block.Kind == provider.Text {
				a.begun = ""
				say(EventAnswer, scrub.Text(e.Block.Text))
			}
		case provider.Retrying:
			a = answer{}
			words.held, thoughts.held = "", ""
			r.emit(Event{Kind: EventRetry, Text: scrub.Text(e.Text)})
		case provider.Done:
			done = true
			a.stop, a.usage = e.Stop, e.Usage
		}
		if done {
			break
		}
	}
	if !done {
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		return a, errNoEnd
	}
	a.begun = ""
	return a, r.spent(a.usage)
}

// spent accounts for one answer.
func (r *run) spent(u provider.Usage) error {
	r.t.out.spend(u)
	r.emit(Event{Kind: EventUsage, Usage: u})
	return r.t.out.recordUsage(u, r.model)
}

func (r *run) emit(e Event) {
	e.Path = r.path
	r.t.out.emit(e)
}
