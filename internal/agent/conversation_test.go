package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

// TestTurn runs the whole way of one turn: question of the model, two calls at once, answer. // R-G2 R-N3
func TestTurn(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	meet := func(ctx context.Context, c tool.Call) (tool.Result, error) {
		both.Done()
		both.Wait() // ends only when the two calls overlap
		return tool.TextResult(c.Name + " " + string(c.Arguments)), nil
	}
	m := steps(
		calls("b", `{"intent":"see b","x":1}`, "a", `{"intent":"see a"}`),
		says("all seen"),
	)
	conv, l := converse(t, Config{Provider: m, Model: "m1", Dir: t.TempDir(), Tools: offering(t, reader("a", meet), reader("b", meet))})
	turn := send(t, conv, "look")
	if turn.Text != "all seen" || turn.Stop != StopDone || turn.Usage != (provider.Usage{Input: 20, Output: 3}) {
		t.Errorf("turn = %+v", turn)
	}
	got := m.seen()[1].Messages
	if len(got) != 3 || got[2].Role != provider.User || got[2].Blocks[0].CallID != "c1" || got[2].Blocks[1].CallID != "c2" {
		t.Fatalf("results are not in the order of the calls: %+v", got)
	}
	if text := got[2].Blocks[0].Content[0].Text; text != `b {"x":1}` {
		t.Errorf("result = %q", text)
	}
	if n := len(l.of(EventCall)); n != 2 {
		t.Errorf("%d calls told", n)
	}
	for _, e := range l.of(EventResult) {
		if e.Call.Intent == "" || e.IsError || e.Text == "" {
			t.Errorf("result event = %+v", e)
		}
	}
	if kinds := l.kinds(); !strings.HasPrefix(kinds, "turn_start ") || !strings.HasSuffix(kinds, " text answer usage turn_end") {
		t.Errorf("events: %s", kinds)
	}
	if n := len(conv.Messages()); n != 4 {
		t.Errorf("history has %d messages", n)
	}
}

// TestAdvertised shows what a request holds and that its key changes exactly with it. // R-L4 R-L5 R-G3 R-G4
func TestAdvertised(t *testing.T) {
	dir := t.TempDir()
	base := Config{Model: "m1", Dir: dir}
	tools := []tool.Tool{reader("a", echo), server("s", "x", echo), server("s", "y", echo)}
	request := func(c Config, prompts ...string) provider.Request {
		t.Helper()
		m := &model{answer: func(context.Context, provider.Request, int) ([]provider.Event, error) { return says("ok"), nil }}
		c.Provider = m
		conv, _ := converse(t, c)
		for _, p := range append(prompts, "last") {
			send(t, conv, p)
		}
		return m.seen()[len(prompts)]
	}
	names := func(q provider.Request) string {
		var out []string
		for _, one := range q.Tools {
			out = append(out, one.Name)
		}
		return strings.Join(out, " ")
	}
	base.Tools = offering(t, tools...)
	first := request(base)
	if got := names(first); got != "a code_mode mcp__s__x mcp__s__y subagents" {
		t.Errorf("advertised: %s", got)
	}
	if again := request(base, "one", "two"); again.CacheKey != first.CacheKey || again.System != first.System {
		t.Error("the key or the system prompt changed although nothing did")
	}
	changed := base
	changed.Tools = offering(t, tools[:2]...)
	denied := base
	denied.Gate = NewGate(permission.Rules{Deny: []string{"mcp__s__*"}}, nil)
	excluded := base
	excluded.ExcludeDirect = []string{"mcp__*"}
	scripts := base
	scripts.ExcludeCodeMode = []string{"*"}
	other := base
	other.Model = "m2"
	for name, c := range map[string]struct {
		config Config
		names  string
	}{
		"a tool less":   {changed, "a code_mode mcp__s__x subagents"},
		"denied":        {denied, "a code_mode subagents"},
		"excluded":      {excluded, "a code_mode subagents"},
		"another model": {other, "a code_mode mcp__s__x mcp__s__y subagents"},
	} {
		q := request(c.config)
		if got := names(q); got != c.names {
			t.Errorf("%s: advertised %s", name, got)
		}
		if q.CacheKey == first.CacheKey {
			t.Errorf("%s: the key did not change", name)
		}
	}
	if q := request(scripts); names(q) != names(first) {
		t.Error("the exclusion for scripts changed what is advertised directly")
	}
	hidden := request(excluded)
	if d := hidden.Tools[1].Description; !strings.Contains(d, "\n- mcp__s__x: Does x.\n- mcp__s__y: Does y.") {
		t.Errorf("code_mode does not list the hidden tools: %s", d)
	}
	if strings.Contains(request(denied).Tools[1].Description, "mcp__s") {
		t.Error("code_mode lists a denied tool")
	}
}

// TestBadCalls: whatever a model asks for, it gets a sentence and the turn goes on. // R-L3 R-N3
func TestBadCalls(t *testing.T) {
	panics := func(context.Context, tool.Call) (tool.Result, error) { panic("boom") }
	fails := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("no luck") }
	cases := []struct{ name, input, want string }{
		{"raed", `{"intent":"x"}`, `there is no tool named "raed"; close names: read`},
		{"x", `{"intent":"x","arguments":{}}`, `close names: mcp__s__x`},
		{"nothing_like_it_at_all", `{}`, `there is no tool named "nothing_like_it_at_all"`},
		{"bad \x1b[31m name", `{}`, `there is no tool named`},
		{"read", `{}`, `intent`},
		{"read", `{"intent":"  "}`, `intent`},
		{"read", `"{broken"`, `object`},
		{"mcp__s__x", `{"intent":"x","arguments":[]}`, `arguments`},
		{"mcp__s__x", `{"intent":"x","arguments":{},"more":1}`, `more`},
		{"panics", `{"intent":"x"}`, `failed inside magi-code: boom`},
		{"fails", `{"intent":"x"}`, `no luck`},
		{"subagents", `{"intent":"x","tasks":[]}`, `1 to 10 tasks`},
		{"subagents", `{"intent":"x","tasks":[{"prompt":"p","who":1}]}`, `does not fit the schema: there is no field "tasks/0/who"`},
		{"subagents", `{"intent":"x","tasks":"p"}`, `does not fit the schema: "tasks" must be a list`},
		{"subagents", `{"intent":"x","tasks":["p"]}`, `does not fit the schema: "tasks/0" must be an object`},
		{"subagents", `{"intent":"x","tasks":[{"prompt":1}]}`, `does not fit the schema: "tasks/0/prompt" must be a string`},
		{"subagents", `{"intent":"x","tasks":[{"prompt":"p","mode":"all"}]}`, `mode must be`},
		{"subagents", `{"intent":"x","tasks":[{"prompt":" "}]}`, `prompt is missing`},
		{"subagents", `{"intent":"x","tasks":[{"prompt":"p","profile":"none"}]}`, `there is no profile "none"`},
		{"code_mode", `{"intent":"x"}`, `code is missing`},
		{"code_mode", `{"intent":"x","code":"return 1","lang":"ts"}`, `does not fit the schema: there is no field "lang"`},
		{"code_mode", `{"intent":"x","code":1}`, `does not fit the schema: "code" must be a string`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := steps(calls(c.name, c.input), says("ok"))
			conv, l := converse(t, Config{
				Provider: m, Gate: NewGate(permission.Rules{Allow: []string{"*"}}, nil),
				Tools: offering(t, reader("read", echo), reader("panics", panics), reader("fails", fails), server("s", "x", echo)),
			})
			if turn := send(t, conv, "go"); turn.Stop != StopDone {
				t.Fatalf("stop = %s", turn.Stop)
			}
			r := results(m.seen()[1])["c1"]
			if !r.IsError || !strings.Contains(r.Content[0].Text, c.want) {
				t.Errorf("result = %v %+v", r.IsError, r.Content)
			}
			if strings.Contains(r.Content[0].Text, "\x1b") {
				t.Errorf("a control character came back: %q", r.Content[0].Text)
			}
			if n := len(l.of(EventCall, EventResult)); n != 2 {
				t.Errorf("%d events of the call", n)
			}
		})
	}
}

// TestTwinIDs: a provider that repeats or omits ids does not make a history that nobody accepts.
func TestTwinIDs(t *testing.T) {
	call := func(id string) provider.Event {
		return provider.Event{Kind: provider.BlockDone, Block: provider.Block{Kind: provider.ToolCall, CallID: id, Name: "a b", Input: jsontext.Value(`{}`)}}
	}
	done := provider.Event{Kind: provider.Done, Stop: provider.ToolUse}
	m := steps([]provider.Event{call("x"), call("x"), call(""), done}, []provider.Event{call("x"), done}, says("ok"))
	conv, _ := converse(t, Config{Provider: m})
	send(t, conv, "go")
	seen := map[string]bool{}
	for _, msg := range conv.Messages() {
		for _, b := range msg.Blocks {
			if b.Kind == provider.ToolCall {
				if b.CallID == "" || seen[b.CallID] || b.Name != "a_b" {
					t.Errorf("block %+v", b)
				}
				seen[b.CallID] = true
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("ids %v", seen)
	}
}

// TestStops: each way in which a turn can end.
func TestStops(t *testing.T) {
	boom := &provider.Error{Provider: "scripted", Message: "no", Hint: "do this"}
	end := func(s provider.Stop) []provider.Event { return []provider.Event{{Kind: provider.Done, Stop: s}} }
	forever := func(context.Context, provider.Request, int) ([]provider.Event, error) {
		return calls("read", `{"intent":"x"}`), nil
	}
	cases := map[string]struct {
		m    *model
		stop StopReason
		err  error
	}{
		"max tokens": {steps(end(provider.MaxTokens)), StopMaxTokens, nil},
		"refusal":    {steps(end(provider.Refusal)), StopRefusal, nil},
		"empty":      {steps(end(provider.EndTurn)), StopDone, nil},
		"max turns":  {&model{answer: forever}, StopMaxTurns, nil},
		"no end":     {steps(nil), StopFailed, errNoEnd},
		"failed": {&model{answer: func(context.Context, provider.Request, int) ([]provider.Event, error) {
			return says("half")[:1], boom
		}}, StopFailed, boom},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			conv, l := converse(t, Config{Provider: c.m, MaxTurns: 3, Tools: offering(t, reader("read", echo))})
			turn, err := conv.Send(t.Context(), prompt("go"))
			if turn.Stop != c.stop || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("stop = %s, err = %v", turn.Stop, err)
			}
			last := l.all()[len(l.all())-1]
			if last.Kind != EventTurnEnd || last.Stop != c.stop || (last.Err != "") != (c.err != nil) {
				t.Errorf("last event %+v", last)
			}
			if name == "failed" && last.Hint != "do this" {
				t.Errorf("hint %q", last.Hint)
			}
			c.m.answer = func(context.Context, provider.Request, int) ([]provider.Event, error) { return says("again"), nil }
			if turn := send(t, conv, "more"); turn.Text != "again" {
				t.Errorf("the next turn: %+v", turn)
			}
		})
	}
	conv, _ := converse(t, Config{Provider: steps()})
	if _, err := conv.Send(t.Context(), prompt("")); err == nil {
		t.Error("an empty prompt was sent")
	}
}

// TestRetryIsVoid: what was streamed before a retry is not part of the answer.
func TestRetryIsVoid(t *testing.T) {
	m := steps(append([]provider.Event{
		{Kind: provider.TextDelta, Text: "wrong"},
		{Kind: provider.BlockDone, Block: provider.Block{Kind: provider.ToolCall, CallID: "c9", Name: "read", Input: jsontext.Value(`{}`)}},
		{Kind: provider.Retrying, Text: "overloaded; again in 1s"},
	}, says("right")...))
	conv, l := converse(t, Config{Provider: m})
	if turn := send(t, conv, "go"); turn.Text != "right" {
		t.Errorf("turn = %+v", turn)
	}
	if kinds := l.kinds(); kinds != "turn_start text retry text answer usage turn_end" {
		t.Errorf("events: %s", kinds)
	}
}

// TestSessionSteps: each step is on disk before the next one begins, and the session resumes. // R-G8 R-N3
func TestSessionSteps(t *testing.T) {
	store, s := newSession(t)
	var kinds []string
	m := steps(calls("read", `{"intent":"why","path":"x"}`), says("done"))
	conv, _ := converse(t, Config{
		Provider: m, Model: "m1", Session: s,
		Tools: func(ctx context.Context) (tool.Set, []string, error) {
			set, err := tool.NewSet(reader("read", fixed("content")))
			return set, []string{`tools of "s" changed: added y`}, err
		},
	})
	send(t, conv, "go")
	if err := conv.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries := stored(t, store, s.ID())
	for _, e := range entries {
		kinds = append(kinds, string(e.Kind))
	}
	if got := strings.Join(kinds, " "); got != "session note message usage message call result message usage message" {
		t.Errorf("entries: %s", got)
	}
	for _, e := range entries {
		if e.Kind == session.Call && string(e.Input) != `{"intent":"why","path":"x"}` {
			t.Errorf("call: %s", e.Input)
		}
	}
	again, err := store.Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	m2 := steps(calls("read", `{"intent":"why"}`), says("hello again"))
	resumed, _ := converse(t, Config{Provider: m2, Session: again})
	send(t, resumed, "still there?")
	if n := len(m2.seen()[0].Messages); n != 5 {
		t.Errorf("the resumed conversation has %d messages", n)
	}
	if id := resumed.Messages()[5].Blocks[0].CallID; id == "c1" {
		t.Error("a call has the id of one before the resumption")
	}
}

// TestNotRecordedNotRun: when the disk fails, nothing runs that history would not know of.
func TestNotRecordedNotRun(t *testing.T) {
	_, s := newSession(t)
	ran := false
	m := &model{answer: func(_ context.Context, q provider.Request, n int) ([]provider.Event, error) {
		if n == 0 {
			if err := s.Close(); err != nil { // appending fails from now on
				t.Error(err)
			}
			return calls("read", `{"intent":"x"}`), nil
		}
		return says("ok"), nil
	}}
	l := &log{}
	conv := New(Config{Provider: m, Session: s, Emit: l.add, Tools: offering(t, reader("read", func(context.Context, tool.Call) (tool.Result, error) {
		ran = true
		return tool.TextResult(""), nil
	}))})
	for range 2 {
		turn, err := conv.Send(t.Context(), prompt("go"))
		if turn.Stop != StopFailed || err == nil || ran {
			t.Errorf("turn = %+v, %v, ran = %v", turn, err, ran)
		}
	}
	if n := len(m.seen()); n != 1 {
		t.Errorf("%d requests: a prompt was sent that is not recorded", n)
	}
}

// TestReservedNames: a client's tool cannot stand in for ours.
func TestReservedNames(t *testing.T) {
	m := steps(says("ok"))
	impostor := tool.Tool{Name: "code_mode", Origin: tool.Client, Schema: jsontext.Value(`{}`), Run: echo}
	conv, l := converse(t, Config{Provider: m, Tools: offering(t, impostor)})
	send(t, conv, "go")
	if n := l.of(EventNotice); len(n) != 1 || !strings.Contains(n[0].Text, "left out") {
		t.Errorf("notices %+v", n)
	}
	for _, one := range m.seen()[0].Tools {
		if one.Origin != tool.Builtin {
			t.Errorf("%s is of origin %s", one.Name, one.Origin)
		}
	}
}

// TestSetModel takes effect at the next turn.
func TestSetModel(t *testing.T) {
	first, second := steps(says("one")), steps(says("two"))
	conv, _ := converse(t, Config{Provider: first, Model: "m1"})
	send(t, conv, "a")
	conv.SetModel(second, "m2")
	if turn := send(t, conv, "b"); turn.Text != "two" || second.seen()[0].Model != "m2" {
		t.Errorf("turn = %+v", turn)
	}
}

// TestClosed: nothing runs in a closed conversation.
func TestClosed(t *testing.T) {
	conv := New(Config{Provider: steps(says("x"))})
	if err := errors.Join(conv.Close(t.Context()), conv.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := conv.Send(t.Context(), prompt("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("err = %v", err)
	}
}

// TestProjectFile is part of the system prompt, bounded, and read once.
func TestProjectFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, projectFile)
	if err := os.WriteFile(file, []byte(strings.Repeat("be kind\n", maxProjectFile/4)), 0o600); err != nil {
		t.Fatal(err)
	}
	m := steps(says("a"), says("b"))
	conv, l := converse(t, Config{Provider: m, Dir: dir})
	send(t, conv, "a")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	send(t, conv, "b")
	system := m.seen()[0].System
	if !strings.Contains(system, "be kind") || len(system) > maxProjectFile+4096 || m.seen()[1].System != system {
		t.Errorf("system prompt of %d bytes", len(system))
	}
	if len(l.of(EventNotice)) != 1 {
		t.Errorf("notices: %+v", l.of(EventNotice))
	}
}
