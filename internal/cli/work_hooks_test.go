package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"magi-code/internal/hook"
	"magi-code/internal/provider"
)

func testHooks(t *testing.T, zoo string) {
	for name, test := range map[string]func(*testing.T, string){
		"block": hooksBlock, "failure": hooksFailure, "payload": hooksPayload, "secrets": hooksSecrets, "project": hooksOfProject, "schema": hooksSchema,
	} {
		t.Run(name, func(t *testing.T) { test(t, zoo) })
	}
}

// hooked is the settings of a site with hooks; each is the inside of an object.
func hooked(hooks ...string) string {
	return `{"permissions": {"allow": ["*"]}, "hooks": [{` + strings.Join(hooks, "}, {") + `}]}`
}

// once runs one turn with these calls and returns their results.
func once(s *site, pairs ...string) ([]string, *talk) {
	m := steps(calls(pairs...), says("done"))
	k := s.talk(m, nil)
	k.turn("go")
	return answers(m.seen()[1]), k
}

// R-G7: before_tool blocks by exit 2 and by JSON, for direct calls and those of scripts; the server hears nothing of it; filters
// hold; a hook that allows lets the call go on; it cannot rewrite the call.
func hooksBlock(t *testing.T, zoo string) {
	log := filepath.Join(t.TempDir(), "log")
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live", "log=" + log}}, settings: hooked(
		`"event": "before_tool", "tools": ["mcp__s__a*"], "command": ["$ZOO", "hook", "code=2", "err=adding is not done here"]`,
		`"event": "before_tool", "tools": ["*__big", "mcp__s__env"], "command": ["$ZOO", "hook", "out={\"decision\":\"block\",\"reason\":\"too \\u001b[31mbig\"}"]`,
		`"event": "before_tool", "tools": ["mcp__s__echo"], "command": ["$ZOO", "hook", "out={\"decision\":\"allow\",\"input\":{\"intent\":\"x\",\"arguments\":{\"text\":\"rewritten\"}}}"]`,
	)})
	got, k := once(s, "mcp__s__add", with(`{"a":1,"b":2}`), "mcp__s__big", with(`{"bytes":1}`), "mcp__s__echo", with(`{"text":"as it was"}`),
		"code_mode", scriptInput(`return [tools.call("mcp__s__add", `+with(`{}`)+`).error, tools.call("mcp__s__echo", `+with(`{"text":"inner"}`)+`).content].join("|")`))
	want := []string{": adding is not done here", ": too big", "as it was", "|inner"}
	for i, w := range want {
		if i >= len(got) || !strings.HasSuffix(got[i], w) {
			t.Errorf("call %d: no %q in %q", i, w, got)
		}
	}
	wantParts(t, got[0], "refused by a hook: ")
	wantParts(t, got[3], "refused by a hook: ")
	if b, err := os.ReadFile(log); err != nil || strings.Count(string(b), `"tools/call"`) != 2 {
		t.Errorf("the server got: %v\n%s", err, b)
	}
	if n := k.notices(); n != nil {
		t.Errorf("notices: %q", n)
	}
}

// R-G7: what a hook's own failure means is its policy: exit 1, no such command, a malformed decision, a timeout.
func hooksFailure(t *testing.T, zoo string) {
	for name, c := range map[string]struct{ command, why string }{
		"exit":     {`["$ZOO", "hook", "code=1", "err=out of order"]`, "out of order"},
		"absent":   {`["/does/not/exist"]`, "exist"},
		"decision": {`["$ZOO", "hook", "out={\"decision\":\"blok\"}"]`, "blok"},
		"timeout":  {`["$ZOO", "hook", "ms=60000"], "timeout_ms": 30`, "30ms"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}, settings: hooked(
				`"event": "before_tool", "tools": ["mcp__s__echo"], "on_failure": "warn", "command": `+c.command,
				`"event": "before_tool", "tools": ["mcp__s__add"], "on_failure": "block", "command": `+c.command,
				`"event": "after_tool", "tools": ["mcp__s__big"], "on_failure": "block", "command": `+c.command,
			)})
			got, k := once(s, "mcp__s__echo", with(`{"text":"went on"}`), "mcp__s__add", with(`{"a":1,"b":2}`), "mcp__s__big", with(`{"bytes":4}`))
			if len(got) != 3 || got[0] != "went on" || !strings.HasPrefix(got[1], "refused by a hook: ") || !strings.Contains(got[1], c.why) || got[2] != "xxxx" {
				t.Errorf("results: %q", got)
			}
			n := k.notices()
			if len(n) != 2 {
				t.Fatalf("notices: %q", n)
			}
			for _, text := range n {
				wantParts(t, text, "hook ", "failed", c.why)
			}
		})
	}
}

const hookSchema = "docs/schemas/hook-payload.schema.json"

// documents reads what hooks logged.
func documents(t *testing.T, file string) (out []hook.Payload) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema := readSchema(t, hookSchema)
	for line := range strings.Lines(string(b)) {
		var p hook.Payload
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&p); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if err := validate(schema, line); err != nil {
			t.Errorf("%v in %s", err, line)
		}
		out = append(out, p)
	}
	return out
}

// R-G7, R-N3: hooks see the whole call with its intent, the result afterwards, the session, and where in a script or subagent
// it was made.
func hooksPayload(t *testing.T, zoo string) {
	log := filepath.Join(t.TempDir(), "log")
	quoted, err := json.Marshal("log=" + log)
	if err != nil {
		t.Fatal(err)
	}
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}, settings: hooked(
		`"event": "before_tool", "command": ["$ZOO", "hook", `+string(quoted)+`]`,
		`"event": "after_tool", "tools": ["mcp__*"], "command": ["$ZOO", "hook", `+string(quoted)+`]`,
	)})
	_, k := once(s, "mcp__s__echo", `{"intent":"say hello","arguments":{"text":"hello","intent":"own"}}`)
	got := documents(t, log)
	if len(got) != 2 {
		t.Fatalf("documents: %+v", got)
	}
	for i, want := range []hook.Event{hook.BeforeTool, hook.AfterTool} {
		p := got[i]
		if p.Event != want || p.Session != k.sess.ID() || p.Dir != s.f.cwd || p.CallID != "c1" || p.Tool != "mcp__s__echo" || p.Server != "s" || p.Path != nil ||
			string(p.Input) != `{"intent":"say hello","arguments":{"text":"hello","intent":"own"}}` || p.IsError {
			t.Errorf("document %d: %+v", i, p)
		}
	}
	if got[0].Result != "" || got[1].Result != "hello" {
		t.Errorf("results: %q before, %q after", got[0].Result, got[1].Result)
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	once(s, "code_mode", scriptInput(`return tools.call("mcp__s__nothing_here", {}).error + tools.call("mcp__s__add", {intent: "fail", arguments: {a: "x"}}).error`))
	var lines []string
	for _, p := range documents(t, log) {
		lines = append(lines, fmt.Sprintf("%s %s %v", p.Event, p.Tool, p.IsError))
	}
	if want := []string{"before_tool code_mode false", "before_tool mcp__s__add false", "after_tool mcp__s__add true"}; !slices.Equal(lines, want) {
		t.Errorf("a script's documents: %q", lines)
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	s.talk(delegates(tasks(object{"name": "child", "prompt": "x"}), func(_ context.Context, q provider.Request) []provider.Event {
		if len(answers(q)) > 0 {
			return says("done")
		}
		return calls("mcp__s__echo", with(`{"text":"y"}`))
	}), nil).turn("go")
	lines = nil
	for _, p := range documents(t, log) {
		lines = append(lines, fmt.Sprintf("%s %s %v", p.Event, p.Tool, p.Path))
	}
	if want := []string{"before_tool subagents []", "before_tool mcp__s__echo [child]", "after_tool mcp__s__echo [child]"}; !slices.Equal(lines, want) {
		t.Errorf("a child's documents: %q", lines)
	}
}

// R-D5, R-G7: no secret of a server stands in a document, and no key of a provider in a hook's environment.
func hooksSecrets(t *testing.T, zoo string) {
	dir := t.TempDir()
	log, env := filepath.Join(dir, "log"), filepath.Join(dir, "env")
	quoted, err := json.Marshal([]string{"hook", "log=" + log, "env=" + env})
	if err != nil {
		t.Fatal(err)
	}
	command := `["$ZOO", ` + strings.TrimPrefix(string(quoted), "[")
	s := openSite(t, zoo, plan{
		servers: map[string][]string{"s": {"live"}}, serverEnv: map[string]string{"TOKEN": "${SECRET}"},
		env:      map[string]string{"SECRET": canaryEnv, "ANTHROPIC_API_KEY": canaryKey, "OPENAI_API_KEY": canaryAuth, "PLAIN": "plain-value"},
		settings: hooked(`"event": "before_tool", "command": `+command, `"event": "after_tool", "command": `+command),
	})
	got, k := once(s, "mcp__s__env", with(`{}`), "mcp__s__echo", with(`{"text":"my key is `+canaryKey+`"}`))
	wantParts(t, got[0], "TOKEN=[redacted]")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, string(b), "TOKEN=[redacted]", "my key is [redacted]")
	for what, text := range map[string]string{"the documents": string(b), "the session": k.file(), "the model": strings.Join(got, "\n")} {
		if found := leaks([]byte(text)); found != nil {
			t.Errorf("%s hold %v", what, found)
		}
	}
	e, err := os.ReadFile(env)
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, string(e), "PLAIN=plain-value")
	if strings.Contains(string(e), canaryKey) || strings.Contains(string(e), canaryAuth) {
		t.Error("a hook's environment holds a key of a provider")
	}
}

// R-C, R-G7, S3: a project's settings cannot add hooks; they are ignored with a warning.
func hooksOfProject(t *testing.T, zoo string) {
	log := filepath.Join(t.TempDir(), "log")
	quoted, err := json.Marshal("log=" + log)
	if err != nil {
		t.Fatal(err)
	}
	s := openSite(t, zoo, plan{
		servers: map[string][]string{"s": {"live"}}, settings: allowAll,
		project: `{"hooks": [{"event": "before_tool", "command": ["$ZOO", "hook", ` + string(quoted) + `]}]}`,
	})
	if got, _ := once(s, "mcp__s__echo", with(`{"text":"x"}`)); got[0] != "x" {
		t.Errorf("results: %q", got)
	}
	if _, err := os.Stat(log); err == nil {
		t.Error("a hook of the project ran")
	}
	if len(s.w.warnings) != 1 || !strings.Contains(s.w.warnings[0], "hooks") || !strings.Contains(s.w.warnings[0], s.f.projectSettings()) {
		t.Errorf("warnings: %q", s.w.warnings)
	}
}

// The documented schema is the one that the program knows, and its members are those of the document.
func hooksSchema(t *testing.T, _ string) {
	b, err := os.ReadFile(filepath.Join("..", "..", hookSchema))
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != hook.PayloadSchema {
		t.Error(hookSchema, "is not internal/hook/payload.schema.json")
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	full, err := json.Marshal(hook.Payload{Event: hook.AfterTool, Session: "x", Dir: "x", CallID: "x", Tool: "x", Server: "x", Path: []string{"x"}, Input: []byte(`{}`), Result: "x", IsError: true})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(full, &members); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(members)); !slices.Equal(got, want) {
		t.Errorf("the schema has %q, the document %q", got, want)
	}
}
