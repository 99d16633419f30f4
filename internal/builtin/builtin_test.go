package builtin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"magi-code/internal/tool"
)

// roleEnv makes the test binary one of the processes that commands in tests start.
const roleEnv = "MAGI_TEST_BUILTIN_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		playRole(role)
		return
	}
	goleak.VerifyTestMain(m)
}

// workspace makes a folder with files in it and returns tools that work there.
func workspace(t *testing.T, files map[string]string) Options {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "ws")
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return Options{Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=atexit_sleep_ms=0"}}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type args map[string]any

// parsed makes the call as the agent would, intent checked and taken out.
func parsed(t *testing.T, o Options, name string, a args) (tool.Tool, tool.Call) {
	t.Helper()
	set, err := tool.NewSet(Tools(o)...)
	if err != nil {
		t.Fatal(err)
	}
	tl, ok := set.Get(name)
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	input := args{"intent": "test"}
	for k, v := range a {
		input[k] = v
	}
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tool.Parse(tl, "1", text)
	if err != nil {
		t.Fatal(err)
	}
	return tl, c
}

func call(t *testing.T, o Options, name string, a args) tool.Result {
	t.Helper()
	return callContext(t.Context(), t, o, name, a)
}

func callContext(ctx context.Context, t *testing.T, o Options, name string, a args) tool.Result {
	t.Helper()
	tl, c := parsed(t, o, name, a)
	r, err := tl.Run(ctx, c)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// good returns the text of a call that must succeed.
func good(t *testing.T, o Options, name string, a args) string {
	t.Helper()
	r := call(t, o, name, a)
	if r.IsError {
		t.Fatalf("%s %v: %s", name, a, r.Plain())
	}
	return r.Plain()
}

// bad fails unless the call fails with a text that holds every given word.
func bad(t *testing.T, o Options, name string, a args, words ...string) {
	t.Helper()
	r := call(t, o, name, a)
	text := r.Plain()
	shown := clip(fmt.Sprint(a), 200)
	if !r.IsError {
		t.Errorf("%s %s succeeded: %.300s", name, shown, text)
		return
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s %s: %q lacks %q", name, shown, text, w)
		}
	}
	if strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%s %s: the error repeats control characters: %q", name, shown, text) // S27
	}
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// R-G2: seven tools; the schema of each is closed, begins with a required intent, and lists the fields that are read.
func TestSchemas(t *testing.T) {
	names := ""
	for _, tl := range Tools(Options{Dir: "/"}) {
		names += tl.Name + " "
		var schema struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
			Closed     *bool          `json:"additionalProperties"`
		}
		if err := json.Unmarshal(tl.Schema, &schema, json.RejectUnknownMembers(true)); err != nil {
			t.Errorf("%s: %v", tl.Name, err)
		}
		if schema.Type != "object" || schema.Closed == nil || *schema.Closed || len(schema.Required) == 0 || schema.Required[0] != "intent" {
			t.Errorf("%s: %s", tl.Name, tl.Schema)
		}
		if !strings.HasPrefix(string(tl.Schema), `{"type":"object","properties":{"intent":`) {
			t.Errorf("%s: intent does not come first", tl.Name)
		}
		var read []string
		switch tl.Name {
		case "read":
			read = fields[readArgs]()
		case "list_files":
			read = fields[listArgs]()
		case "find":
			read = fields[findArgs]()
		case "grep":
			read = fields[grepArgs]()
		case "write":
			read = fields[writeArgs]()
		case "edit":
			read = fields[editArgs]()
		case "bash":
			read = fields[bashArgs]()
		}
		for _, f := range read {
			if schema.Properties[f] == nil {
				t.Errorf("%s: the schema lacks %q", tl.Name, f)
			}
		}
		if len(read) != len(schema.Properties) {
			t.Errorf("%s: %v read, %v in the schema", tl.Name, read, schema.Properties)
		}
		if writes := tl.Name == "write" || tl.Name == "edit" || tl.Name == "bash"; tl.ReadOnly == writes || tl.Origin != tool.Builtin {
			t.Errorf("%s: ReadOnly %v, Origin %q", tl.Name, tl.ReadOnly, tl.Origin)
		}
	}
	if names != "read list_files find grep write edit bash " {
		t.Error(names)
	}
}

// R-G2: unknown fields and wrong types are named, in every tool.
func TestStrictArguments(t *testing.T) {
	o := workspace(t, map[string]string{"a": "x"})
	for _, name := range []string{"read", "list_files", "find", "grep", "write", "edit", "bash"} {
		bad(t, o, name, args{"colour\x1b[31m": 1}, "unknown field", "colour", "intent")
		bad(t, o, name, args{"Path": "a"}, `unknown field "Path"`)
	}
	bad(t, o, "read", args{"path": 7}, `field "path" must be a string`)
	bad(t, o, "read", args{"path": "a", "limit": "many"}, `field "limit" must be an integer`)
	bad(t, o, "read", args{"path": "a", "limit": 1.5}, `field "limit" must be an integer`)
	bad(t, o, "grep", args{"pattern": "a", "ignore_case": "yes"}, `field "ignore_case" must be true or false`)
	bad(t, o, "read", args{"path": "a", "limit": 1e300}, "integer")
	bad(t, o, "read", args{"path": "a", "offset": -1}, "offset must be between")
	bad(t, o, "read", nil, "path is empty")
	bad(t, o, "write", args{"path": "a"}, "content is missing")
	bad(t, o, "edit", args{"path": "a", "old": "x"}, "new is missing")
	bad(t, o, "edit", args{"path": "a", "new": "x"}, "old is missing")
	for _, n := range []any{1, 1.0, "1", " 1 "} { // what models write for the same number
		wantText(t, good(t, o, "read", args{"path": "a", "limit": n}), "1\tx")
	}
}

// Paths stay inside the workspace, whatever they are called and wherever links lead.
func TestConfinement(t *testing.T) {
	o := workspace(t, map[string]string{"in/a.txt": "inside", "dir/b.txt": "b"})
	outside := filepath.Dir(o.Dir)
	put(t, filepath.Join(outside, "secret.txt"), "secret")
	put(t, filepath.Join(outside, "ws-other", "x"), "secret")
	for name, target := range map[string]string{
		"out": outside, "outfile": filepath.Join(outside, "secret.txt"), "rel": "../secret.txt", "dangling": "nowhere",
		"outdangling": "../new.txt", "abs": filepath.Join(o.Dir, "in"), "loop": "loop", "ok": "in/a.txt",
	} {
		if err := os.Symlink(target, filepath.Join(o.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"../secret.txt", "in/../../secret.txt", filepath.Join(outside, "secret.txt"), "out/secret.txt", "outfile", "rel", "/etc/passwd",
		"../ws-other/x", "/", "..",
	} {
		const why = "outside the workspace; add the folder to workspace.extra_roots in $MC_HOME/settings.json to allow it"
		bad(t, o, "read", args{"path": path}, why)
		bad(t, o, "write", args{"path": path, "content": "x"}, why)
		bad(t, o, "edit", args{"path": path, "old": "secret", "new": "x"}, why)
		bad(t, o, "list_files", args{"path": path}, why)
		bad(t, o, "grep", args{"path": path, "pattern": "s"}, why)
		bad(t, o, "find", args{"path": path, "pattern": "*"}, why)
		bad(t, o, "bash", args{"cwd": path, "command": "pwd"}, why)
	}
	bad(t, o, "write", args{"path": "out/new.txt", "content": "x"}, "outside")
	bad(t, o, "write", args{"path": "outdangling", "content": "x"}, "symbolic link")
	bad(t, o, "write", args{"path": "dangling", "content": "x"}, "symbolic link")
	bad(t, o, "read", args{"path": "loop"}, "loop")
	bad(t, o, "read", args{"path": "~/x"}, "not expanded")
	bad(t, o, "read", args{"path": "a\x00b"}, "NUL")
	bad(t, o, "read", args{"path": "none\x1b[2J\u202e"}, "does not exist")
	bad(t, o, "read", args{"path": "in/a.txt/b"}, "not a folder")
	bad(t, o, "write", args{"path": "in/a.txt/b", "content": ""}, "not a folder")
	if entries, _ := os.ReadDir(outside); len(entries) != 3 {
		t.Errorf("something was written outside: %v", entries)
	}
	wantText(t, get(t, filepath.Join(outside, "secret.txt")), "secret")

	for _, path := range []string{"in/a.txt", "./in//a.txt", filepath.Join(o.Dir, "in/a.txt"), "abs/a.txt", "ok", "dir/../in/a.txt"} {
		wantText(t, good(t, o, "read", args{"path": path}), "1\tinside")
	}
	// Writing through a link changes the file and leaves the link.
	good(t, o, "write", args{"path": "abs/a.txt", "content": "changed"})
	wantText(t, get(t, filepath.Join(o.Dir, "in/a.txt")), "changed")
	if st, err := os.Lstat(filepath.Join(o.Dir, "ok")); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	// Extra roots open what they name, and links into them.
	o.ExtraRoots = []string{filepath.Join(outside, "gone"), filepath.Join(outside, "ws-other")}
	wantText(t, good(t, o, "read", args{"path": filepath.Join(outside, "ws-other", "x")}), "1\tsecret")
	wantText(t, good(t, o, "read", args{"path": "out/ws-other/x"}), "1\tsecret")
	bad(t, o, "read", args{"path": "out/secret.txt"}, "outside")
	good(t, o, "write", args{"path": filepath.Join(outside, "ws-other", "deep", "y"), "content": "y"})
	wantText(t, get(t, filepath.Join(outside, "ws-other", "deep", "y")), "y")
}

// A workspace that is itself reached by a link is the same workspace.
func TestLinkedWorkspace(t *testing.T) {
	o := workspace(t, map[string]string{"a": "x"})
	link := filepath.Join(filepath.Dir(o.Dir), "link")
	if err := os.Symlink(o.Dir, link); err != nil {
		t.Fatal(err)
	}
	real := o.Dir
	o.Dir = link
	for _, path := range []string{"a", filepath.Join(link, "a"), filepath.Join(real, "a")} {
		wantText(t, good(t, o, "read", args{"path": path}), "1\tx")
	}
	wantText(t, good(t, o, "list_files", nil), "a")
}

// S7: what decides which programs run, and our own state, is always asked about, under every name.
func TestTouchesProtected(t *testing.T) {
	o := workspace(t, map[string]string{
		".mcp.json": "{}", ".magi-code/settings.json": "{}", ".git/config": "", "src/a.go": "", "home/auth.json": "key", "sub/.mcp.json": "",
	})
	home := filepath.Join(o.Dir, "home")
	o.Protected = []string{home}
	_ = os.Symlink(".mcp.json", filepath.Join(o.Dir, "innocent"))
	_ = os.Symlink("home", filepath.Join(o.Dir, "h"))
	_ = os.Symlink("../src", filepath.Join(o.Dir, ".git", "hooks"))
	if err := os.Link(filepath.Join(home, "auth.json"), filepath.Join(o.Dir, "hard")); err != nil {
		t.Fatal(err)
	}
	o.Protected = append(o.Protected, filepath.Join(home, "auth.json"))
	for _, tc := range []struct {
		path        string
		write, read bool
	}{
		{"src/a.go", false, false}, {"new.txt", false, false}, {"", false, false},
		{".mcp.json", true, false}, {"./src/../.mcp.json", true, false}, {".MCP.json", true, false}, {".mcp.j\u017fon", true, false}, {"innocent", true, false},
		{filepath.Join(o.Dir, ".mcp.json"), true, false}, {".magi-code/settings.json", true, false}, {".magi-code/new", true, false},
		{".git/hooks/pre-commit", true, false}, {".git/config", true, false}, {"sub/.mcp.json", true, false}, {".gitignore", false, false},
		{"home", true, true}, {"home/auth.json", true, true}, {"home/new", true, true}, {"HOME/auth.json", true, true}, {"h/auth.json", true, true},
		{"hard", true, true}, {"homestead", false, false}, {"../outside", false, false},
	} {
		for name, want := range map[string]bool{"write": tc.write, "edit": tc.write, "read": tc.read, "grep": tc.read, "find": tc.read, "list_files": tc.read, "bash": false, "mcp__x__write": false} {
			c := tool.Call{Name: name, Arguments: []byte(fmt.Sprintf(`{"path":%q,"other":1}`, tc.path))}
			if got := TouchesProtected(o, c); got != want {
				t.Errorf("%s %q: %v", name, tc.path, got)
			}
		}
	}
	if TouchesProtected(o, tool.Call{Name: "write", Arguments: []byte("{")}) {
		t.Error("malformed arguments")
	}
	if !TouchesProtected(o, tool.Call{Name: "write", Input: []byte(`{"intent":"x","path":".mcp.json"}`)}) {
		t.Error("a call that has only its input")
	}
	// Searches of the workspace do not show what lies there; a call that names it has been asked about.
	if text := good(t, o, "grep", args{"pattern": "key"}); strings.Contains(text, "home") {
		t.Error(text)
	}
	if text := good(t, o, "find", args{"pattern": "auth.json"}); strings.Contains(text, "home") {
		t.Error(text)
	}
	wantText(t, good(t, o, "grep", args{"pattern": "key", "path": "home/auth.json"}), "home/auth.json:1:key")
}
