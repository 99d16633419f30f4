// Package offline is a provider without a model, a key or a network: a small deterministic planner for trying out,
// tests and demos. It calls real tools, and never claims to be a model.
//
// A prompt in which a line starts with one of these words is a script. Lines that follow each other come in one
// answer; a blank line starts the next answer, which comes after the results of the calls before it.
//
//	call TOOL {json}        call a tool; TOOL may be a part of a name that only one tool has, {json} may be left out
//	parallel N TOOL {json}  the same call N times in one answer
//	say TEXT                answer TEXT
//	think TEXT              a thought
//	slow N TEXT             answer TEXT word by word, N words in all, with a short wait after each
//	wait                    answer nothing until the request is cancelled
//	retry TEXT              announce a retry, which voids what this answer streamed so far
//	fail TEXT               fail with TEXT
//
// For an MCP tool {json} is its arguments, for a built-in its own fields; an intent is added where it is missing.
// JSON that is not valid goes to the tool as a model's would. A script that ends with calls is followed by an answer
// that repeats their results.
//
// Every other prompt is taken as natural language: the tool whose name and description share most words with it is
// called once, its required arguments filled from quoted texts, numbers, paths and key=value pairs of the prompt, and
// the answer repeats the result. When no tool fits, the answer says so and lists what can be called.
package offline

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

const (
	// Name is the provider's name.
	Name = "offline"
	// intent is what the planner gives as its reason.
	intent = "the offline planner was asked for this by the prompt"
	// slowWait is between two words of a slow answer: long enough to be interrupted, short enough for tests.
	slowWait = 20 * time.Millisecond
	// maxDeltas is about how many pieces one text is streamed in.
	maxDeltas = 64
	// maxListed is how many tools an answer lists.
	maxListed = 40
	// maxRepeat bounds the numbers in a script.
	maxRepeat = 10_000
)

// Provider implements provider.Provider.
type Provider struct{}

// New makes the planner. It has no state.
func New() *Provider { return &Provider{} }

// Name returns "offline".
func (*Provider) Name() string { return Name }

// Stream implements provider.Provider. It never retries by itself.
func (*Provider) Stream(ctx context.Context, r provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		a := &answer{ctx: ctx, yield: yield, turn: len(r.Messages)}
		a.usage.Input = words(r.System)
		for _, m := range r.Messages {
			for _, b := range m.Blocks {
				a.usage.Input += words(b.Text)
				for _, c := range b.Content {
					a.usage.Input += words(c.Text)
				}
			}
		}
		plan(a, r)
		a.finish()
	}
}

// plan decides what this answer of the turn is.
func plan(a *answer, r provider.Request) {
	prompt, step, results := turn(r.Messages)
	answers := parse(prompt)
	if len(answers) == 0 {
		if step > 0 {
			a.say(report(results))
			return
		}
		improvise(a, prompt, r.Tools)
		return
	}
	if step >= len(answers) {
		a.say(report(results))
		return
	}
	for _, d := range answers[step] {
		if !a.ended {
			a.follow(d, r.Tools)
		}
	}
}

// result is one answered call.
type result struct {
	name, text string
	failed     bool
}

// turn finds the latest prompt, how many answers were given to it, and the results of the latest calls.
func turn(messages []provider.Message) (prompt string, step int, results []result) {
	start := -1
	for i := len(messages) - 1; i >= 0 && start < 0; i-- {
		var texts []string
		for _, b := range messages[i].Blocks {
			if messages[i].Role == provider.User && b.Kind == provider.Text {
				texts = append(texts, b.Text)
			}
		}
		if len(texts) > 0 {
			start, prompt = i, strings.Join(texts, "\n")
		}
	}
	names := map[string]string{}
	for _, m := range messages[start+1:] {
		if m.Role == provider.Assistant {
			step++
			results = nil
		}
		for _, b := range m.Blocks {
			switch b.Kind {
			case provider.ToolCall:
				names[b.CallID] = b.Name
			case provider.ToolResult:
				results = append(results, result{name: names[b.CallID], text: content(b.Content), failed: b.IsError})
			}
		}
	}
	return prompt, step, results
}

func content(parts []tool.Content) string {
	var texts []string
	for _, c := range parts {
		if c.Text != "" {
			texts = append(texts, c.Text)
		} else if len(c.Data) > 0 {
			texts = append(texts, fmt.Sprintf("[%s %s, %d bytes]", c.Kind, c.MIME, len(c.Data)))
		}
	}
	if len(texts) == 0 {
		return provider.NoOutput
	}
	return strings.Join(texts, "\n")
}

func report(results []result) string {
	if len(results) == 0 {
		return "The offline planner has nothing more to do."
	}
	var lines []string
	for _, r := range results {
		verb := "answered"
		if r.failed {
			verb = "failed"
		}
		lines = append(lines, fmt.Sprintf("The offline planner called %s, which %s: %s", r.name, verb, r.text))
	}
	return strings.Join(lines, "\n")
}

func words(s string) int { return len(strings.Fields(s)) }

// answer is one answer being streamed.
type answer struct {
	ctx   context.Context
	yield func(provider.Event, error) bool
	turn  int
	usage provider.Usage
	calls int
	ended bool // nobody listens any more, or an error was the last pair
}

func (a *answer) send(e provider.Event) {
	if a.ended {
		return
	}
	if a.ctx.Err() != nil {
		a.fail(&provider.Error{Provider: Name, Message: "the request was cancelled", Cause: a.ctx.Err()})
		return
	}
	a.ended = !a.yield(e, nil)
}

func (a *answer) fail(err error) {
	if !a.ended {
		a.ended = true
		a.yield(provider.Event{}, err)
	}
}

func (a *answer) finish() {
	stop := provider.EndTurn
	if a.calls > 0 {
		stop = provider.ToolUse
	}
	a.send(provider.Event{Kind: provider.Done, Stop: stop, Usage: a.usage})
	a.ended = true
}

// say streams a text in several pieces.
func (a *answer) say(text string) { a.stream(provider.TextDelta, provider.Text, pieces(text), 0) }

func (a *answer) stream(delta provider.EventKind, kind provider.Kind, parts []string, wait time.Duration) {
	for _, p := range parts {
		if a.ended {
			return
		}
		a.usage.Output += words(p)
		a.send(provider.Event{Kind: delta, Text: p})
		if wait > 0 && !a.ended {
			a.pause(wait)
		}
	}
	if text := strings.Join(parts, ""); text != "" {
		b := provider.Block{Kind: kind, Text: text}
		if kind == provider.Thinking {
			b.Origin = Name
		}
		a.send(provider.Event{Kind: provider.BlockDone, Block: b})
	}
}

func (a *answer) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-a.ctx.Done():
	case <-t.C:
	}
}

// pieces cuts a text behind white space into at most about maxDeltas pieces.
func pieces(text string) []string {
	var out []string
	size, from := len(text)/maxDeltas, 0
	for i := 0; i < len(text); i++ {
		if (text[i] == ' ' || text[i] == '\n') && i+1-from > size {
			out = append(out, text[from:i+1])
			from = i + 1
		}
	}
	if from < len(text) {
		out = append(out, text[from:])
	}
	return out
}
