package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"magi-code/internal/agent"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
)

func testCodeMode(t *testing.T, zoo string) {
	for name, test := range map[string]func(*testing.T, string){
		"wires": codeModeWires, "question": codeModeQuestion, "rights": codeModeRights, "input": codeModeInput, "secrets": codeModeSecrets,
		"bounds": codeModeBounds, "interrupted": codeModeInterrupted,
	} {
		t.Run(name, func(t *testing.T) { test(t, zoo) })
	}
}

// overlapping calls two servers at once; both meetings are answered only when both calls are there, the last one first.
const overlapping = `
const results = tools.callAll([
  {name: "mcp__s__meet", input: {intent: "meet the other", arguments: {n: 2, text: "a"}}},
  {name: "mcp__s__meet", input: {intent: "meet the first", arguments: {n: 2, text: "b"}}},
  {name: "mcp__other__add", input: {intent: "add two numbers", arguments: {a: 1, b: 2}}},
  {name: "mcp__other__structured", input: {intent: "get data", arguments: {text: "d"}}},
]);
return results.map(r => r.success ? r.content.text || r.content : r.error).join("|");`

// R-G5, R-G1: over each provider's wire, the model sees the index of hidden tools, calls code_mode, the script calls two
// servers with calls that overlap, and its value reaches the answer. Each inner call is in the session and among the events,
// under its script.
func codeModeWires(t *testing.T, zoo string) {
	for name, wire := range map[string]struct{ id string }{"anthropic": {"toolu_1"}, "openai": {"call_1"}, "local": {"call_1"}} {
		t.Run(name, func(t *testing.T) {
			watchLeaks(t)
			service := startService(t, wireCall{"code_mode", scriptInput(overlapping)})
			s := openSite(t, zoo, plan{
				servers: map[string][]string{"s": {"live"}, "other": {"live"}}, provider: name, watched: true,
				settings: `{"model": "m", "provider": "` + name + `", "permissions": {"allow": ["mcp__*"]}, "capabilities": {"tools": {"disabled": ["mcp__*"]}},
					"endpoints": {"local": {"base_url": "` + service.url + `/v1", "model": "m"}}}`,
				env: map[string]string{"ANTHROPIC_API_KEY": "k1", "OPENAI_API_KEY": "k2", "ANTHROPIC_BASE_URL": service.url, "OPENAI_BASE_URL": service.url + "/v1"},
			})
			k := s.talk(nil, nil)
			turn := k.turn("use both servers")
			if turn.Text != "The script says: a|b|3|d" {
				t.Errorf("the answer is %q", turn.Text)
			}
			q := service.requests()
			if len(q) != 2 {
				t.Fatalf("%d requests", len(q))
			}
			shown := wireTools(q[0])
			for n := range shown {
				if strings.HasPrefix(n, "mcp__") {
					t.Errorf("%s is advertised directly", n)
				}
			}
			wantParts(t, shown["code_mode"], "- mcp__s__meet: Answers when n calls", "- mcp__other__add: Adds two numbers.")
			inner := map[string]int{"mcp__s__meet": 2, "mcp__other__add": 1, "mcp__other__structured": 1}
			checkInner(t, k, wire.id, inner)
		})
	}
}

// checkInner checks that the calls of a script are in the session and among the events, each with its result.
func checkInner(t *testing.T, k *talk, id string, want map[string]int) {
	t.Helper()
	entered, told := map[string]int{}, map[string]int{}
	ids := map[string]bool{}
	for _, e := range k.entries() {
		if e.Under != id {
			continue
		}
		switch e.Kind {
		case session.Call:
			entered[e.Tool]++
			ids[e.CallID] = true
			wantParts(t, string(e.Input), `"intent":"`, `"arguments":{`)
		case session.Result:
			entered[e.Tool+" result"]++
			if !ids[e.CallID] || e.IsError {
				t.Errorf("the result %+v has no call before it, or failed", e)
			}
		}
	}
	for _, e := range k.of(agent.EventCall, agent.EventResult) {
		if e.Call.Under != id {
			continue
		}
		if e.Kind == agent.EventResult {
			told[e.Call.Tool+" result"]++
			continue
		}
		told[e.Call.Tool]++
		if e.Call.Intent == "" || e.Call.Server == "" || e.Call.Remote == "" {
			t.Errorf("an inner call is told as %+v", e.Call)
		}
	}
	for name, n := range want {
		for _, key := range []string{name, name + " result"} {
			if got := entered[key]; n != got {
				t.Errorf("%s: %d session entries, not %d", key, got, n)
			}
			if got := told[key]; n != got {
				t.Errorf("%s: %d events, not %d", key, got, n)
			}
		}
	}
}

// runScript lets a model run one script and returns what came back.
func runScript(t *testing.T, s *site, code string, ask permission.Asker) (string, *talk) {
	t.Helper()
	m := steps(calls("code_mode", scriptInput(code)), says("done"))
	k := s.talk(m, ask)
	k.turn("go")
	return answers(m.seen()[1])[0], k
}

// R-G3, S33: an inner call is asked about like a direct one, with the raw names and its own intent; a refusal is its result.
func codeModeQuestion(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}})
	var asked []permission.Question
	got, k := runScript(t, s, `
		const one = tools.call("mcp__s__echo", {intent: "say yes", arguments: {text: "yes"}});
		const two = tools.call("mcp__s__add", {intent: "add", arguments: {a: 1, b: 1}});
		const three = tools.call("mcp__s__echo", {intent: "say it again", arguments: {text: "again"}});
		return [one, two, three].map(r => r.content || r.error).join("|");`,
		func(_ context.Context, q permission.Question) (permission.Answer, error) {
			asked = append(asked, q)
			if q.Remote == "add" {
				return permission.No, nil
			}
			return permission.Session, nil
		})
	if got != "yes|the person declined this call|again" {
		t.Errorf("the script got %q", got)
	}
	if len(asked) != 2 || asked[0].Server != "s" || asked[0].Remote != "echo" || asked[0].Intent != "say yes" || !strings.Contains(string(asked[0].Input), `"text":"yes"`) {
		t.Errorf("questions: %+v", asked)
	}
	if e := k.of(agent.EventAsk); len(e) != 2 || e[0].Call.Under != "c1" {
		t.Errorf("events: %+v", e)
	}
}

// R-G4, S33: a script reaches what is hidden from direct use, and nothing that is excluded from Code Mode, whatever it
// does to find it. Nothing of that reaches the server.
func codeModeRights(t *testing.T, zoo string) {
	log := filepath.Join(t.TempDir(), "log")
	s := openSite(t, zoo, plan{
		servers: map[string][]string{"s": {"live", "log=" + log}},
		settings: `{"permissions": {"allow": ["*"], "deny": ["mcp__s__env"]},
			"capabilities": {"tools": {"disabled": ["mcp__s__echo"], "code_mode": {"disabled": ["mcp__s__add", "write"]}}}}`,
	})
	got, _ := runScript(t, s, `
		const input = {intent: "try", arguments: {text: "hidden", a: 1, b: 2}};
		const out = [];
		for (const name of ["mcp__s__echo", "mcp__s__add", "mcp__s__env", "code_mode", "MCP__S__ADD", "mcp__s__add ", "mcp__other__add"]) {
			const r = tools.call(name, input);
			out.push(name + ": " + (r.content || r.error));
		}
		out.push("write: " + tools.call("write", {intent: "try", path: "x", content: "x"}).error);
		out.push("listed: " + tools.list().map(t => t.name).filter(n => ["mcp__s__echo", "mcp__s__add", "mcp__s__env", "code_mode", "write"].includes(n)).join(" "));
		out.push("found: " + tools.search("adds two numbers").map(t => t.name).filter(n => n === "mcp__s__add").length);
		let described;
		try { described = tools.describe("mcp__s__add").name } catch (e) { described = "error" }
		out.push("described: " + described);
		return out.join("\n");`, nil)
	for i, want := range []string{"mcp__s__echo: hidden", "mcp__s__add: mcp__s__add is excluded from Code Mode", "denied by the permission rule", "cannot be called from inside",
		"there is no tool named", "there is no tool named", "there is no tool named", `write: write is excluded from Code Mode by "write"`, "listed: mcp__s__echo", "found: 0", "described: error"} {
		lines := strings.Split(got, "\n")
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d: no %q in\n%s", i, want, got)
		}
	}
	if b, err := os.ReadFile(log); err != nil || strings.Count(string(b), `"tools/call"`) != 1 {
		t.Errorf("the server got other calls than the one allowed: %v\n%s", err, b)
	}
	if _, err := os.Stat(filepath.Join(s.f.cwd, "x")); err == nil {
		t.Error("an excluded tool wrote a file")
	}
}

// R-N2, R-N3: the input of an inner call is validated like that of a direct one, before the server hears of it; only arguments
// reach the server, an intent of its own among them untouched; history holds the whole call.
func codeModeInput(t *testing.T, zoo string) {
	log := filepath.Join(t.TempDir(), "log")
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live", "log=" + log}}, settings: allowAll})
	got, k := runScript(t, s, `
		const bad = [{arguments: {}}, {intent: " \n", arguments: {}}, {intent: 5, arguments: {}}, {intent: "x"}, {intent: "x", arguments: []},
			{intent: "x", arguments: {}, text: "y"}, {text: "y"}, undefined, "x"];
		const out = bad.map(input => tools.call("mcp__s__echo", input)).filter(r => r.success || !r.error).length;
		const good = tools.call("mcp__s__echo", {intent: "outer words", arguments: {text: "fine", intent: "inner words"}});
		return out + " " + good.content;`, nil)
	if got != "0 fine" {
		t.Errorf("the script got %q", got)
	}
	b, err := os.ReadFile(log)
	if err != nil || strings.Count(string(b), `"tools/call"`) != 1 || !strings.Contains(string(b), `"intent":"inner words"`) || strings.Contains(string(b), "outer words") {
		t.Errorf("the server got: %v\n%s", err, b)
	}
	wantParts(t, k.file(), `"intent":"outer words"`)
	direct := steps(calls("mcp__s__echo", `{"arguments":{"text":"x"}}`, "mcp__s__echo", with(`{"text":"direct"}`)), says("done"))
	s.talk(direct, nil).turn("direct")
	if a := answers(direct.seen()[1]); !strings.Contains(a[0], "intent") || a[1] != "direct" {
		t.Errorf("direct calls: %q", a)
	}
}

// R-D5, S33: what a server tells of its secrets is not seen by a script, nor kept.
func codeModeSecrets(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{
		servers: map[string][]string{"s": {"live"}}, settings: allowAll, serverEnv: map[string]string{"TOKEN": "${SECRET}"},
		env: map[string]string{"SECRET": canaryEnv},
	})
	got, k := runScript(t, s, `
		const text = tools.call("mcp__s__env", {intent: "look around", arguments: {}}).content;
		const at = text.indexOf("TOKEN=") + 6;
		const piece = text.slice(at, at + 40);
		return [piece.split("").join("."), piece];`, nil)
	if strings.Contains(strings.ReplaceAll(got, ".", ""), canaryEnv) || !strings.Contains(got, "[redacted]") {
		t.Errorf("the script got %q", got)
	}
	if found := leaks([]byte(k.file())); found != nil {
		t.Errorf("the session holds %v", found)
	}
}

// R-G5: the number of calls, and the size of a result, against a real server.
func codeModeBounds(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}, settings: allowAll})
	got, _ := runScript(t, s, `
		const input = n => ({name: "mcp__s__big", input: {intent: "fill", arguments: {bytes: n}}});
		const size = tools.callAll([input(1 << 20 - 100), input((1 << 20) + 1)]);
		const many = tools.callAll(Array.from({length: 220}, () => input(1)));
		return [size[1].success, size[1].error, many.filter(r => r.success).length, many[219].error, tools.budget().callsLeft].join("|");`, nil)
	wantParts(t, got, "false|the result has", "|198|not made: a script may make 200 calls|0")
}

// R-P6, R-G5: an interruption in the middle of a script's calls ends the turn, and the next turn works.
func codeModeInterrupted(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}}, settings: allowAll})
	m := steps(calls("code_mode", scriptInput(`tools.callAll([1, 2].map(n => ({name: "mcp__s__meet", input: {intent: "wait", arguments: {n: 3}}}))); return "no"`)),
		calls("mcp__s__echo", with(`{"text":"alive"}`)), says("done"))
	k := s.talk(m, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	under := 0
	k.also = func(e agent.Event) {
		if e.Kind == agent.EventRunning && e.Call.Under != "" {
			if under++; under == 2 {
				cancel()
			}
		}
	}
	turn, err := k.c.Send(ctx, []provider.Block{{Kind: provider.Text, Text: "go"}})
	if turn.Stop != agent.StopInterrupted || err != nil {
		t.Errorf("the turn ended with %s: %v", turn.Stop, err)
	}
	k.turn("again")
	if a := answers(m.seen()[2]); len(a) != 1 || a[0] != "alive" {
		t.Errorf("after the interruption: %q", a)
	}
}
