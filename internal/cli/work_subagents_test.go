package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"magi-code/internal/agent"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
)

func testSubagents(t *testing.T, zoo string) {
	for name, test := range map[string]func(*testing.T, string){
		"overlap": subagentsOverlap, "ceilings": subagentsCeilings, "cancelled": subagentsCancelled, "order": subagentsOrder,
		"script": subagentsFromScript, "json": subagentsJSON, "nested": subagentsNested,
	} {
		t.Run(name, func(t *testing.T) { test(t, zoo) })
	}
}

// tasks is the input of a subagents call.
func tasks(list ...object) string {
	b, _ := json.Marshal(object{"intent": "share the work", "tasks": list}) // plain values always encode
	return string(b)
}

// delegates is a model whose main run makes one subagents call and whose children are played by child.
func delegates(input string, child func(ctx context.Context, q provider.Request) []provider.Event) *scripted {
	return &scripted{answer: func(ctx context.Context, q provider.Request) []provider.Event {
		switch {
		case isChild(q):
			return child(ctx, q)
		case len(answers(q)) > 0:
			return says("done")
		}
		return calls("subagents", input)
	}}
}

// task is what a child was asked.
func task(q provider.Request) string { return q.Messages[0].Blocks[0].Text }

// R-G6: children of one call call one server at once: it answers only when four calls are under way. Their calls are in the
// session under the subagents call, and told with the child's path.
func subagentsOverlap(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}, settings: allowAll})
	var list []object
	for i := range 8 {
		list = append(list, object{"name": fmt.Sprintf("child %d", i), "prompt": fmt.Sprintf("word%d", i)})
	}
	m := delegates(tasks(list...), func(_ context.Context, q provider.Request) []provider.Event {
		if a := answers(q); len(a) > 0 {
			return says("got " + a[0])
		}
		return calls("mcp__s__meet", with(`{"n":4,"text":"`+task(q)+`"}`))
	})
	k := s.talk(m, nil)
	k.turn("go")
	result := answers(m.seen()[len(m.seen())-1])[0]
	at := 0
	for i := range 8 {
		next := strings.Index(result, fmt.Sprintf("got word%d", i))
		if next < at {
			t.Errorf("result %d is missing or out of order in\n%s", i, result)
		}
		at = next
	}
	var paths []string
	for _, e := range k.of(agent.EventResult) {
		if e.Call.Tool == "mcp__s__meet" {
			paths = append(paths, strings.Join(e.Path, "/"))
			if e.Call.Under != "c1" {
				t.Errorf("a child's call is under %q", e.Call.Under)
			}
		}
	}
	slices.Sort(paths)
	if len(paths) != 8 || paths[0] != "child 0" || paths[7] != "child 7" {
		t.Errorf("paths of the results: %q", paths)
	}
	ids := map[string]bool{}
	for _, e := range k.entries() {
		if e.Kind == session.Call && e.Under == "c1" {
			ids[e.CallID] = true
		}
	}
	if len(ids) != 8 {
		t.Errorf("the session holds %d calls of children: %v", len(ids), ids)
	}
}

// R-G6, R-L5: mode inspect, a profile's patterns and a task's own only remove rights, when tools are advertised and when they are
// called; the ceiling is in the session before the child's first request.
func subagentsCeilings(t *testing.T, zoo string) {
	log := filepath.Join(t.TempDir(), "log")
	s := openSite(t, zoo, plan{
		servers:  map[string][]string{"s": {"live", "log=" + log}},
		settings: `{"permissions": {"allow": ["*"], "deny": ["mcp__s__env"]}}`,
		files: map[string]string{
			"subagents/adder.md":  "---\ndescription: adds\ntools: mcp__s__a*, mcp__s__env, read\nmodel: small\n---\nOnly add.\n",
			"subagents/broken.md": "no front matter",
		},
	})
	if len(s.w.warnings) != 1 || !strings.Contains(s.w.warnings[0], "broken.md") {
		t.Errorf("warnings: %q", s.w.warnings)
	}
	want := map[string][]string{
		"inspect":  {"find", "grep", "list_files", "read"},
		"profile":  {"mcp__s__add", "mcp__s__alter", "mcp__s__announce", "read"},
		"narrowed": {"mcp__s__add"},
	}
	var k *talk
	m := delegates(tasks(
		object{"name": "inspect", "prompt": "inspect", "mode": "inspect", "tools": []string{"*"}},
		object{"name": "profile", "prompt": "profile", "profile": "adder"},
		object{"name": "narrowed", "prompt": "narrowed", "profile": "adder", "tools": []string{"mcp__s__add", "mcp__s__echo", "write"}},
	), func(_ context.Context, q provider.Request) []provider.Event {
		name := task(q)
		if a := answers(q); len(a) > 0 {
			return says(strings.Join(a, "\n"))
		}
		if !slices.Equal(offered(q), want[name]) {
			t.Errorf("%s is offered %q, not %q", name, offered(q), want[name])
		}
		if name != "inspect" && (q.Model != "small" || !strings.Contains(q.System, "Only add.")) {
			t.Errorf("%s works as %q with %q", name, q.Model, q.System)
		}
		noted := slices.ContainsFunc(k.entries(), func(e session.Entry) bool {
			return e.Kind == session.Note && e.CallID == "c1" && strings.Contains(e.Text, `"`+name+`"`)
		})
		if !noted {
			t.Errorf("the ceiling of %s is not in the session when its task starts", name)
		}
		return calls("mcp__s__echo", with(`{}`), "mcp__s__env", with(`{}`), "write", `{"intent":"try","path":"x","content":"x"}`,
			"code_mode", scriptInput(`return tools.call("mcp__s__echo", `+with(`{}`)+`).error`))
	})
	k = s.talk(m, nil)
	k.turn("go")
	got := answers(m.seen()[len(m.seen())-1])[0]
	if n := strings.Count(got, "is not among the tools of this subagent"); n < 9 {
		t.Errorf("%d refusals in\n%s", n, got)
	}
	wantParts(t, got, `mcp__s__env is denied by the permission rule "mcp__s__env"`)
	if b, err := os.ReadFile(log); err != nil || strings.Contains(string(b), `"tools/call"`) {
		t.Errorf("a call above the ceiling reached the server: %v\n%s", err, b)
	}
	if _, err := os.Stat(filepath.Join(s.f.cwd, "x")); err == nil {
		t.Error("a child wrote a file")
	}
	for _, e := range k.entries() {
		if e.Kind == session.Note && strings.Contains(e.Text, `"narrowed"`) {
			wantParts(t, e.Text, "within mcp__s__a*, mcp__s__env, read; within mcp__s__add, mcp__s__echo, write", "mcp__s__add")
		}
	}
}

// R-G6: cancelling the parent ends all children, in calls of a server and before; the server's next call works; afterwards no
// process and no goroutine is left (openSite checks that).
func subagentsCancelled(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}, "other": {"live"}}, settings: allowAll})
	var list []object
	for i := range 10 {
		list = append(list, object{"prompt": fmt.Sprint(i)})
	}
	inModel := make(chan struct{}, 1)
	m := delegates(tasks(list...), func(ctx context.Context, q provider.Request) []provider.Event {
		if task(q) == "0" { // one child is interrupted while its model thinks
			inModel <- struct{}{}
			<-ctx.Done()
			return nil
		}
		return calls("mcp__s__meet", with(`{"n":99}`), "mcp__other__meet", with(`{"n":99}`))
	})
	k := s.talk(m, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := 0
	k.also = func(e agent.Event) {
		if e.Kind == agent.EventRunning && len(e.Path) > 0 {
			if running++; running >= 4 { // of the places of two or three children
				cancel()
			}
		}
	}
	turn, err := k.c.Send(ctx, []provider.Block{{Kind: provider.Text, Text: "go"}})
	if turn.Stop != agent.StopInterrupted || err != nil {
		t.Errorf("the turn ended with %s: %v", turn.Stop, err)
	}
	started, ended := 0, 0
	for _, e := range k.of(agent.EventSubagent) {
		if e.Text == "started" {
			started++
		} else if strings.HasPrefix(e.Text, "failed: ") {
			ended++
		}
	}
	if started == 0 || started > 4 || ended != started {
		t.Errorf("%d children started, %d ended", started, ended)
	}
	if got := s.ask("s", "echo", `{"text":"alive"}`); got != "alive" {
		t.Errorf("the server after it: %q", got)
	}
	if got := s.ask("other", "echo", `{"text":"alive"}`); got != "alive" {
		t.Errorf("the other server after it: %q", got)
	}
}

// R-G6: results come in the order of the tasks, not of their ends; a child that fails is a result among the others.
func subagentsOrder(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}, settings: allowAll})
	third := make(chan struct{})
	m := delegates(tasks(object{"prompt": "first"}, object{"prompt": "second"}, object{"prompt": "third"}), func(ctx context.Context, q provider.Request) []provider.Event {
		switch task(q) {
		case "first":
			select {
			case <-third:
			case <-ctx.Done():
			}
			return says("slow answer")
		case "second":
			if len(answers(q)) == 0 {
				return calls("mcp__s__crash", with(`{}`))
			}
			return nil // the provider fails
		}
		close(third)
		return says("quick answer")
	})
	k := s.talk(m, nil)
	k.turn("go")
	got := answers(m.seen()[len(m.seen())-1])[0]
	one, two, three := strings.Index(got, "slow answer"), strings.Index(got, "(failed: "), strings.Index(got, "quick answer")
	if one < 0 || two < one || three < two {
		t.Errorf("results out of order:\n%s", got)
	}
}

// R-G6, R-G5: a script gives tasks to children; their questions reach the person with their path.
func subagentsFromScript(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}})
	m := &scripted{answer: func(_ context.Context, q provider.Request) []provider.Event {
		switch a := answers(q); {
		case isChild(q) && len(a) > 0:
			return says(a[0])
		case isChild(q):
			return calls("mcp__s__echo", with(`{"text":"for `+task(q)+`"}`))
		case len(a) > 0:
			return says("done")
		}
		return calls("code_mode", scriptInput(`const r = tools.call("subagents", {intent: "share", tasks: [{name: "a", prompt: "one"}, {name: "b", prompt: "two"}]});
			return r.content.map(c => c.name + "=" + c.text + "/" + c.ok).join(" ")`))
	}}
	paths := map[string]bool{}
	k := s.talk(m, func(_ context.Context, q permission.Question) (permission.Answer, error) {
		paths[strings.Join(q.Path, "/")+" "+q.Remote] = true
		return permission.Once, nil
	})
	k.turn("go")
	if got := answers(m.seen()[len(m.seen())-1])[0]; got != "a=for one/true b=for two/true" {
		t.Errorf("the script got %q", got)
	}
	if !paths["a echo"] || !paths["b echo"] || len(paths) != 2 {
		t.Errorf("questions: %v", paths)
	}
}

// R-G6: depth two. A grandchild works, its path says so, and it can start nobody; its ceiling is below its parent's.
func subagentsNested(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}, settings: allowAll})
	m := delegates(tasks(object{"name": "child", "prompt": "child", "tools": []string{"mcp__s__echo", "subagents"}}), func(_ context.Context, q provider.Request) []provider.Event {
		a := answers(q)
		switch {
		case task(q) == "child" && len(a) == 0:
			return calls("subagents", tasks(object{"name": "grandchild", "prompt": "grandchild", "tools": []string{"*"}}))
		case task(q) == "grandchild" && len(a) == 0:
			if slices.Contains(offered(q), "subagents") || slices.Contains(offered(q), "mcp__s__add") || !slices.Contains(offered(q), "mcp__s__echo") {
				t.Errorf("the grandchild is offered %q", offered(q))
			}
			return calls("mcp__s__echo", with(`{"text":"from below"}`), "mcp__s__add", with(`{}`), "subagents", tasks(object{"prompt": "too deep"}))
		}
		return says(strings.Join(a, "\n"))
	})
	k := s.talk(m, nil)
	k.turn("go")
	got := answers(m.seen()[len(m.seen())-1])[0]
	wantParts(t, got, "from below", "mcp__s__add is not among the tools of this subagent")
	if strings.Contains(got, "too deep") {
		t.Errorf("a third level ran:\n%s", got)
	}
	deep := 0
	for _, e := range k.of(agent.EventResult) {
		if strings.Join(e.Path, "/") == "child/grandchild" && e.Call.Tool == "mcp__s__echo" && !e.IsError {
			deep++
		}
	}
	if deep != 1 {
		t.Errorf("%d results of the grandchild", deep)
	}
}

// R-G6, R-G10: run --json tells of children with their paths, from the first word to the last, and nothing is left running.
func subagentsJSON(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}})
	prompt := "call subagents " + tasks(
		object{"name": "a", "prompt": `call mcp__s__meet {"n":2,"text":"one"}`}, object{"name": "b", "prompt": `call mcp__s__meet {"n":2,"text":"two"}`})
	cmd := exec.Command("magi-code", "run", "--json", "--provider", "offline", "--allow", "*", prompt)
	cmd.Dir, cmd.Env = s.f.cwd, append(os.Environ(), "MC_HOME="+s.f.home, "HOME="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
	}
	seen := map[string][]string{}
	var last eventLine
	for line := range bytes.Lines(out) {
		var e eventLine
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		path := strings.Join(e.Path, "/")
		what := string(e.Type)
		if e.Type == agent.EventSubagent {
			what += " " + e.Text
		}
		if e.Call != nil {
			what += " " + e.Call.Tool
		}
		seen[path] = append(seen[path], what)
		last = e
	}
	for _, path := range []string{"a", "b"} {
		for _, want := range []string{"subagent started", "call mcp__s__meet", "running mcp__s__meet", "result mcp__s__meet", "answer", "usage", "subagent done"} {
			if !slices.Contains(seen[path], want) {
				t.Errorf("no %q of %q in %q", want, path, seen[path])
			}
		}
		if n := len(seen[path]); n > 0 && (seen[path][0] != "subagent started" || seen[path][n-1] != "subagent done") {
			t.Errorf("%q begins or ends otherwise: %q", path, seen[path])
		}
	}
	if last.Type != agent.EventTurnEnd || last.Stop != agent.StopDone || !strings.Contains(last.Text, "one") || !strings.Contains(last.Text, "two") {
		t.Errorf("the last event is %+v", last)
	}
	closeManager(context.Background(), s.m)
	if left := processes(s.zoo); runtime.GOOS == "linux" && len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
