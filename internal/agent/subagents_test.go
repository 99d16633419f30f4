package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

// isChild reports whether a request is that of a subagent.
func isChild(q provider.Request) bool { return strings.Contains(q.System, "You work as a subagent") }

// first is the prompt of a conversation.
func first(q provider.Request) string { return q.Messages[0].Blocks[0].Text }

// named are the tools of a request.
func named(q provider.Request) string {
	var out []string
	for _, one := range q.Tools {
		out = append(out, one.Name)
	}
	return strings.Join(out, " ")
}

// parent is a model that starts the given tasks once; child answers for every child.
func parent(tasks string, child func(ctx context.Context, q provider.Request) ([]provider.Event, error)) *model {
	return &model{answer: func(ctx context.Context, q provider.Request, _ int) ([]provider.Event, error) {
		switch {
		case isChild(q):
			return child(ctx, q)
		case len(q.Messages) == 1:
			return calls("subagents", `{"intent":"split the work","tasks":`+tasks+`}`), nil
		default:
			return says("all in"), nil
		}
	}}
}

// TestSubagents: results in the order of the tasks, a failure is a result, progress is told with a path. // R-G6
func TestSubagents(t *testing.T) {
	m := parent(`[{"name":"one","prompt":"p1"},{"prompt":"p2"},{"name":"one","prompt":"p3"}]`, func(_ context.Context, q provider.Request) ([]provider.Event, error) {
		if first(q) == "p2" {
			return nil, errors.New("no luck")
		}
		return says("answer to " + first(q)), nil
	})
	conv, l := converse(t, Config{Provider: m})
	turn := send(t, conv, "go")
	if turn.Text != "all in" || turn.Usage.Output != 2+1+1+1 {
		t.Errorf("turn = %+v", turn)
	}
	last := m.seen()[len(m.seen())-1]
	want := "## 1. one (done)\n\nanswer to p1\n\n## 2. task 2 (failed: no luck)\n\n\n\n## 3. one (2) (done)\n\nanswer to p3"
	if got := lastText(last); got != want {
		t.Errorf("result:\n%s", got)
	}
	var told []string
	for _, e := range l.of(EventSubagent) {
		told = append(told, strings.Join(e.Path, "/")+" "+e.Text)
	}
	slices.Sort(told)
	if got := strings.Join(told, "; "); got != "one (2) done; one (2) started; one done; one started; task 2 failed: no luck; task 2 started" {
		t.Errorf("told: %s", got)
	}
	for _, e := range l.of(EventAnswer) {
		if (e.Text == "all in") != (len(e.Path) == 0) {
			t.Errorf("answer %q of %v", e.Text, e.Path)
		}
	}
	if n := len(conv.Messages()); n != 4 {
		t.Errorf("the parent's history has %d messages", n)
	}
}

// TestFourAtOnce: ten tasks, four at a time, and every one gets its turn. // R-G6
func TestFourAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks []string
		for i := range maxTasks {
			tasks = append(tasks, fmt.Sprintf(`{"prompt":"p%d"}`, i))
		}
		var now, most atomic.Int32
		m := parent("["+strings.Join(tasks, ",")+"]", func(context.Context, provider.Request) ([]provider.Event, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second) // synthetic time of the bubble
			now.Add(-1)
			return says("ok"), nil
		})
		began := time.Now()
		turn, err := New(Config{Provider: m}).Send(context.Background(), prompt("go"))
		if err != nil || turn.Text != "all in" {
			t.Fatalf("turn = %+v, %v", turn, err)
		}
		if took := time.Since(began); took != 3*time.Second || most.Load() != maxParallel {
			t.Errorf("took %s, %d at once", took, most.Load())
		}
	})
}

// TestManyAtOnce: however many calls an answer holds, a bounded number runs at a time, children of several calls included, and
// every one gets its turn. // R-G6
func TestManyAtOnce(t *testing.T) {
	const tasks = `{"intent":"x","tasks":[{"prompt":"1"},{"prompt":"2"},{"prompt":"3"},{"prompt":"4"},{"prompt":"5"}]}`
	for _, tc := range []struct {
		tool, input string
		most        int32
	}{
		{"slow", `{"intent":"x"}`, maxTogether},
		{"subagents", tasks, maxParallel},
		{"code_mode", script("const input = " + tasks + "; return tools.callAll(Array(3).fill({name: 'subagents', input})).length"), maxParallel},
	} {
		var now, most, all atomic.Int32
		work := func() {
			all.Add(1)
			for n := now.Add(1); ; {
				if old := most.Load(); old >= n || most.CompareAndSwap(old, n) {
					break
				}
			}
			for range 100 {
				runtime.Gosched() // others get their chance to be one too many
			}
			now.Add(-1)
		}
		var pairs []string
		for range 40 {
			pairs = append(pairs, tc.tool, tc.input)
		}
		m := &model{answer: func(_ context.Context, q provider.Request, _ int) ([]provider.Event, error) {
			switch {
			case isChild(q):
				work()
				return says("ok"), nil
			case len(q.Messages) == 1:
				return calls(pairs...), nil
			}
			return says("all in"), nil
		}}
		conv, l := converse(t, Config{Provider: m, Tools: offering(t, reader("slow", func(context.Context, tool.Call) (tool.Result, error) {
			work()
			return tool.TextResult("ok"), nil
		}))})
		send(t, conv, "go")
		for _, e := range l.of(EventResult) {
			if e.IsError {
				t.Errorf("%s: %s", tc.tool, e.Text)
			}
		}
		if want := map[string]int32{"slow": 40, "subagents": 200, "code_mode": 600}[tc.tool]; all.Load() != want || most.Load() > tc.most {
			t.Errorf("%s: %d of %d ran, %d at once", tc.tool, all.Load(), want, most.Load())
		}
	}
}

// TestOverlap: calls of parallel children to one server are under way together. // R-G6 R-P4
func TestOverlap(t *testing.T) {
	var meet sync.WaitGroup
	meet.Add(4)
	m := parent(`[{"prompt":"1"},{"prompt":"2"},{"prompt":"3"},{"prompt":"4"}]`, func(_ context.Context, q provider.Request) ([]provider.Event, error) {
		if len(q.Messages) == 1 {
			return calls("mcp__s__x", `{"intent":"x","arguments":{"n":`+first(q)+`}}`), nil
		}
		return says(lastText(q)), nil
	})
	store, s := newSession(t)
	conv, l := converse(t, Config{
		Provider: m, Session: s, Gate: NewGate(permission.Rules{Allow: []string{"mcp__*"}}, nil),
		Tools: offering(t, server("s", "x", func(_ context.Context, c tool.Call) (tool.Result, error) {
			meet.Done()
			meet.Wait()
			return tool.TextResult(string(c.Arguments)), nil
		})),
	})
	send(t, conv, "go")
	if got := lastText(m.seen()[len(m.seen())-1]); !strings.Contains(got, "(done)\n\n{\"n\":4}") {
		t.Errorf("result: %s", got)
	}
	ids := map[string]bool{}
	for _, e := range l.of(EventResult) {
		if e.Call.Tool == "mcp__s__x" && (e.Call.Under != "c1" || ids[e.Call.ID]) {
			t.Errorf("call %+v", e.Call)
		}
		ids[e.Call.ID] = true
	}
	if err := conv.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A ceiling is written down before its task starts, and every inner call under the one that made it.
	limits := map[string]bool{}
	for _, e := range stored(t, store, s.ID()) {
		if e.Kind == session.Note && e.CallID == "c1" {
			limits[e.Text[:6]] = strings.Contains(e.Text, "mode full") && strings.Contains(e.Text, "mcp__s__x")
		}
		if e.Kind == session.Call && e.Tool == "mcp__s__x" {
			task := "task " + strings.Split(e.CallID, "/")[1]
			if e.Under != "c1" || !limits[task] {
				t.Errorf("call %s under %q before the limits of %s", e.CallID, e.Under, task)
			}
		}
	}
	if len(limits) != 4 {
		t.Errorf("limits: %v", limits)
	}
}

// TestCeilings: what a child may use, by mode, patterns, profile and depth, advertised and at dispatch. // R-L5 R-G6
func TestCeilings(t *testing.T) {
	profiles := []Profile{{Name: "github", Description: "d", Instructions: "Be github.", Tools: []string{"mcp__g__*", "read"}, Model: "m9"}}
	all := "bash code_mode grep mcp__g__a mcp__g__b mcp__h__a read subagents"
	for _, c := range []struct{ task, want, forbidden string }{
		{`{"prompt":"p"}`, all, ""},
		{`{"prompt":"p","mode":"full"}`, all, ""},
		{`{"prompt":"p","mode":"inspect"}`, "grep read", "mcp__g__a"},
		{`{"prompt":"p","mode":"inspect","tools":["*"]}`, "grep read", "code_mode"},
		{`{"prompt":"p","tools":["mcp__g__*"]}`, "mcp__g__a mcp__g__b", "bash"},
		{`{"prompt":"p","profile":"github"}`, "mcp__g__a mcp__g__b read", "subagents"},
		{`{"prompt":"p","profile":"github","tools":["*a","bash"]}`, "mcp__g__a", "mcp__g__b"},
		{`{"prompt":"p","profile":"github","mode":"inspect"}`, "read", "mcp__g__a"},
		{`{"prompt":"p","tools":["none"]}`, "", "read"},
	} {
		var refused string
		m := parent("["+c.task+"]", func(_ context.Context, q provider.Request) ([]provider.Event, error) {
			if c.forbidden != "" && len(q.Messages) == 1 {
				return calls(c.forbidden, `{"intent":"x","arguments":{}}`), nil
			}
			refused = lastText(q)
			return says("ok"), nil
		})
		ran := func(context.Context, tool.Call) (tool.Result, error) {
			t.Errorf("%s: %s ran", c.task, c.forbidden)
			return tool.Result{}, nil
		}
		conv, _ := converse(t, Config{
			Provider: m, Model: "m1", Profiles: profiles, Gate: NewGate(permission.Rules{Allow: []string{"*"}}, nil),
			Tools: offering(t, reader("read", ran), reader("grep", ran), tool.Tool{Name: "bash", Origin: tool.Builtin, Run: ran},
				server("g", "a", ran), server("g", "b", ran), server("h", "a", ran)),
		})
		send(t, conv, "go")
		child := m.seen()[1]
		if got := named(child); got != c.want {
			t.Errorf("%s: %s", c.task, got)
		}
		if c.forbidden != "" && refused != c.forbidden+" is not among the tools of this subagent" {
			t.Errorf("%s: %q", c.task, refused)
		}
		if profile := strings.Contains(c.task, "profile"); profile != (child.Model == "m9") || profile != strings.Contains(child.System, "Be github.") {
			t.Errorf("%s: model %s", c.task, child.Model)
		}
		if child.CacheKey == m.seen()[0].CacheKey {
			t.Errorf("%s: child and parent have one cache key", c.task)
		}
	}
}

// TestDepth: children may start children, those may not; rights only shrink on the way. // R-G6
func TestDepth(t *testing.T) {
	offered := map[string]string{}
	var mu sync.Mutex
	m := &model{answer: func(_ context.Context, q provider.Request, _ int) ([]provider.Event, error) {
		mu.Lock()
		offered[first(q)] = named(q)
		mu.Unlock()
		next := map[string]string{
			"go":    `{"intent":"x","tasks":[{"name":"a","prompt":"child","tools":["read","subagents"]}]}`,
			"child": `{"intent":"x","tasks":[{"name":"b","prompt":"grandchild","tools":["*"]}]}`,
		}[first(q)]
		if first(q) == "grandchild" && len(q.Messages) == 1 {
			return calls("subagents", `{"intent":"x","tasks":[{"prompt":"p"}]}`), nil
		}
		if next != "" && len(q.Messages) == 1 {
			return calls("subagents", next), nil
		}
		return says(lastText(q)), nil
	}}
	conv, l := converse(t, Config{Provider: m, Tools: offering(t, reader("read", echo), reader("grep", echo))})
	turn := send(t, conv, "go")
	if !strings.Contains(turn.Text, `there is no tool named "subagents"`) {
		t.Errorf("answer: %s", turn.Text)
	}
	if offered["go"] != "code_mode grep read subagents" || offered["child"] != "read subagents" || offered["grandchild"] != "read" {
		t.Errorf("offered: %v", offered)
	}
	deep := false
	for _, e := range l.of(EventCall) {
		if len(e.Path) == 2 {
			deep = strings.Join(e.Path, "/") == "a/b" && e.Call.Under == "c1/1/c1" && e.Call.ID == "c1/1/c1/1/c1"
		}
	}
	if !deep {
		t.Errorf("no call of the grandchild under its own: %+v", l.of(EventCall))
	}
}

// TestChildQuestion: a question of a child says whose it is. // R-G3
func TestChildQuestion(t *testing.T) {
	m := parent(`[{"name":"worker","prompt":"p"}]`, func(_ context.Context, q provider.Request) ([]provider.Event, error) {
		if len(q.Messages) == 1 {
			return calls("mcp__s__x", `{"intent":"x","arguments":{}}`), nil
		}
		return says("ok"), nil
	})
	asked := false
	conv, _ := converse(t, Config{
		Provider: m, Tools: offering(t, server("s", "x", echo)),
		Ask: func(_ context.Context, q permission.Question) (permission.Answer, error) {
			asked = slices.Equal(q.Path, []string{"worker"})
			return permission.No, nil
		},
	})
	send(t, conv, "go")
	if !asked {
		t.Error("the question did not name the subagent")
	}
}

// TestCancelEndsChildren: the parent's interruption ends all of them, started or waiting. // R-G6
func TestCancelEndsChildren(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var started atomic.Int32
	m := parent(`[{"prompt":"1"},{"prompt":"2"},{"prompt":"3"},{"prompt":"4"},{"prompt":"5"}]`, func(ctx context.Context, _ provider.Request) ([]provider.Event, error) {
		if started.Add(1) == maxParallel {
			cancel()
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	conv, l := converse(t, Config{Provider: m})
	turn, err := conv.Send(ctx, prompt("go"))
	if err != nil || turn.Stop != StopInterrupted || started.Load() != maxParallel {
		t.Fatalf("turn = %+v, %v, %d started", turn, err, started.Load())
	}
	if got := l.of(EventResult)[0].Text; !strings.Contains(got, "task 1 (failed: interrupted)") || !strings.Contains(got, "interrupted before it started") {
		t.Errorf("result: %s", got)
	}
	again(t, conv, m)
}

// TestFrozenForChildren: children use the parent's catalog, whatever became of the tools meanwhile. // R-L3
func TestFrozenForChildren(t *testing.T) {
	var prepared atomic.Int32
	m := parent(`[{"prompt":"p"}]`, func(_ context.Context, q provider.Request) ([]provider.Event, error) { return says("ok"), nil })
	conv, _ := converse(t, Config{
		Provider: m, Tools: func(context.Context) (tool.Set, []string, error) {
			set, err := tool.NewSet(reader(fmt.Sprintf("read%d", prepared.Add(1)), echo))
			return set, nil, err
		},
	})
	send(t, conv, "go")
	if got := named(m.seen()[1]); prepared.Load() != 1 || !strings.Contains(got, "read1") {
		t.Errorf("prepared %d times, the child has %s", prepared.Load(), got)
	}
}

// TestNoLimitsNoTask: a ceiling that cannot be written down keeps its task from starting.
func TestNoLimitsNoTask(t *testing.T) {
	_, s := newSession(t)
	r := &run{t: &turn{c: New(Config{Session: s}), out: &stream{session: s}, provider: steps()}, history: &history{}, ids: map[string]bool{}, children: make(chan struct{}, 1)}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	result, err := r.runSubagents(t.Context(), tool.Call{ID: "c1", Arguments: []byte(`{"tasks":[{"prompt":"p"}]}`)})
	if err != nil || !result.IsError || !strings.Contains(result.Plain(), "record the limits of the task") {
		t.Errorf("result %q, %v", result.Plain(), err)
	}
}

// TestSchemas: what we advertise is JSON that a strict decoder takes, with profiles too.
func TestSchemas(t *testing.T) {
	r := &run{t: &turn{c: New(Config{Profiles: []Profile{{Name: "a", Description: "Does a."}}})}}
	for _, one := range []tool.Tool{r.subagentsTool(), r.codeModeTool(tool.Set{})} {
		var schema map[string]any
		if err := json.Unmarshal(one.Schema, &schema); err != nil || schema["type"] != "object" {
			t.Errorf("%s: %v in %s", one.Name, err, one.Schema)
		}
	}
	if d := r.subagentsTool().Description; !strings.Contains(d, "- a: Does a.") {
		t.Error(d)
	}
}
