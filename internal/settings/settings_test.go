package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// put writes a file and returns its path.
func put(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const fullGlobal = `{
  "provider": "anthropic",
  "model": "m1",
  "endpoints": {"local": {"base_url": "http://127.0.0.1:8080/v1", "api_key_env": "LOCAL_KEY", "model": "x"}, "far": {"base_url": "https://far.example/v1"}},
  "permissions": {"allow": ["read"], "ask": ["bash"], "deny": ["write"]},
  "capabilities": {
    "mcp_approvals": {"/p/.mcp.json": {"a": false}},
    "tools": {"disabled": ["d1"], "code_mode": {"disabled": ["c1"]}},
    "mcp_result_bytes": 5000
  },
  "hooks": [
    {"event": "before_tool", "tools": ["bash"], "command": ["h", "x"], "timeout_ms": 5, "on_failure": "block"},
    {"event": "after_tool", "command": ["h"]}
  ],
  "workspace": {"extra_roots": ["/srv"]},
  "max_turns": 7
}`

// R-G3, R-G4: every key of the global file.
func TestLoadGlobal(t *testing.T) {
	s, warnings, err := Load(put(t, fullGlobal), filepath.Join(t.TempDir(), "none"))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := Settings{
		Provider: "anthropic", Model: "m1",
		Endpoints: map[string]Endpoint{"local": {"http://127.0.0.1:8080/v1", "LOCAL_KEY", "x"}, "far": {BaseURL: "https://far.example/v1"}},
		Allow:     []string{"read"}, Ask: []string{"bash"}, Deny: []string{"write"},
		ExcludeDirect: []string{"d1"}, ExcludeCodeMode: []string{"c1"},
		Hooks: []Hook{
			{Event: "before_tool", Tools: []string{"bash"}, Command: []string{"h", "x"}, TimeoutMs: 5, OnFailure: "block"},
			{Event: "after_tool", Command: []string{"h"}, TimeoutMs: 10000, OnFailure: "warn"},
		},
		WorkspaceRoots: []string{"/srv"}, ResultLimit: 5000, MaxTurns: 7,
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v\nwant %+v", s, want)
	}
}

// R-A2, S3: what a project may and may not set.
func TestLoadProject(t *testing.T) {
	project := put(t, `{
  "provider": "openai", "max_turns": 9,
  "endpoints": {"evil": {"base_url": "https://evil"}},
  "permissions": {"allow": ["*"], "ask": ["edit"], "deny": ["find"]},
  "capabilities": {"mcp_approvals": {"/p": {"a": {"version": 1}}}, "tools": {"disabled": ["d2"], "code_mode": {"disabled": ["c2"]}}},
  "hooks": [{"event": "before_tool", "command": ["evil"]}],
  "workspace": {"extra_roots": ["/"]},
  "later": 1
}`)
	s, warnings, err := Load(put(t, fullGlobal), project)
	if err != nil {
		t.Fatal(err)
	}
	if s.Provider != "openai" || s.Model != "" || s.MaxTurns != 9 || s.ResultLimit != 5000 {
		t.Errorf("overrides: %+v", s)
	}
	joined := fmt.Sprint(s.Allow, s.Ask, s.Deny, s.ExcludeDirect, s.ExcludeCodeMode, s.WorkspaceRoots, len(s.Endpoints), len(s.Hooks))
	if joined != "[read] [bash edit] [write find] [d1 d2] [c1 c2] [/srv] 2 2" {
		t.Errorf("lists: %s", joined)
	}
	var keys []string
	for _, w := range warnings {
		if w.Path != project || w.Text == "" {
			t.Errorf("warning %+v", w)
		}
		keys = append(keys, w.Key)
	}
	if got := strings.Join(keys, " "); got != "endpoints permissions.allow capabilities.mcp_approvals hooks workspace later" {
		t.Errorf("warned of %s", got)
	}
}

func TestLoadDefaults(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, path := range []string{none, put(t, ""), put(t, " \n"), put(t, "{}"), put(t, "\xef\xbb\xbf{}")} {
		s, warnings, err := Load(path, none)
		if err != nil || len(warnings) > 0 || s.MaxTurns != 100 || s.ResultLimit != 102400 {
			t.Errorf("%+v, %v, %v", s, warnings, err)
		}
	}
	same := put(t, `{"permissions":{"allow":["a"],"deny":["b"]}}`)
	if s, _, err := Load(same, same); err != nil || len(s.Deny) != 1 || len(s.Allow) != 1 {
		t.Errorf("one file for both: %+v, %v", s, err)
	}
}

// Mistakes name file, line, column and key, and nothing is read over that would fail open.
func TestLoadMistakes(t *testing.T) {
	tests := []struct{ in, want string }{
		{"{\n // c\n}", ":2:2: comments are not part of JSON"},
		{"{\"a\":1,\n}", ":1:7: there is a comma before the closing"},
		{"[]", ":1:1: must be an object and is an array"},
		{`{"provider":1}`, ":1:13: provider: must be a string and is a number"},
		{`{"provider":null}`, "provider: must be a string and is null"},
		{`{"provider":" "}`, "provider: must not be empty"},
		{`{"Permissions":{}}`, ":1:2: Permissions: the name differs from permissions in case alone"},
		{`{"permissions":{"Deny":["x"]}}`, "permissions.Deny: the name differs from deny in case alone"},
		{`{"permissions":[]}`, "permissions: must be an object and is an array"},
		{`{"permissions":{"deny":"x"}}`, "permissions.deny: must be an array of strings and is a string"},
		{`{"permissions":{"deny":["a",1]}}`, "permissions.deny[1]: must be a string and is a number"},
		{`{"permissions":{"deny":[""]}}`, "permissions.deny[0]: must not be empty"},
		{`{"permissions":{"deny":[],"deny":[]}}`, `the name "deny" stands twice`},
		{`{"capabilities":{"tools":[]}}`, "capabilities.tools: must be an object"},
		{`{"capabilities":{"tools":{"code_mode":{"disabled":1}}}}`, "capabilities.tools.code_mode.disabled: must be an array"},
		{`{"capabilities":{"mcp_approvals":true}}`, "capabilities.mcp_approvals: must be an object"},
		{`{"capabilities":{"mcp_result_bytes":0}}`, "capabilities.mcp_result_bytes: must be a whole number from 1 to"},
		{`{"max_turns":1.5}`, "max_turns: must be a whole number"},
		{`{"max_turns":1e2}`, "max_turns: must be a whole number"},
		{`{"max_turns":"7"}`, "max_turns: must be a number and is a string"},
		{`{"max_turns":99999999999999999999}`, "max_turns: must be a whole number"},
		{`{"hooks":{}}`, "hooks: must be an array"},
		{`{"hooks":[{"event":"x","command":["a"]}]}`, "hooks[0].event: must be one of before_tool, after_tool"},
		{`{"hooks":[{"command":["a"]}]}`, "hooks[0]: event is missing"},
		{`{"hooks":[{"event":"after_tool"}]}`, "hooks[0]: command is missing"},
		{`{"hooks":[{"event":"after_tool","command":[]}]}`, "hooks[0]: command is missing"},
		{`{"hooks":[{"event":"after_tool","command":"a b"}]}`, "hooks[0].command: must be an array"},
		{`{"hooks":[{"event":"after_tool","command":["a"],"timeout_ms":60001}]}`, "hooks[0].timeout_ms: must be a whole number from 1 to 60000"},
		{`{"hooks":[{"event":"after_tool","command":["a"],"on_failure":"ignore"}]}`, "hooks[0].on_failure: must be one of warn, block"},
		{`{"hooks":[1]}`, "hooks[0]: must be an object"},
		{`{"workspace":{"extra_roots":["rel"]}}`, "workspace.extra_roots[0]: must be an absolute path"},
		{`{"endpoints":{"a":{}}}`, "endpoints.a: base_url is missing"},
		{`{"endpoints":{"a":{"base_url":"http://far.example"}}}`, "endpoints.a.base_url: must be an https URL"},
		{`{"endpoints":{"a":{"base_url":"https://u:p@x"}}}`, "endpoints.a.base_url: must be an https URL"},
		{`{"endpoints":{"a":{"base_url":"https://x","api_key_env":"sk-123"}}}`, "endpoints.a.api_key_env: must be the name of an environment variable"},
		{`{"endpoints":{"\u001b[31m":{"base_url":1}}}`, `endpoints.\x1b[31m.base_url: must be a string`},
	}
	for _, tt := range tests {
		path := put(t, tt.in)
		_, _, err := Load(path, "")
		if err == nil || !strings.HasPrefix(err.Error(), path+":") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.in, err, tt.want)
			continue
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Line < 1 {
			t.Errorf("%s: no place: %v", tt.in, err)
		}
	}
	both := `{"max_turns":0,"provider":1}`
	_, _, err := Load(put(t, both), put(t, both))
	if n := len(strings.Split(err.Error(), "\n")); n != 4 {
		t.Errorf("%d mistakes of two files: %v", n, err)
	}
	if _, _, err := Load(t.TempDir(), ""); err == nil {
		t.Error("a folder is read")
	}
	if _, _, err := Load(put(t, strings.Repeat(" ", MaxBytes+1)), ""); err == nil {
		t.Error("a huge file is read")
	}
}

// FuzzLoad: no file panics, and every error has a place.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(fullGlobal))
	f.Add([]byte(`{"hooks":[null],"permissions":{"deny":[1]},"Model":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := parseBytes("/p", data)
		if err != nil || root == nil {
			return
		}
		for _, project := range []bool{false, true} {
			r := &reader{path: "/p", project: project, data: data}
			r.document(root)
			for _, err := range r.errs {
				if e, ok := errors.AsType[*Error](err); !ok || e.Line < 1 || strings.ContainsAny(e.Error(), "\x1b\n\u202e") {
					t.Fatalf("%#v", err)
				}
			}
			if project && (len(r.s.Allow) > 0 || len(r.s.Hooks) > 0 || len(r.s.Endpoints) > 0 || len(r.s.WorkspaceRoots) > 0) {
				t.Fatalf("a project sets %+v", r.s)
			}
		}
	})
}
