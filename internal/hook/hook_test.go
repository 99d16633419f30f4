package hook

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// roleEnv makes the test binary a hook; os.Args[1:] are its own.
const roleEnv = "MAGI_TEST_HOOK_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" {
		playRole(os.Args[1], os.Args[2:])
		return
	}
	goleak.VerifyTestMain(m)
}

// playRole is what the test binary does as a hook.
func playRole(role string, rest []string) {
	switch role {
	case "save": // the document and the environment into files
		text, _ := io.ReadAll(os.Stdin)
		_ = os.WriteFile(rest[0], text, 0o600)
		_ = os.WriteFile(rest[0]+".env", []byte(strings.Join(os.Environ(), "\n")), 0o600)
		dir, _ := os.Getwd()
		_ = os.WriteFile(rest[0]+".dir", []byte(dir), 0o600)
	case "say": // stdout, stderr, exit code; stdin is left alone
		fmt.Fprint(os.Stdout, rest[0])
		fmt.Fprint(os.Stderr, rest[1])
		code := 0
		_, _ = fmt.Sscan(rest[2], &code)
		os.Exit(code)
	case "flood":
		line := strings.Repeat("y", 1000) + "\n"
		for range 2_000 {
			fmt.Fprint(os.Stdout, line)
			fmt.Fprint(os.Stderr, line)
		}
		os.Exit(1)
	default:
		playUnixRole(role, rest)
	}
}

// as is a hook that the test binary plays.
func as(role string, rest ...string) Hook {
	return Hook{Event: BeforeTool, Command: append([]string{os.Args[0], role}, rest...)}
}

func (h Hook) blocking() Hook { h.Block = true; return h }

func (h Hook) after() Hook { h.Event = AfterTool; return h }

func runner(t *testing.T, hooks ...Hook) *Runner {
	t.Helper()
	return NewRunner(hooks, t.TempDir(), []string{roleEnv + "=1", "GIVEN=yes", "GORACE=atexit_sleep_ms=0"})
}

var before = Payload{Event: BeforeTool, Dir: "/w", CallID: "1", Tool: "bash", Input: jsontext.Value(`{"intent":"x","command":"ls"}`)}

// R-G7: off by default.
func TestNone(t *testing.T) {
	var none *Runner
	for _, r := range []*Runner{none, {}, NewRunner(nil, "/", nil)} {
		if w, refusal := r.Run(t.Context(), before); w != nil || refusal != "" {
			t.Errorf("%v, %q", w, refusal)
		}
	}
}

// R-G7: one document on stdin, whole and unchanged, in the given folder and environment only.
func TestDocument(t *testing.T) {
	t.Setenv("MAGI_CANARY_KEY", "canary")
	file := filepath.Join(t.TempDir(), "saved")
	r := runner(t, as("save", file).after())
	p := Payload{
		Event: AfterTool, Session: "s", Dir: "/w", CallID: "c1", Tool: "mcp__a__b", Server: "a", Path: []string{"outer", "inner"},
		Input: jsontext.Value(`{"intent":"x","arguments":{"n":12345678901234567890123.0,"n":1,"t":"\u2028\u0000<>&"}}`), Result: "bad \xff text", IsError: true,
	}
	if w, refusal := r.Run(t.Context(), p); w != nil || refusal != "" {
		t.Fatalf("%v, %q", w, refusal)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), "\n") != 1 || !strings.HasSuffix(string(text), "\n") {
		t.Errorf("not one line: %q", text)
	}
	var got Payload
	if err := json.Unmarshal(text, &got, jsontext.AllowDuplicateNames(true), json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	p.Result = "bad \ufffd text"
	if !strings.Contains(string(got.Input), `"n":12345678901234567890123.0,"n":1`) {
		t.Errorf("%s", got.Input)
	}
	got.Input = p.Input
	if d := cmp.Diff(p, got); d != "" {
		t.Error(d)
	}
	env, _ := os.ReadFile(file + ".env")
	if strings.Contains(string(env), "canary") || !strings.Contains(string(env), "GIVEN=yes") {
		t.Errorf("%s", env)
	}
	if dir, _ := os.ReadFile(file + ".dir"); string(dir) != r.dir {
		t.Errorf("ran in %s", dir)
	}
}

// R-G7: a hook that looks for words finds them however the model spelled them in JSON.
func TestEscapes(t *testing.T) {
	document, err := encode(Payload{Event: BeforeTool, Tool: "bash", Input: jsontext.Value(`{"\u0063ommand": "git pu\u0073h \u002d-force \/ \u00e9"}`)})
	if err != nil || !strings.Contains(string(document), `"input":{"command":"git push --force / é"}`) {
		t.Errorf("%s, %v", document, err)
	}
}

// The schema that users get describes the document that hooks get.
func TestPayloadSchema(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Type string   `json:"type"`
			Enum []string `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal([]byte(PayloadSchema), &schema); err != nil {
		t.Fatal(err)
	}
	full := before
	full.Event, full.Session, full.Server, full.Path, full.Result, full.IsError = AfterTool, "s", "a", []string{"x"}, "r", true
	for _, p := range []Payload{before, full, {Event: BeforeTool}} {
		document, err := encode(p)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]jsontext.Value
		if err := json.Unmarshal(document, &members); err != nil {
			t.Fatal(err)
		}
		for name, value := range members {
			property, ok := schema.Properties[name]
			kind := map[jsontext.Kind]string{'"': "string", '[': "array", 't': "boolean", 'f': "boolean"}[value.Kind()]
			if !ok || property.Type != "" && property.Type != kind {
				t.Errorf("%s: %s is not what the schema says", name, value)
			}
			if property.Enum != nil && !slices.Contains(property.Enum, strings.Trim(string(value), `"`)) {
				t.Errorf("%s: %s", name, value)
			}
		}
		if p.Event == BeforeTool && (members["isError"] != nil || members["result"] != nil) {
			t.Errorf("%s: there is no result before a call", document)
		}
		for _, name := range schema.Required {
			if members[name] == nil {
				t.Errorf("%s is required and absent", name)
			}
		}
		if p.Session != "" && len(members) != len(schema.Properties) {
			t.Errorf("%d members, %d in the schema", len(members), len(schema.Properties))
		}
	}
}

func TestVerdicts(t *testing.T) {
	say := func(out, err, code string) Hook { return as("say", out, err, code) }
	name := filepath.Base(os.Args[0])
	missing := Hook{Event: BeforeTool, Command: []string{"/no/such/program"}}
	for _, tc := range []struct {
		what    string
		hook    Hook
		warning string // of a hook that only warns
		refusal string // whatever the policy
		blocks  bool   // whether the warning is a refusal with Block
	}{
		{"silent", say("", "", "0"), "", "", false},
		{"chatty", say("all {good}", "noise", "0"), "", "", false},
		{"exit 2", say("", "no \x1b[31mred\u202e things\r\n\n", "2"), "", name + ": no red things", false},
		{"exit 2, silent", say(`{"decision":"allow"}`, " \n", "2"), "", name + " gave no reason", false},
		{"json block", say(` {"decision":"block","reason":"not today","more":1}`+"\n", "", "0"), "", name + ": not today", false},
		{"json block, no reason", say(`{"decision":"block"}`, "", "0"), "", name + " gave no reason", false},
		{"json allow", say(`{"decision":"allow"}`, "", "0"), "", "", false},
		{"json without decision", say(`{"x":{}}`, "", "0"), "", "", false},
		{"bad json", say(`{"decision":"blo`, "", "0"), "not a decision in JSON", "", true},
		{"twice", say(`{"decision":"allow","decision":"block"}`, "", "0"), "not a decision in JSON", "", true},
		{"wrong type", say(`{"decision":true}`, "", "0"), "not a decision in JSON", "", true},
		{"unknown decision", say(`{"decision":"deny\u001b"}`, "", "0"), `unknown decision "deny\x1b"`, "", true},
		{"exit 1", say("", "trace\x1b[0m", "1"), "failed: exit status 1: trace", "", true},
		{"exit 3", say(`{"decision":"block"}`, "", "3"), "failed: exit status 3", "", true},
		{"missing", missing, "program failed: its command was not found", "", true},
		{"no command", Hook{Event: BeforeTool}, "has no command", "", true},
		{"folder", Hook{Event: BeforeTool, Command: []string{"/"}}, "could not be started", "", true},
	} {
		check := func(how string, h Hook, wantWarning, wantRefusal string) {
			t.Helper()
			p := before
			p.Event = h.Event
			w, refusal := runner(t, h).Run(t.Context(), p)
			warning := strings.Join(w, "|")
			ok := (warning == "") == (wantWarning == "") && strings.Contains(warning, wantWarning) &&
				(refusal == "") == (wantRefusal == "") && strings.Contains(refusal, wantRefusal)
			if !ok {
				t.Errorf("%s, %s: warning %q, refusal %q", tc.what, how, warning, refusal)
			}
			if warning != "" && !strings.HasPrefix(warning, "hook ") || strings.HasPrefix(refusal, "hook ") {
				t.Errorf("%s: warning %q, refusal %q", tc.what, warning, refusal)
			}
			if strings.ContainsAny(warning+refusal, "\x1b\u202e\r") {
				t.Errorf("%s: control characters in %q", tc.what, warning+refusal) // S27
			}
		}
		check("warn", tc.hook, tc.warning, tc.refusal)
		if tc.blocks {
			check("block", tc.hook.blocking(), "", tc.warning)
		} else {
			check("block", tc.hook.blocking(), tc.warning, tc.refusal)
		}
		check("after", tc.hook.after().blocking(), tc.warning+tc.refusal, "") // nothing can refuse what has happened
	}
}

// Hooks run in order, only those that match, and a refusal ends the row.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	file := func(n string) string { return filepath.Join(dir, n) }
	only := func(h Hook, patterns ...string) Hook { h.Tools = patterns; return h }
	r := runner(t,
		as("say", "", "first", "1"),
		only(as("save", file("other")), "write", "mcp__*"),
		only(as("save", file("match")), "write", "ba*"),
		as("save", file("after")).after(),
		as("say", "", "second", "1"),
		as("say", "", "stop", "2"),
		as("save", file("late")),
	)
	w, refusal := r.Run(t.Context(), before)
	if len(w) != 2 || !strings.HasSuffix(w[0], "first") || !strings.HasSuffix(w[1], "second") || !strings.HasSuffix(refusal, ": stop") {
		t.Errorf("%q, %q", w, refusal)
	}
	for name, want := range map[string]bool{"other": false, "match": true, "after": false, "late": false} {
		if _, err := os.Stat(file(name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The runner keeps nothing of its caller's: what is changed later has no effect.
func TestCopies(t *testing.T) {
	hooks := []Hook{as("say", "", "x", "2")}
	hooks[0].Tools = []string{"bash"}
	r := runner(t, hooks...)
	hooks[0].Tools[0], hooks[0].Command[1] = "none", "save"
	if _, refusal := r.Run(t.Context(), before); refusal == "" {
		t.Error("the hook was changed from outside")
	}
}

// What a hook reads and writes is bounded, and a hook that reads nothing does no harm.
func TestBounds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "saved")
	p := before
	p.Event, p.Result = AfterTool, strings.Repeat("r", 10*maxResult)
	p.Input = jsontext.Value(`"` + strings.Repeat("i", 1<<20) + `"`) // more than a pipe holds
	w, _ := runner(t, as("save", file).after(), as("say", "", "", "0").after(), as("flood").after()).Run(t.Context(), p)
	if len(w) != 1 || len(w[0]) > maxReason+200 || !strings.Contains(w[0], "exit status 1: yyy") {
		t.Errorf("%d warnings, %.200q", len(w), w)
	}
	st, err := os.Stat(file)
	if err != nil || st.Size() > 1<<20+maxResult+1000 {
		t.Errorf("%v bytes, %v", st.Size(), err)
	}
	p = before
	p.Input = jsontext.Value(`"` + strings.Repeat("i", maxDocument) + `"`)
	if _, refusal := runner(t, as("say", "", "", "0").blocking()).Run(t.Context(), p); !strings.Contains(refusal, "more than 4194304 bytes") {
		t.Error(refusal)
	}
	p.Input = jsontext.Value(`{"half":`)
	if _, refusal := runner(t, as("say", "", "", "0").blocking()).Run(t.Context(), p); !strings.Contains(refusal, "cannot be written as JSON") {
		t.Error(refusal)
	}
}

// A call whose turn has ended does not go on, whatever the policy.
func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "saved")
	if _, refusal := runner(t, as("save", file)).Run(ctx, before); !strings.Contains(refusal, "interrupted") {
		t.Error(refusal)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the hook was started")
	}
}

func TestTimeoutBounds(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		0: defaultTimeout, -1: defaultTimeout, time.Millisecond: time.Millisecond, time.Hour: maxTimeout,
	} {
		if got := (Hook{Timeout: given}).timeout(); got != want {
			t.Errorf("%v: %v", given, got)
		}
	}
}

// FuzzHookOutput gives a hook any output and exit code: a call goes on only by exit code 0 without a sign of a
// decision, and what is shown is bounded and safe.
func FuzzHookOutput(f *testing.F) {
	f.Add(0, []byte(`{"decision":"block","reason":"x"}`), []byte(""))
	f.Add(0, []byte(`{"decision":"block","reason":`), []byte(""))
	f.Add(0, []byte("\xef\xbb\xbf {\"decision\":\"allow\"}"), []byte("x"))
	f.Add(2, []byte(""), []byte("no\x1b[2J\u202e"))
	f.Add(-1, []byte("{}"), []byte(strings.Repeat("x", 5000)))
	f.Fuzz(func(t *testing.T, code int, stdout, stderr []byte) {
		v := read(code, "exit status", stdout, stderr)
		text := v.text(Hook{Command: []string{"/x/hook\x1b"}})
		if len(text) > maxReason+100 {
			t.Fatalf("%d bytes", len(text))
		}
		for _, r := range text {
			if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\u202e' {
				t.Fatalf("%q", text)
			}
		}
		if code == refuse && !v.refused || code != 0 && text == "" {
			t.Fatalf("exit code %d lets the call go on: %+v", code, v)
		}
		if code == 0 && !strings.Contains(string(stdout), "{") && text != "" {
			t.Fatalf("%q from %q", text, stdout)
		}
		if v.refused && v.failure != "" || text == "" && v != (verdict{}) {
			t.Fatalf("%q of %+v", text, v)
		}
	})
}
