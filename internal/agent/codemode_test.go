package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/hook"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

// script is the input of a code_mode call.
func script(code string) string {
	quoted, err := json.Marshal(code)
	if err != nil {
		panic(err)
	}
	return `{"intent":"run a script","code":` + string(quoted) + `}`
}

// runScript runs one script in a turn of its own and returns what the model got.
func runScript(t *testing.T, c Config, code string) (text string, isError bool, l *log) {
	t.Helper()
	m := steps(calls("code_mode", script(code)), says("ok"))
	c.Provider = m
	conv, l := converse(t, c)
	send(t, conv, "go")
	if err := conv.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := results(m.seen()[1])["c1"]
	return r.Content[0].Text, r.IsError, l
}

func allow(patterns ...string) *Gate { return NewGate(permission.Rules{Allow: patterns}, nil) }

// TestScript: a script's calls go the way of direct ones: validated, told, recorded under it. // R-G5 R-N3 S33
func TestScript(t *testing.T) {
	store, s := newSession(t)
	structured := func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Structured: jsontext.Value(`{"rows":[1,2]}`), Content: []tool.Content{{Kind: tool.Text, Text: "two rows"}}}, nil
	}
	c := Config{Session: s, Gate: allow("mcp__*"), Tools: offering(t, reader("read", echo), server("s", "rows", structured))}
	text, isError, l := runScript(t, c, `
		const a = tools.call('read', {intent: 'first', path: 'x'});
		const b = tools.call('read', {path: 'x'});
		const c = tools.call('mcp__s__rows', {intent: 'rows', arguments: {}});
		const d = tools.call('mcp__s__rows', {intent: 'rows', path: 1});
		console.log('seen', a.success);
		return [a, b.success, c.content.rows.length, d.success, tools.list().map(t => t.name)];`)
	if isError || !strings.HasSuffix(text, "\n\nconsole:\nseen true") {
		t.Fatalf("result %v %s", isError, text)
	}
	var got []any
	if err := json.Unmarshal([]byte(strings.Split(text, "\n\nconsole:")[0]), &got); err != nil {
		t.Fatal(err)
	}
	if want := `[map[content:{"path":"x"} success:true] false 2 false [mcp__s__rows read subagents]]`; fmt.Sprint(got) != want {
		t.Errorf("value %v", got)
	}
	var inner []string
	for _, e := range l.of(EventCall, EventRunning, EventResult) {
		if e.Call.Under == "c1" {
			inner = append(inner, string(e.Kind)+" "+e.Call.ID+" "+e.Call.Intent)
		}
	}
	if want := "call c1.1 first; running c1.1 first; result c1.1 first; call c1.2 ; result c1.2 ; call c1.3 rows; running c1.3 rows; result c1.3 rows; call c1.4 ; result c1.4 "; strings.Join(inner, "; ") != want {
		t.Errorf("inner events: %s", strings.Join(inner, "; "))
	}
	recorded := map[string]int{}
	for _, e := range stored(t, store, s.ID()) {
		if e.Under == "c1" {
			recorded[string(e.Kind)]++
		}
	}
	if recorded[string(session.Call)] != 4 || recorded[string(session.Result)] != 4 {
		t.Errorf("recorded %v", recorded)
	}
}

// TestScriptRights: what a script may not name, it cannot call, whatever the other list says. // R-G4 S33
func TestScriptRights(t *testing.T) {
	ran := ""
	run := func(_ context.Context, c tool.Call) (tool.Result, error) {
		ran += c.Name + " "
		return tool.TextResult("ran"), nil
	}
	c := Config{
		Gate:          NewGate(permission.Rules{Allow: []string{"mcp__*"}, Deny: []string{"mcp__d__*"}}, nil),
		ExcludeDirect: []string{"mcp__hidden__*"}, ExcludeCodeMode: []string{"mcp__direct__*", "subagents"},
		Tools: offering(t, server("hidden", "x", run), server("direct", "x", run), server("d", "x", run), tool.Tool{Name: "bash", Origin: tool.Builtin, Run: run}),
	}
	text, _, _ := runScript(t, c, `
		const out = {listed: tools.list().map(t => t.name)};
		for (const name of ['mcp__hidden__x', 'mcp__direct__x', 'mcp__d__x', 'bash', 'subagents', 'code_mode', 'nothing']) {
			out[name] = tools.call(name, {intent: 'x', arguments: {}}).error || 'ran';
			try { tools.describe(name); out.listed.push('described ' + name) } catch (e) {}
		}
		return out;`)
	for _, want := range []string{
		`"listed": [
    "bash",
    "mcp__hidden__x",
    "described mcp__hidden__x",
    "described bash"
  ]`, `"mcp__hidden__x": "ran"`,
		`"mcp__direct__x": "mcp__direct__x is excluded from Code Mode by \"mcp__direct__*\""`,
		`"mcp__d__x": "mcp__d__x is denied by the permission rule \"mcp__d__*\""`,
		`"bash": "bash needs permission and nobody can be asked here`,
		`"subagents": "subagents is excluded from Code Mode by \"subagents\""`,
		`"code_mode": "code_mode cannot be called from inside a script"`,
		`"nothing": "there is no tool named \"nothing\""`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if ran != "mcp__hidden__x " {
		t.Errorf("ran %s", ran)
	}
	m := steps(calls("mcp__hidden__x", `{"intent":"x","arguments":{}}`), says("ok"))
	c.Provider = m
	conv, _ := converse(t, c)
	send(t, conv, "go")
	if got := lastText(m.seen()[1]); got != `mcp__hidden__x is excluded from direct use by "mcp__hidden__*"; a script in code_mode can call it` {
		t.Errorf("directly: %s", got)
	}
}

// TestScriptQuestion: a question is put for a script's call as for any other, and its time is not the script's. // R-G3
func TestScriptQuestion(t *testing.T) {
	asked := 0
	c := Config{
		Tools: offering(t, server("s", "x", echo)),
		Ask: func(_ context.Context, q permission.Question) (permission.Answer, error) {
			asked++
			return permission.Answer(asked % 2), nil // Once, No, Once
		},
	}
	text, _, l := runScript(t, c, `return [1, 2, 3].map(n => tools.call('mcp__s__x', {intent: 'x', arguments: {n}}).success)`)
	if asked != 3 || strings.Join(strings.Fields(text), "") != "[true,false,true]" || len(l.of(EventAsk)) != 3 {
		t.Errorf("asked %d times: %s", asked, text)
	}
}

// TestScriptClock: a person may think longer than a script may run.
func TestScriptClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := steps(calls("code_mode", script(`return tools.call('mcp__s__x', {intent: 'x', arguments: {}}).success`)), says("ok"))
		conv := New(Config{
			Provider: m, Tools: offering(t, server("s", "x", echo)),
			Ask: func(context.Context, permission.Question) (permission.Answer, error) {
				time.Sleep(time.Hour) // synthetic time of the bubble
				return permission.Once, nil
			},
		})
		if _, err := conv.Send(context.Background(), prompt("go")); err != nil {
			t.Fatal(err)
		}
		if got := lastText(m.seen()[1]); got != "true" {
			t.Errorf("result %s", got)
		}
	})
}

// TestScriptOverlap: callAll has calls to one server under way together and keeps their order. // R-G5 R-P4
func TestScriptOverlap(t *testing.T) {
	var meet sync.WaitGroup
	meet.Add(8)
	c := Config{Gate: allow("*"), Tools: offering(t, server("s", "x", func(_ context.Context, c tool.Call) (tool.Result, error) {
		meet.Done()
		meet.Wait()
		return tool.TextResult(string(c.Arguments)), nil
	}))}
	text, _, _ := runScript(t, c, `
		const calls = Array.from({length: 8}, (_, n) => ({name: 'mcp__s__x', input: {intent: 'x', arguments: {n}}}));
		return tools.callAll(calls).every((r, n) => JSON.parse(r.content).n === n)`)
	if text != "true" {
		t.Errorf("result %s", text)
	}
}

// TestScriptSecrets: a script sees what the model would see. // S33 S34
func TestScriptSecrets(t *testing.T) {
	const canary = "canary-51c0d"
	c := Config{Scrub: secret.NewScrubber(secret.New(canary)), Tools: offering(t, reader("leak", fixed("key "+canary)))}
	text, _, l := runScript(t, c, `const r = tools.call('leak', {intent: 'x'}).content; return [r, r.length]`)
	if strings.Contains(text, canary) || !strings.Contains(text, "[redacted]") || !strings.Contains(text, fmt.Sprint(len("key [redacted]"))) {
		t.Errorf("result %s", text)
	}
	for _, e := range l.all() {
		if strings.Contains(e.Text, canary) {
			t.Errorf("event %s holds the secret", e.Kind)
		}
	}
}

// TestScriptFails: an error of the script is a failed result with its line, and what it logged.
func TestScriptFails(t *testing.T) {
	text, isError, _ := runScript(t, Config{}, "console.log('got here')\nnothing.at.all")
	if !isError || text != "the script failed: line 2: ReferenceError: 'nothing' is not defined\n\nconsole:\ngot here" {
		t.Errorf("%v %q", isError, text)
	}
	text, isError, _ = runScript(t, Config{}, "1 + 1")
	if isError || !strings.Contains(text, "ended without a result") {
		t.Errorf("%v %q", isError, text)
	}
	text, isError, _ = runScript(t, Config{}, "return 'plain text'")
	if isError || text != "plain text" {
		t.Errorf("%v %q", isError, text)
	}
}

// TestScriptInterrupted: an interruption ends the script and its call at once.
func TestScriptInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := steps(calls("code_mode", script(`tools.call('waits', {intent: 'x'}); while (true) {}`)))
	l := &log{}
	var once sync.Once
	conv, _ := converse(t, Config{Provider: m, Tools: offering(t, reader("waits", waits)), Emit: func(e Event) {
		l.add(e)
		if e.Kind == EventRunning && e.Call.Tool == "waits" {
			once.Do(cancel)
		}
	}})
	began := time.Now()
	turn, err := conv.Send(ctx, prompt("go"))
	if err != nil || turn.Stop != StopInterrupted || time.Since(began) > toolGrace {
		t.Fatalf("turn = %+v, %v, after %s", turn, err, time.Since(began))
	}
	again(t, conv, m)
}

// TestSubagentsFromScript: a script can start children, whose calls stand under its own.
func TestSubagentsFromScript(t *testing.T) {
	m := &model{answer: func(_ context.Context, q provider.Request, _ int) ([]provider.Event, error) {
		switch {
		case isChild(q):
			return says("child " + first(q)), nil
		case len(q.Messages) == 1:
			return calls("code_mode", script(`return tools.call('subagents', {intent: 'x', tasks: [{prompt: 'p'}]}).content[0].text`)), nil
		default:
			return says(lastText(q)), nil
		}
	}}
	conv, _ := converse(t, Config{Provider: m})
	if turn := send(t, conv, "go"); turn.Text != "child p" {
		t.Errorf("turn = %+v", turn)
	}
}

// TestIndex: the list of hidden tools is bounded and says what it left out. // R-G4
func TestIndex(t *testing.T) {
	var tools []tool.Tool
	for i := range 2000 {
		one := server("s", fmt.Sprintf("t%04d", i), echo)
		one.Description = "First sentence of it.\nSecond " + strings.Repeat("long ", 100)
		tools = append(tools, one)
	}
	c := Config{Provider: steps(says("ok")), ExcludeDirect: []string{"mcp__*"}, Tools: offering(t, tools...)}
	m := steps(says("ok"))
	c.Provider = m
	conv, _ := converse(t, c)
	began := time.Now()
	send(t, conv, "go")
	t.Logf("a turn with 2000 tools took %s", time.Since(began))
	d := m.seen()[0].Tools[0].Description
	if len(d) > len(codeModeDescription)+maxIndex+200 || !strings.Contains(d, "- mcp__s__t0000: First sentence of it.\n") || !strings.Contains(d, " more: find them with tools.search") {
		t.Errorf("description of %d bytes", len(d))
	}
	if n := len(m.seen()[0].Tools); n != 2 {
		t.Errorf("%d tools advertised", n)
	}
}

const hookEnv = "AGENT_TEST_HOOK"

// actAsHook is the hook of the tests: this binary, started again. It writes its document to the file that the variable
// names, and refuses calls whose input says so.
func actAsHook(file string) int {
	var p hook.Payload
	if err := json.UnmarshalRead(os.Stdin, &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s %s %s %s\n", p.Event, p.CallID, p.Tool, p.Input, p.Result)
	if p.Event == hook.BeforeTool && strings.Contains(string(p.Input), "forbidden") {
		fmt.Fprint(os.Stderr, "not this one")
		return 2
	}
	return 0
}

// TestHooks: hooks see direct calls, calls of scripts and calls of children alike, whole and without secrets, and can
// refuse them. // R-G7 S33
func TestHooks(t *testing.T) {
	const canary = "canary-88d1e"
	file := t.TempDir() + "/seen"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hooks := hook.NewRunner([]hook.Hook{
		{Event: hook.BeforeTool, Tools: []string{"mcp__*"}, Command: []string{self}, Block: true},
		{Event: hook.AfterTool, Tools: []string{"mcp__*"}, Command: []string{self}},
	}, t.TempDir(), append(os.Environ(), hookEnv+"="+file))
	m := &model{answer: func(_ context.Context, q provider.Request, _ int) ([]provider.Event, error) {
		child := isChild(q)
		switch {
		case child && len(q.Messages) == 1:
			return calls("mcp__s__x", `{"intent":"child","arguments":{}}`), nil
		case !child && len(q.Messages) == 1:
			return calls("mcp__s__x", `{"intent":"direct","arguments":{"intent":"own","k":"`+canary+`"}}`, "mcp__s__x", `{"intent":"forbidden","arguments":{}}`,
				"code_mode", script(`return [tools.call('mcp__s__x', {intent: 'script', arguments: {}}), tools.call('mcp__s__x', {intent: 'forbidden', arguments: {}})]`),
				"subagents", `{"intent":"x","tasks":[{"name":"kid","prompt":"p"}]}`), nil
		}
		return says("ok"), nil
	}}
	ran := 0
	var mu sync.Mutex
	conv, _ := converse(t, Config{
		Provider: m, Hooks: hooks, Gate: allow("*"), Scrub: secret.NewScrubber(secret.New(canary)),
		Tools: offering(t, server("s", "x", func(_ context.Context, c tool.Call) (tool.Result, error) {
			mu.Lock()
			ran++
			mu.Unlock()
			return tool.TextResult("result of " + c.Intent), nil
		})),
	})
	send(t, conv, "go")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := string(data)
	for _, want := range []string{
		`before_tool c1 mcp__s__x {"intent":"direct","arguments":{"intent":"own","k":"[redacted]"}}`, "after_tool c1 mcp__s__x ", "result of direct",
		`before_tool c2 mcp__s__x`, `before_tool c3.1 mcp__s__x {"intent":"script","arguments":{}}`, "result of script",
		`before_tool c3.2 mcp__s__x`, `before_tool c4/1/c1 mcp__s__x {"intent":"child","arguments":{}}`, "result of child",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("no %q in\n%s", want, seen)
		}
	}
	if ran != 3 || strings.Contains(seen, canary) || strings.Contains(seen, "after_tool c2") || strings.Contains(seen, "code_mode") {
		t.Errorf("%d calls ran; hooks saw\n%s", ran, seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	late, _ := converse(t, Config{
		Provider: steps(calls("mcp__s__x", `{"intent":"late","arguments":{}}`)), Hooks: hooks, Gate: allow("*"),
		Tools: offering(t, server("s", "x", func(context.Context, tool.Call) (tool.Result, error) {
			cancel()
			return tool.TextResult("done all the same"), nil
		})),
	})
	if _, err := late.Send(ctx, prompt("go")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "done all the same") {
		t.Errorf("the hook after a call that was interrupted saw %s, %v", data[len(seen):], err)
	}
	last := m.seen()[len(m.seen())-1]
	if got := results(last)["c2"]; !got.IsError || !strings.Contains(got.Content[0].Text, "refused by a hook: ") || !strings.Contains(got.Content[0].Text, "not this one") {
		t.Errorf("refusal %+v", got)
	}
	if got := results(last)["c3"].Content[0].Text; !strings.Contains(got, "not this one") || !strings.Contains(got, "result of script") {
		t.Errorf("script %s", got)
	}
}
