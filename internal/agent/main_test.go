package agent

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(hookEnv); file != "" {
		os.Exit(actAsHook(file))
	}
	goleak.VerifyTestMain(m)
}

// model is a provider whose answers are made by a func from the request and its number.
type model struct {
	answer func(ctx context.Context, q provider.Request, n int) ([]provider.Event, error)

	mu       sync.Mutex
	requests []provider.Request
}

func (m *model) Name() string { return "scripted" }

func (m *model) Stream(ctx context.Context, q provider.Request) iter.Seq2[provider.Event, error] {
	m.mu.Lock()
	n := len(m.requests)
	m.requests = append(m.requests, q)
	m.mu.Unlock()
	return func(yield func(provider.Event, error) bool) {
		events, err := m.answer(ctx, q, n)
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(provider.Event{}, err)
		}
	}
}

func (m *model) seen() []provider.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// steps answers the nth request with the nth list of events.
func steps(answers ...[]provider.Event) *model {
	return &model{answer: func(_ context.Context, _ provider.Request, n int) ([]provider.Event, error) {
		if n >= len(answers) {
			return nil, fmt.Errorf("the script has no answer %d", n)
		}
		return answers[n], nil
	}}
}

// says is an answer of one text.
func says(text string) []provider.Event {
	return []provider.Event{
		{Kind: provider.TextDelta, Text: text},
		{Kind: provider.BlockDone, Block: provider.Block{Kind: provider.Text, Text: text}},
		{Kind: provider.Done, Stop: provider.EndTurn, Usage: provider.Usage{Input: 10, Output: 1}},
	}
}

// calls is an answer that asks for tools: pairs of name and input, with ids c1, c2, ...
func calls(pairs ...string) []provider.Event {
	var events []provider.Event
	for i := 0; i < len(pairs); i += 2 {
		events = append(events, provider.Event{Kind: provider.BlockDone, Block: provider.Block{
			Kind: provider.ToolCall, CallID: fmt.Sprintf("c%d", i/2+1), Name: pairs[i], Input: jsontext.Value(pairs[i+1]),
		}})
	}
	return append(events, provider.Event{Kind: provider.Done, Stop: provider.ToolUse, Usage: provider.Usage{Input: 10, Output: 2}})
}

func prompt(text string) []provider.Block {
	return []provider.Block{{Kind: provider.Text, Text: text}}
}

// lastText is the text of the last message of a request: what the model was asked.
func lastText(q provider.Request) string {
	var out []string
	for _, b := range q.Messages[len(q.Messages)-1].Blocks {
		if b.Kind == provider.Text {
			out = append(out, b.Text)
		}
		for _, c := range b.Content {
			out = append(out, c.Text)
		}
	}
	return strings.Join(out, "\n")
}

// results are the tool results of the last message, by call id.
func results(q provider.Request) map[string]provider.Block {
	out := map[string]provider.Block{}
	for _, b := range q.Messages[len(q.Messages)-1].Blocks {
		if b.Kind == provider.ToolResult {
			out[b.CallID] = b
		}
	}
	return out
}

// reader is a built-in that only reads; its result is what run returns.
func reader(name string, run func(ctx context.Context, c tool.Call) (tool.Result, error)) tool.Tool {
	return tool.Tool{
		Name: name, Description: "Reads " + name + ". And more.", Origin: tool.Builtin, ReadOnly: true,
		Schema: jsontext.Value(`{"type":"object"}`), Run: run,
	}
}

// server is a tool of an MCP server.
func server(server, remote string, run func(ctx context.Context, c tool.Call) (tool.Result, error)) tool.Tool {
	return tool.Tool{
		Name: "mcp__" + server + "__" + remote, Description: "Does " + remote + ". And more.", Origin: tool.MCP, Server: server, Remote: remote,
		Schema: jsontext.Value(`{"type":"object"}`), Run: run,
	}
}

func fixed(text string) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult(text), nil }
}

// echo answers with its arguments.
func echo(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.TextResult(string(c.Arguments)), nil
}

func offering(t *testing.T, tools ...tool.Tool) func(context.Context) (tool.Set, []string, error) {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return func(context.Context) (tool.Set, []string, error) { return set, nil, nil }
}

// log collects events.
type log struct {
	mu     sync.Mutex
	events []Event
}

func (l *log) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *log) all() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// of returns the events of some kinds.
func (l *log) of(kinds ...EventKind) []Event {
	return slices.DeleteFunc(l.all(), func(e Event) bool { return !slices.Contains(kinds, e.Kind) })
}

func (l *log) kinds() string {
	var out []string
	for _, e := range l.all() {
		out = append(out, string(e.Kind))
	}
	return strings.Join(out, " ")
}

// converse makes a conversation whose events are collected, closed when the test ends.
func converse(t *testing.T, c Config) (*Conversation, *log) {
	t.Helper()
	l := &log{}
	if c.Emit == nil {
		c.Emit = l.add
	}
	conv := New(c)
	t.Cleanup(func() {
		if err := conv.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return conv, l
}

// send runs a turn that must not fail.
func send(t *testing.T, c *Conversation, text string) Turn {
	t.Helper()
	turn, err := c.Send(t.Context(), prompt(text))
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	return turn
}

// newSession makes a session in a folder of the test.
func newSession(t *testing.T) (*session.Store, *session.Session) {
	t.Helper()
	store := session.NewStore(t.TempDir())
	s, err := store.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store, s
}

// stored reads the entries of a session that was closed.
func stored(t *testing.T, store *session.Store, id string) []session.Entry {
	t.Helper()
	s, err := store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Entries()
}
