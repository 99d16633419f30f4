package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

// scripted is a provider whose answers are made by a func of the request; children are told from the main run by isChild.
type scripted struct {
	answer func(ctx context.Context, q provider.Request) []provider.Event

	mu       sync.Mutex
	requests []provider.Request
}

func (m *scripted) Name() string { return "scripted" }

func (m *scripted) Stream(ctx context.Context, q provider.Request) iter.Seq2[provider.Event, error] {
	m.mu.Lock()
	m.requests = append(m.requests, q)
	m.mu.Unlock()
	return func(yield func(provider.Event, error) bool) {
		events := m.answer(ctx, q)
		if events == nil {
			yield(provider.Event{}, fmt.Errorf("the model has no answer"))
			return
		}
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// seen are the requests so far; last the newest of the main run.
func (m *scripted) seen() []provider.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

func isChild(q provider.Request) bool { return strings.Contains(q.System, "You work as a subagent") }

// steps answers the main run's requests with one step after the other.
func steps(all ...[]provider.Event) *scripted {
	n := 0
	return &scripted{answer: func(context.Context, provider.Request) []provider.Event {
		if n >= len(all) {
			return nil
		}
		n++
		return all[n-1]
	}}
}

// says is an answer of one text.
func says(text string) []provider.Event {
	return []provider.Event{
		{Kind: provider.TextDelta, Text: text},
		{Kind: provider.BlockDone, Block: provider.Block{Kind: provider.Text, Text: text}},
		{Kind: provider.Done, Stop: provider.EndTurn},
	}
}

// calls is an answer of tool calls: pairs of name and input.
func calls(pairs ...string) (events []provider.Event) {
	for i := 0; i < len(pairs); i += 2 {
		events = append(events, provider.Event{Kind: provider.BlockDone, Block: provider.Block{
			Kind: provider.ToolCall, CallID: fmt.Sprintf("c%d", i/2+1), Name: pairs[i], Input: jsontext.Value(pairs[i+1]),
		}})
	}
	return append(events, provider.Event{Kind: provider.Done, Stop: provider.ToolUse})
}

// with is the input of an MCP call.
func with(arguments string) string {
	return `{"intent":"show that it works","arguments":` + arguments + `}`
}

// scriptInput is the input of a code_mode call.
func scriptInput(code string) string {
	b, _ := json.Marshal(map[string]string{"intent": "do it all at once", "code": code}) // strings always encode
	return string(b)
}

// answers are the texts of the tool results in the last message of a request, in order.
func answers(q provider.Request) (out []string) {
	for _, b := range q.Messages[len(q.Messages)-1].Blocks {
		if b.Kind == provider.ToolResult {
			text := ""
			for _, c := range b.Content {
				text += c.Text
			}
			out = append(out, text)
		}
	}
	return out
}

// offered are those of the advertised tools.
func offered(q provider.Request) (out []string) {
	for _, t := range q.Tools {
		out = append(out, t.Name)
	}
	return out
}

// advertised finds a tool of a request.
func advertised(q provider.Request, name string) (tool.Tool, bool) {
	i := slices.IndexFunc(q.Tools, func(t tool.Tool) bool { return t.Name == name })
	if i < 0 {
		return tool.Tool{}, false
	}
	return q.Tools[i], true
}

// wantParts reports what is not in text.
func wantParts(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in %q", p, text)
		}
	}
}
