package definition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"magi-code/internal/safefile"
)

// faults returns the *Error values that err joins.
func faults(err error) []*Error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*Error
		for _, e := range many.Unwrap() {
			out = append(out, faults(e)...)
		}
		return out
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return []*Error{e}
	}
	return []*Error{{Text: "not an *Error: " + err.Error()}}
}

// one parses a file with the one entry "s".
func one(t *testing.T, entry string) Server {
	t.Helper()
	f := parse([]byte(`{"mcpServers":{"s":`+entry+`}}`), "/p/.mcp.json", Project)
	if len(f.errs) > 0 || len(f.servers) != 1 {
		t.Fatalf("%s: %v", entry, f.errs)
	}
	return f.servers[0]
}

// R-C4: structural errors name line, column, server and field, with a cure.
func TestStructuralErrors(t *testing.T) {
	tests := []struct{ entry, field, text, hint string }{
		{`[]`, "", "must be an object and is an array", ""},
		{`null`, "", "must be an object and is null", ""},
		{`"x"`, "", "must be an object", ""},
		{`{}`, "command", "is missing", `add "command"`},
		{`{"type":"stdio"}`, "command", "is missing", ""},
		{`{"type":"http"}`, "url", "is missing", `add "url"`},
		{`{"url":"https://x"}`, "url", "no type", `add "type": "http"`},
		{`{"url":"https://x","headers":{"a":"b"}}`, "url", "no type", `add "type": "http"`},
		{`{"command":"c","url":"https://x"}`, "url", "a stdio server has no such field", ""},
		{`{"command":"c","headers":{}}`, "headers", "a stdio server has no such field", ""},
		{`{"command":"c","oauth":{}}`, "oauth", "a stdio server has no such field", ""},
		{`{"type":"http","url":"https://x","command":"c"}`, "command", "an http server has no such field", ""},
		{`{"type":"http","url":"https://x","args":[]}`, "args", "an http server has no such field", ""},
		{`{"type":"http","url":"https://x","env":{}}`, "env", "an http server has no such field", ""},
		{`{"type":"sse","url":"https://x"}`, "type", "SSE", `"type": "http"`},
		{`{"type":"streamable-http","url":"https://x"}`, "type", "not spelled http", `"type": "http"`},
		{`{"type":"streamableHttp","url":"https://x"}`, "type", "not spelled http", `"type": "http"`},
		{`{"type":"HTTP","url":"https://x"}`, "type", "not spelled http", `"type": "http"`},
		{`{"type":"websocket","url":"wss://x"}`, "type", "WebSocket", `"type": "http"`},
		{`{"type":"STDIO","command":"x"}`, "type", "neither", `"type": "stdio"`},
		{`{"type":"","command":"x"}`, "type", "neither", ""},
		{`{"type":"nonsense","command":"x"}`, "type", "neither", ""},
		{`{"type":1,"command":"x"}`, "type", "must be a string and is a number", ""},
		{`{"type":null,"command":"x"}`, "type", "must be a string and is null", ""},
		{`{"command":1}`, "command", "must be a string and is a number", "double quotes"},
		{`{"command":["a","b"]}`, "command", "must be a string and is an array", ""},
		{`{"command":null}`, "command", "must be a string and is null", ""},
		{`{"command":"c","args":"a b"}`, "args", "must be an array of strings and is a string", `["one", "two"]`},
		{`{"command":"c","args":null}`, "args", "is null", "leave it out"},
		{`{"command":"c","args":["a",2]}`, "args[1]", "must be a string and is a number", "double quotes"},
		{`{"command":"c","env":[]}`, "env", "must be an object of strings", ""},
		{`{"command":"c","env":null}`, "env", "is null", "leave it out"},
		{`{"command":"c","env":{"PORT":8080}}`, "env.PORT", "must be a string and is a number", "double quotes"},
		{`{"command":"c","env":{"A":null}}`, "env.A", "is null", "leave it out"},
		{`{"type":"http","url":"https://x","headers":{"X":true}}`, "headers.X", "is true or false", "double quotes"},
		{`{"type":"http","url":"https://x","headers":{"X-a":"1","x-A":"2"}}`, "headers.x-A", "stands twice", "keep one"},
		{`{"type":"http","url":"https://x","oauth":true}`, "oauth", "must be an object", "{}"},
		{`{"type":"http","url":"https://x","oauth":null}`, "oauth", "is null", "leave it out"},
		{`{"type":"http","url":"https://x","oauth":{"client_id":7}}`, "oauth.client_id", "must be a string", ""},
		{`{"type":"http","url":"https://x","oauth":{"scopes":"a b"}}`, "oauth.scopes", "must be an array", ""},
		{`{"type":"http","url":"https://x","oauth":{"scopes":[1]}}`, "oauth.scopes[0]", "must be a string", ""},
		{`{"type":"http","url":"https://x","oauth":{"Scopes":[]}}`, "oauth.Scopes", "in case alone", "write scopes"},
		{`{"type":"http","url":"https://x","oauth":{},"headers":{"authorization":"x"}}`, "oauth", "static header authorization", "remove one"},
		{`{"type":"http","url":"https://x","oauth":{},"headers":{"Proxy-Authorization":"x"}}`, "oauth", "static header Proxy-Authorization", "remove one"},
		{`{"command":"c","timeout":"30"}`, "timeout", "must be a number and is a string", "without quotes"},
		{`{"command":"c","timeout":null}`, "timeout", "is null", "leave it out"},
		{`{"command":"c","timeout":[30]}`, "timeout", "must be a number", ""},
		// S6: what looks like a known field is never read over.
		{`{"command":"c","Command":"d"}`, "Command", "differs from command in case alone", "write command"},
		{`{"command":"c","arg\u017f":[]}`, "arg\u017f", "differs from args in case alone", "write args"},
		{`{"command":"c","ENV":{}}`, "ENV", "in case alone", "write env"},
		{`{"command":"c","Enabled":true}`, "Enabled", "in case alone", "write enabled"},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			f := parse([]byte("{\"mcpServers\":{\n  \"s\":"+tt.entry+",\n\"good\":{\"command\":\"c\"}}}"), "/p/.mcp.json", Project)
			if len(f.errs) != 1 {
				t.Fatalf("%d errors: %v", len(f.errs), f.errs)
			}
			e := faults(f.errs[0])[0]
			if e.Field != tt.field || !strings.Contains(e.Text, tt.text) || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("got %q: %s [%s]", e.Field, e.Text, e.Hint)
			}
			if e.Server != "s" || e.Line != 2 || e.Column < 3 || !strings.HasPrefix(e.Error(), "/p/.mcp.json:2:") {
				t.Errorf("place: %v", e)
			}
			if len(f.servers) != 1 || f.servers[0].Name != "good" || !f.has("s") {
				t.Errorf("the sound entry is lost: %v", f.servers)
			}
		})
	}
}

// R-N1, S30: names that would make a tool's name ambiguous.
func TestServerNames(t *testing.T) {
	good := []string{"a", "A-1", "_a", "a_b", "9", "-", strings.Repeat("x", 56)}
	bad := []string{"", "a__b", "a_", "_", "__", "a.b", "a b", "a/b", "..", "é", "a\n", "а", "a\u200b", "\U000e0041", strings.Repeat("x", 57)}
	for _, name := range good {
		if why := CheckName(name); why != "" {
			t.Errorf("%q: %s", name, why)
		}
	}
	for _, name := range bad {
		f := parse([]byte(fmt.Sprintf(`{"mcpServers":{%s:{"command":"c"}}}`, quote(name))), "/p", Global)
		if len(f.errs) != 1 || len(f.servers) != 0 {
			t.Errorf("%q is accepted", name)
			continue
		}
		for _, r := range f.errs[0].Error() {
			if r < ' ' || r == 0x200b || r == 0xe0041 {
				t.Errorf("%q: %U in the error", name, r)
			}
		}
	}
	f := parse([]byte(`{"mcpServers":{"Git":{"command":"c"},"git":{"command":"d"}}}`), "/p", Global)
	if len(f.errs) != 1 || !strings.Contains(f.errs[0].Error(), "case alone") {
		t.Errorf("case twins: %v", f.errs)
	}
}

// quote writes a JSON string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// R-C3, X1: the whole file.
func TestDocuments(t *testing.T) {
	tests := []struct {
		name, in   string
		errs, warn string
		servers    int
	}{
		{"no servers", `{}`, "", "", 0},
		{"empty list", `{"mcpServers":{}}`, "", "", 0},
		{"mark at the start", "\xef\xbb\xbf{\"mcpServers\":{\"a\":{\"command\":\"c\"}}}", "", "", 1},
		{"empty file", "", "/p:1:1: the file is empty", "", 0},
		{"comment", "{\n// c\n}", "/p:2:1: comments are not part of JSON", "", 0},
		{"trailing comma", "{\"mcpServers\":{},}", "/p:1:17: there is a comma", "", 0},
		{"duplicate server", `{"mcpServers":{"a":{"command":"c"},"a":{"command":"d"}}}`, `/p:1:36: the name "a" stands twice`, "", 0},
		{"duplicate env", `{"mcpServers":{"a":{"command":"c","env":{"A":"1","A":"2"}}}}`, `the name "A" stands twice`, "", 0},
		{"no object", `[]`, "/p:1:1: the file must hold an object and holds an array", "", 0},
		{"no object of servers", `{"mcpServers":[]}`, "/p:1:15: mcpServers: must be an object and is an array", "", 0},
		{"null servers", `{"mcpServers":null}`, "mcpServers: must be an object and is null", "", 0},
		{"case variant", `{"McpServers":{}}`, "/p:1:2: McpServers: the name differs from mcpServers in case alone", "", 0},
		{"lookalike", `{"servers":{"a":{}}}`, "", "servers: ignored; servers are defined under mcpServers: rename it", 0},
		{"unknown top level", `{"inputs":[],"mcpServers":{}}`, "", "inputs: unknown, ignored", 0},
		{"unknown field", `{"mcpServers":{"a":{"command":"c","disabled":true}}}`, "", "a.disabled: unknown, ignored", 1},
		{"enabled", `{"mcpServers":{"a":{"command":"c","enabled":false}}}`, "", "a.enabled: has no effect", 1},
		{"unknown oauth field", `{"mcpServers":{"a":{"type":"http","url":"https://x","oauth":{"x\u001b":1}}}}`, "", `a.oauth.x\u{1b}: unknown, ignored`, 1},
		{"several", `{"mcpServers":{"a":{"command":1},"b":{"type":"http"},"c":{"command":"c"}}}`, `server "b": url: is missing`, "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := parse([]byte(tt.in), "/p", Global)
			all := fmt.Sprint(errors.Join(f.errs...))
			if tt.errs == "" && len(f.errs) > 0 || !strings.Contains(all, tt.errs) {
				t.Errorf("errors %s, want %q", all, tt.errs)
			}
			var warned []string
			for _, w := range f.warnings {
				at := w.Field
				if w.Server != "" {
					at = w.Server + "." + w.Field
				}
				warned = append(warned, at+": "+w.Text)
			}
			if got := strings.Join(warned, "\n"); tt.warn == "" && got != "" || !strings.Contains(got, tt.warn) {
				t.Errorf("warnings %q, want %q", got, tt.warn)
			}
			if len(f.servers) != tt.servers {
				t.Errorf("%d servers, want %d", len(f.servers), tt.servers)
			}
		})
	}
}

// put writes a file and returns its path.
func put(t *testing.T, dir, text string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// names lists the names of servers.
func names(list []Server) string {
	var out []string
	for _, s := range list {
		out = append(out, string(s.Scope)+":"+s.Name)
	}
	return strings.Join(out, " ")
}

// R-C1, R-C2: two sources; a project server replaces the whole global one of its name.
func TestLoad(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, cwd := filepath.Join(root, "home"), filepath.Join(root, "project", "sub")
	c, err := Load(home, cwd)
	if err != nil || len(c.Servers)+len(c.Shadowed)+len(c.Warnings) > 0 {
		t.Fatalf("missing files: %+v, %v", c, err)
	}
	put(t, home, `{"mcpServers":{"z":{"command":"global","args":["x"],"env":{"A":"1"}},"a":{"command":"a"},"b":{"command":"b"}}}`)
	put(t, filepath.Dir(cwd), `{"mcpServers":{"parent":{"command":"no"}}}`)
	path := put(t, cwd, `{"mcpServers":{"z":{"command":"project"},"B":{"command":"x"},"m":{"command":"m"}}}`)
	c, err = Load(home, cwd)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(c.Servers); got != "project:B global:a global:b project:m project:z" {
		t.Errorf("servers %s", got)
	}
	if got := names(c.Shadowed); got != "global:z" {
		t.Errorf("shadowed %s", got)
	}
	z := c.Servers[4]
	if z.Command != "project" || z.Args != nil || z.Env != nil || z.Source != path {
		t.Errorf("fields of the replaced definition are left: %+v", z)
	}
	if len(c.Warnings) != 1 || c.Warnings[0].Server != "B" {
		t.Errorf("warnings %+v", c.Warnings)
	}
	put(t, cwd, `{"mcpServers":{"z":{"command":7},"ok":{"command":"x"}}}`)
	c, err = Load(home, cwd)
	if fs := faults(err); len(fs) != 1 || fs[0].Server != "z" {
		t.Errorf("errors %v", err)
	}
	if got := names(c.Servers); got != "global:a global:b project:ok" {
		t.Errorf("a broken project entry lets the global one through: %s", got)
	}
	put(t, home, `{`)
	if _, err = Load(home, cwd); len(faults(err)) != 2 {
		t.Errorf("errors of both files: %v", err)
	}
	if c, err = Load(cwd, cwd); names(c.Servers) != "global:ok" || len(faults(err)) != 1 {
		t.Errorf("one folder for both: %s, %v", names(c.Servers), err)
	}
}

// R-C1, S2: regular files within bounds alone; two spellings are one source.
func TestLoadFiles(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := put(t, filepath.Join(root, "real"), `{"mcpServers":{"a":{"command":"c"}}}`)
	for _, spelling := range []string{real, filepath.Join(root, "real", "..", "real", FileName)} {
		servers, _, err := LoadSource(spelling, Global)
		if err != nil || len(servers) != 1 || servers[0].Source != real {
			t.Errorf("%s: %+v, %v", spelling, servers, err)
		}
	}
	if runtime.GOOS != "windows" {
		if err := os.Symlink(filepath.Join(root, "real"), filepath.Join(root, "link")); err != nil {
			t.Fatal(err)
		}
		servers, _, err := LoadSource(filepath.Join(root, "link", FileName), Global)
		if err != nil || len(servers) != 1 || servers[0].Source != real {
			t.Errorf("through a link: %+v, %v", servers, err)
		}
		dangling := filepath.Join(root, "dangling")
		if err := os.Symlink(filepath.Join(root, "nowhere"), dangling); err != nil {
			t.Fatal(err)
		}
		servers, warnings, err := LoadSource(dangling, Global)
		if err != nil || len(servers) > 0 || len(warnings) != 1 {
			t.Errorf("a dangling link: %v, %v", warnings, err)
		}
	}
	folder := filepath.Join(root, "folder", FileName)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadSource(folder, Global); !errors.Is(err, safefile.ErrNotRegular) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	big := put(t, filepath.Join(root, "big"), `{"mcpServers":{}`+strings.Repeat(" ", MaxBytes)+"}")
	if _, _, err := LoadSource(big, Global); !errors.Is(err, safefile.ErrTooLarge) {
		t.Errorf("a huge file: %v", err)
	}
}

// Defaults and order: what one entry becomes.
func TestEntry(t *testing.T) {
	s := one(t, `{"env":{"B":"2","A":"1","a":"3"},"args":["x","","y"],"command":"c"}`)
	if s.Type != Stdio || s.Timeout != 30 || !slices.Equal(s.Args, []string{"x", "", "y"}) || s.Scope != Project {
		t.Errorf("%+v", s)
	}
	if s.Env[0].Name != "A" || s.Env[1].Name != "B" || s.Env[2].Name != "a" {
		t.Errorf("order of variables: %v", s.Env)
	}
	h := one(t, `{"type":"http","url":"u","headers":{"x-b":"1","X-A":"2"},"oauth":{"client_id":"i","scopes":["s","r"],"authorization_server":"a"},"timeout":7}`)
	if h.Headers[0].Name != "X-A" || h.Timeout != 7 || h.OAuth.ClientID != "i" || h.OAuth.Scopes[1] != "r" || h.OAuth.AuthorizationServer != "a" {
		t.Errorf("%+v, %+v", h, h.OAuth)
	}
}

// FuzzLoad: no input panics, every error has a place, and what is accepted can be shown, encoded and expanded.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		`{"mcpServers":{"a":{"command":"c","args":["${A:-b}"],"env":{"A":"${"},"timeout":1e9}}}`,
		`{"mcpServers":{"a":{"type":"http","url":"https://u:p@h/p?q#f","headers":{"A":"Bearer ${T}"},"oauth":{"scopes":["x"]}}}}`,
		`{"servers":{}}`, `{"mcpServers":{"a__":{"Command":null}}}`, `{"mcpServers":{"a":{"url":1}}}`, "{", "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := parse(data, "/p", Global)
		for _, e := range faults(errors.Join(got.errs...)) {
			if e.Line < 1 || e.Column < 1 || e.Text == "" || strings.ContainsAny(e.Error(), "\x1b\n\u202e") {
				t.Fatalf("bad error %#v", e)
			}
		}
		for _, s := range got.servers {
			if CheckName(s.Name) != "" {
				t.Fatalf("name %q", s.Name)
			}
			s.Canonical()
			for _, l := range s.Redacted() {
				if strings.ContainsAny(l.Label+l.Value+l.Flag, "\x1b\n\u202e") {
					t.Fatalf("unsafe line %+v", l)
				}
			}
			if l, err := s.Expand(func(string) (string, bool) { return "v", true }); err == nil {
				l.Secrets()
			}
		}
	})
}

// FuzzName: a name that is accepted makes tool names that can be taken apart in one way.
func FuzzName(f *testing.F) {
	for _, s := range []string{"a", "a__b", "a_", "_a", "", "é", "a.b"} {
		f.Add(s, "tool")
	}
	f.Fuzz(func(t *testing.T, server, tool string) {
		if CheckName(server) != "" || strings.Contains(tool, "__") || tool == "" {
			return
		}
		rest := strings.TrimPrefix("mcp__"+server+"__"+tool, "mcp__")
		gotServer, gotTool, _ := strings.Cut(rest, "__")
		if gotServer != server || gotTool != tool {
			t.Fatalf("%q and %q read as %q and %q", server, tool, gotServer, gotTool)
		}
	})
}

// A hostile file of many servers on one line costs no more than its length.
func BenchmarkLoadManyServers(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"mcpServers":{`)
	for i := range 20000 {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `"s%d":{"command":"x"}`, i)
	}
	text.WriteString("}}")
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if f := parse(data, "f", Global); len(f.servers) != 20000 {
			b.Fatal(f.errs)
		}
	}
}
