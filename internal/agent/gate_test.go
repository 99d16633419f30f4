package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"magi-code/internal/permission"
	"magi-code/internal/tool"
)

// TestDefaultDecision: what no rule names. A server cannot make its tools harmless. // R-G3 S32
func TestDefaultDecision(t *testing.T) {
	claimed := server("s", "x", nil)
	claimed.ReadOnly = true
	for _, c := range []struct {
		t    tool.Tool
		want permission.Decision
	}{
		{reader("read", nil), permission.Allow},
		{tool.Tool{Name: "bash", Origin: tool.Builtin}, permission.Ask},
		{tool.Tool{Name: "code_mode", Origin: tool.Builtin}, permission.Allow},
		{tool.Tool{Name: "subagents", Origin: tool.Builtin}, permission.Allow},
		{tool.Tool{Name: "code_mode", Origin: tool.Client}, permission.Ask},
		{claimed, permission.Ask},
		{tool.Tool{Name: "editor", Origin: tool.Client, ReadOnly: true}, permission.Ask},
		{tool.Tool{Name: "of nowhere", ReadOnly: true}, permission.Ask},
	} {
		if got := NewGate(permission.Rules{}, nil).decide(c.t); got != c.want {
			t.Errorf("%s of %s: %d, want %d", c.t.Name, c.t.Origin, got, c.want)
		}
	}
}

// TestGrants: grants turn a question into a yes, never a no into one.
func TestGrants(t *testing.T) {
	g := NewGate(permission.Rules{Ask: []string{"a*"}, Deny: []string{"ad*"}}, nil)
	for _, name := range []string{"ab", "ad"} {
		g.Grant(name)
	}
	if got := g.Granted(); !slices.Equal(got, []string{"ab", "ad"}) {
		t.Errorf("granted: %v", got)
	}
	for name, want := range map[string]permission.Decision{"aa": permission.Ask, "ab": permission.Allow, "ad": permission.Deny} {
		if got := g.decide(tool.Tool{Name: name, Origin: tool.Builtin, ReadOnly: true}); got != want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestPermission: who may run and what the model hears if not. // R-G3
func TestPermission(t *testing.T) {
	always := func(c tool.Call) bool { return c.Name == "edit" }
	answer := func(a permission.Answer, err error) permission.Asker {
		return func(context.Context, permission.Question) (permission.Answer, error) { return a, err }
	}
	allowAll := permission.Rules{Allow: []string{"*"}}
	cases := map[string]struct {
		rules  permission.Rules
		ask    permission.Asker
		always func(tool.Call) bool
		want   string // "" when it runs
	}{
		"allowed":            {rules: allowAll},
		"denied":             {rules: permission.Rules{Allow: []string{"*"}, Deny: []string{"ed*"}}, want: `edit is denied by the permission rule "ed*"`},
		"nobody":             {want: `run with --allow 'edit' or add "edit" to permissions.allow in $MC_HOME/settings.json`},
		"nobody, ask rule":   {rules: permission.Rules{Allow: []string{"*"}, Ask: []string{"ed*"}}, want: `edit is asked about by the permission rule "ed*" and nobody can be asked here; to allow it, remove that rule from permissions.ask`},
		"no":                 {ask: answer(permission.No, nil), want: "declined"},
		"once":               {ask: answer(permission.Once, nil)},
		"session":            {ask: answer(permission.Session, nil)},
		"unknown answer":     {ask: answer(17, nil), want: "declined"},
		"broken":             {ask: answer(permission.Once, errors.New("pipe closed")), want: "could not be asked: pipe closed"},
		"protected, nobody":  {rules: allowAll, always: always, want: "a person's answer each time"},
		"protected, once":    {rules: allowAll, always: always, ask: answer(permission.Once, nil)},
		"protected, refused": {rules: allowAll, always: always, ask: answer(permission.No, nil), want: "declined"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ran := false
			m := steps(calls("edit", `{"intent":"x"}`), says("ok"))
			var ask permission.Asker
			if c.ask != nil {
				ask = func(ctx context.Context, q permission.Question) (permission.Answer, error) {
					if q.Protected != (c.always != nil) {
						t.Errorf("protected = %v", q.Protected)
					}
					return c.ask(ctx, q)
				}
			}
			conv, l := converse(t, Config{
				Provider: m, Gate: NewGate(c.rules, nil), Ask: ask, AlwaysAsk: c.always,
				Tools: offering(t, tool.Tool{Name: "edit", Origin: tool.Builtin, Run: func(context.Context, tool.Call) (tool.Result, error) {
					ran = true
					return tool.TextResult("done"), nil
				}}),
			})
			send(t, conv, "go")
			r := results(m.seen()[1])["c1"]
			if ran != (c.want == "") || !strings.Contains(r.Content[0].Text, c.want) {
				t.Errorf("ran = %v, result = %q", ran, r.Content[0].Text)
			}
			if asked := len(l.of(EventAsk)) > 0; asked != (c.ask != nil) {
				t.Errorf("asked = %v", asked)
			}
		})
	}
}

// TestQuestions: one at a time, in our words, and an answer for more than this call counts for the questions behind it.
func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var standing, asked, saved atomic.Int32
		ask := func(_ context.Context, q permission.Question) (permission.Answer, error) {
			if standing.Add(1) != 1 {
				t.Error("two questions at once")
			}
			defer standing.Add(-1)
			time.Sleep(time.Second) // synthetic time of the bubble: the other calls wait behind this one
			if q.Server != "s" || q.Remote != "x" || q.Intent != "why" || string(q.Input) != `{"intent":"why","arguments":{"a":1}}` || q.Diff != "+a" {
				t.Errorf("question %+v", q)
			}
			if asked.Add(1) == 1 {
				return permission.Once, nil
			}
			return permission.Always, nil
		}
		one := `{"intent":"why","arguments":{"a":1}}`
		m := steps(calls("mcp__s__x", one, "mcp__s__x", one, "mcp__s__x", one, "mcp__s__x", one), calls("mcp__s__x", one), says("ok"))
		l := &log{}
		conv := New(Config{
			Provider: m, Ask: ask, Emit: l.add,
			Preview: func(context.Context, tool.Call) string { return "+a\n" },
			Gate: NewGate(permission.Rules{Ask: []string{"mcp__s__*"}}, func(_ context.Context, pattern string) error {
				saved.Add(1)
				if pattern != "mcp__s__x" {
					t.Errorf("saved %q", pattern)
				}
				return nil
			}),
			Tools: offering(t, server("s", "x", echo)),
		})
		if _, err := conv.Send(context.Background(), prompt("go")); err != nil {
			t.Fatal(err)
		}
		if asked.Load() != 2 || saved.Load() != 1 {
			t.Errorf("asked %d times, saved %d times", asked.Load(), saved.Load())
		}
		if n := l.of(EventNotice); len(n) != 1 || !strings.Contains(n[0].Text, `ask rule "mcp__s__*"`) {
			t.Errorf("notices %+v", n)
		}
		for _, e := range l.of(EventResult) {
			if e.IsError {
				t.Errorf("refused: %s", e.Text)
			}
		}
	})
}

// TestAnsweredTooLate: a yes that comes with the interruption does not run the call.
func TestAnsweredTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := false
	conv, l := converse(t, Config{
		Provider: steps(calls("mcp__s__x", `{"intent":"x","arguments":{}}`)),
		Tools: offering(t, server("s", "x", func(context.Context, tool.Call) (tool.Result, error) {
			ran = true
			return tool.Result{}, nil
		})),
		Ask: func(context.Context, permission.Question) (permission.Answer, error) {
			cancel()
			return permission.Once, nil
		},
	})
	if turn, err := conv.Send(ctx, prompt("go")); err != nil || turn.Stop != StopInterrupted || ran {
		t.Errorf("turn = %+v, %v, ran = %v", turn, err, ran)
	}
	if r := l.of(EventResult); len(r) != 1 || r[0].Text != interruptedBefore {
		t.Errorf("result %+v", r)
	}
}

// TestAlwaysNotSaved: a rule that could not be written is told; the call runs.
func TestAlwaysNotSaved(t *testing.T) {
	m := steps(calls("mcp__s__x", `{"intent":"x","arguments":{}}`), says("ok"))
	conv, l := converse(t, Config{
		Provider: m, Tools: offering(t, server("s", "x", echo)),
		Ask:  func(context.Context, permission.Question) (permission.Answer, error) { return permission.Always, nil },
		Gate: NewGate(permission.Rules{}, func(context.Context, string) error { return errors.New("disk full") }),
	})
	send(t, conv, "go")
	if n := l.of(EventNotice); len(n) != 1 || !strings.Contains(n[0].Text, "disk full") {
		t.Errorf("notices %+v", n)
	}
	if results(m.seen()[1])["c1"].IsError {
		t.Error("the call was refused")
	}
}

// TestPanics: whatever breaks on the way of a call is its failed result, and the turn goes on.
func TestPanics(t *testing.T) {
	m := steps(calls("mcp__s__x", `{"intent":"x","arguments":{}}`, "read", `{"intent":"x"}`), says("ok"))
	conv, l := converse(t, Config{
		Provider: m, Tools: offering(t, server("s", "x", echo), reader("read", fixed("fine"))),
		Ask: func(context.Context, permission.Question) (permission.Answer, error) { panic("no screen") },
	})
	send(t, conv, "go")
	got := results(m.seen()[1])
	if text := got["c1"].Content[0].Text; !got["c1"].IsError || text != "the call failed inside magi-code: no screen" || got["c2"].Content[0].Text != "fine" {
		t.Errorf("results %+v", got)
	}
	if n := len(l.of(EventResult)); n != 2 {
		t.Errorf("%d results told", n)
	}
}
