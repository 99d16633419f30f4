package definition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/secret"
)

// env is a lookup over a map.
func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// R-C6: the grammar of references.
func TestExpandValues(t *testing.T) {
	vars := env(map[string]string{"A": "va", "EMPTY": "", "NEST": "${A}", "_x9": "under", "SPACE": " s "})
	tests := []struct{ in, want, fault string }{
		{"plain", "plain", ""},
		{"${A}", "va", ""},
		{"x${A}y${A}z", "xvayvaz", ""},
		{"${_x9}", "under", ""},
		{"${EMPTY}", "", ""},
		{"${EMPTY:-d}", "", ""},
		{"${NONE:-d}", "d", ""},
		{"${NONE:-}", "", ""},
		{"${NONE:-a:-b}", "a:-b", ""},
		{"${NONE:-${A}", "${A", ""},
		{"${NONE:-${A}}", "${A}", ""},
		{"${NEST}", "${A}", ""},
		{"${A:-d}", "va", ""},
		{"$A", "$A", ""},
		{"$$", "$$", ""},
		{"$", "$", ""},
		{"$${A}", "$va", ""},
		{"{A}", "{A}", ""},
		{"$(A)`A`", "$(A)`A`", ""},
		{"${SPACE}", " s ", ""},
		{"${NONE}", "", "NONE is not set"},
		{"${a}", "", "a is not set"},
		{"${A", "", "no closing"},
		{"x${", "", "no closing"},
		{"${}", "", "not of the form"},
		{"${9}", "", "not of the form"},
		{"${A-d}", "", "not of the form"},
		{"${A:=d}", "", "not of the form"},
		{"${A:d}", "", "not of the form"},
		{"${ A }", "", "not of the form"},
		{"${é}", "", "not of the form"},
		{"${A.B}", "", "not of the form"},
		{"${A}${", "", "no closing"},
	}
	for _, tt := range tests {
		s := Server{Name: "s", Source: "/p", Type: Stdio, Timeout: 30, Command: "c" + tt.in, Args: []string{tt.in}, Env: []Pair{{"V", tt.in}}}
		l, err := s.Expand(vars)
		if tt.fault != "" {
			if fs := faults(err); len(fs) != 3 || !strings.Contains(fs[1].Text, tt.fault) || fs[1].Field != "args[0]" || fs[1].Hint == "" {
				t.Errorf("%q: %v", tt.in, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.in, err)
			continue
		}
		for _, got := range []string{l.Args[0].Reveal(), l.Env[0].Value.Reveal(), strings.TrimPrefix(l.Command.Reveal(), "c")} {
			if got != tt.want {
				t.Errorf("%q became %q, want %q", tt.in, got, tt.want)
			}
		}
	}
}

// R-C6: names are not expanded, nor is what is used as written.
func TestExpandNowhereElse(t *testing.T) {
	vars := env(map[string]string{"A": "va"})
	s := Server{Name: "s", Type: HTTP, Timeout: 30, URL: "https://h/${A}", Headers: []Pair{{"X-${A}", "v"}}, OAuth: &OAuth{ClientID: "${A}"}}
	if _, err := s.Expand(vars); err == nil || !strings.Contains(err.Error(), "the name of a header") {
		t.Errorf("a header's name was expanded: %v", err)
	}
	s.Headers = nil
	l, err := s.Expand(vars)
	if err != nil || l.OAuth.ClientID != "${A}" || l.URL.Reveal() != "https://h/va" {
		t.Errorf("%+v, %v", l.OAuth, err)
	}
	e := Server{Name: "s", Type: Stdio, Timeout: 30, Command: "c", Env: []Pair{{"${A}", "v"}}}
	if l, err := e.Expand(vars); err != nil || l.Env[0].Name != "${A}" {
		t.Errorf("a variable's name was expanded: %v", err)
	}
	if _, err := (Server{Name: "s", Type: Stdio, Timeout: 30, Command: "${A}"}).Expand(nil); err == nil {
		t.Error("no lookup finds something")
	}
	if _, err := (Server{}).Expand(vars); err == nil {
		t.Error("the zero definition is launched")
	}
}

// R-C5, R-C6, R-C7, S16: what is checked after expansion, and that no value is told.
func TestExpandChecks(t *testing.T) {
	const canary = "c4narySecret"
	vars := env(map[string]string{"LF": canary + "\nx", "END": canary + "\n", "CR": canary + "\rx", "NUL": canary + "\x00x", "ESC": canary + "\x1b", "E": "", "BAD": canary + "/x", "S": " "})
	stdio := func(command string, pairs ...Pair) Server {
		return Server{Name: "s", Type: Stdio, Timeout: 30, Command: command, Env: pairs}
	}
	http := func(url string, pairs ...Pair) Server {
		return Server{Name: "s", Type: HTTP, Timeout: 30, URL: url, Headers: pairs}
	}
	timeout := func(n int, odd string) Server {
		return Server{Name: "s", Type: Stdio, Timeout: n, oddTimeout: odd, Command: "c"}
	}
	const ok = "https://h/p"
	tests := []struct {
		s           Server
		field, text string
	}{
		{stdio(""), "command", "empty"},
		{stdio("${E}"), "command", "empty"},
		{stdio("${S}"), "command", "empty"},
		{stdio("${NUL}"), "command", "NUL"},
		{stdio("~/bin/x"), "command", "no shell"},
		{stdio("c", Pair{"", "x"}), "env", "empty name"},
		{stdio("c", Pair{"A=B", "x"}), "env.A=B", "must not contain"},
		{stdio("c", Pair{"A\x00", "x"}), "env.A\x00", "must not contain"},
		{stdio("c", Pair{"A", "${NUL}"}), "env.A", "NUL"},
		{stdio("c", Pair{"A", "${LF}"}), "", ""},
		{http("${BAD}"), "url", "does not begin with"},
		{http("https://h/${LF}"), "url", "line break"},
		{http("https://h/${NUL}"), "url", "NUL"},
		{http(ok, Pair{"X", "${LF}"}), "headers.X", "line break or another"},
		{http(ok, Pair{"X", "${CR}"}), "headers.X", "line break or another"},
		{http(ok, Pair{"X", "${ESC}"}), "headers.X", "line break or another"},
		{http(ok, Pair{"X", "${NUL}"}), "headers.X", "NUL"},
		{http(ok, Pair{"X", "${END}"}), "headers.X", "ends in a line break"},
		{http(ok, Pair{"X", ""}, Pair{"X-Tab", "a\tb"}), "", ""},
		{http(ok, Pair{"X Y", "v"}), "headers.X Y", "name of a header"},
		{http(ok, Pair{"X:", "v"}), "headers.X:", "name of a header"},
		{http(ok, Pair{"X\r\nY", "v"}), "headers.X\r\nY", "name of a header"},
		{http(ok, Pair{"", "v"}), "headers.", "name of a header"},
		{http(ok, Pair{"Ü", "v"}), "headers.Ü", "name of a header"},
		{http(ok, Pair{"Host", "v"}), "headers.Host", "transport sets"},
		{http(ok, Pair{"content-LENGTH", "1"}), "headers.content-LENGTH", "transport sets"},
		{http(ok, Pair{"Mcp-Session-Id", "v"}), "headers.Mcp-Session-Id", "transport sets"},
		{http(ok, Pair{"MCP-Protocol-Version", "v"}), "headers.MCP-Protocol-Version", "transport sets"},
		{http(ok, Pair{"Accept", "v"}), "headers.Accept", "transport sets"},
		{http(ok, Pair{"Transfer-Encoding", "v"}), "headers.Transfer-Encoding", "transport sets"},
		{http(ok, Pair{"Last-Event-ID", "v"}), "headers.Last-Event-ID", "transport sets"},
		// B18
		{timeout(0, ""), "timeout", "0 seconds"},
		{timeout(-1, ""), "timeout", "-1 seconds"},
		{timeout(301, ""), "timeout", "301 seconds"},
		{timeout(0, "0.5"), "timeout", "not a whole number"},
		{timeout(0, "1e9"), "timeout", "not a whole number"},
		{timeout(1, ""), "", ""},
		{timeout(300, ""), "", ""},
		{Server{Name: "s", Type: HTTP, Timeout: 30, URL: ok, OAuth: &OAuth{Scopes: []string{"a b"}}}, "oauth.scopes[0]", "one word"},
		{Server{Name: "s", Type: HTTP, Timeout: 30, URL: ok, OAuth: &OAuth{Scopes: []string{""}}}, "oauth.scopes[0]", "one word"},
		{Server{Name: "s", Type: HTTP, Timeout: 30, URL: ok, OAuth: &OAuth{ClientID: "x\n"}}, "oauth.client_id", "control character"},
		{Server{Name: "s", Type: HTTP, Timeout: 30, URL: ok, OAuth: &OAuth{AuthorizationServer: "http://as"}}, "oauth.authorization_server", "plain http"},
	}
	for i, tt := range tests {
		l, err := tt.s.Expand(vars)
		if tt.text == "" {
			if err != nil || l.Name == "" {
				t.Errorf("%d: %v", i, err)
			}
			continue
		}
		fs := faults(err)
		if len(fs) != 1 || fs[0].Field != tt.field || !strings.Contains(fs[0].Text, tt.text) {
			t.Errorf("%d: got %v, want %q: %s", i, err, tt.field, tt.text)
		}
		told := fmt.Sprintf("%v %+v %#v %+v", err, err, fs, l)
		for _, e := range fs {
			told += fmt.Sprintf("%#v", *e)
		}
		if strings.Contains(told, canary) {
			t.Errorf("%d: a value is told: %s", i, told)
		}
		if l.Name != "" {
			t.Errorf("%d: a launch comes with an error", i)
		}
	}
}

// Every fault is told at once.
func TestExpandTellsAll(t *testing.T) {
	s := Server{Name: "s", Source: "/p", Type: Stdio, Timeout: 0, Command: "${A}", Args: []string{"${B}"}, Env: []Pair{{"X", "${C}"}}, line: 3, column: 5}
	_, err := s.Expand(nil)
	if fs := faults(err); len(fs) != 4 || fs[1].Error() != `/p:3:5: server "s": command: the variable A is not set and has no default` {
		t.Errorf("%v", err)
	}
}

// R-C8, S14: the acceptance table of endpoints.
func TestCheckURL(t *testing.T) {
	good := []string{
		"https://example.com", "https://example.com/", "https://example.com/mcp?x=1#f", "https://example.com:8443/a%20b", "https://EXAMPLE.com/x",
		"https://xn--bcher-kva.example/", "https://1.2.3.4/", "https://[2001:db8::1]:443/x", "https://example.com?x=y", "https://a_b.example/",
		"http://localhost", "http://localhost:8080/mcp?x=1", "http://127.0.0.1/mcp", "http://127.255.255.254:1/", "http://127.0.0.53", "http://[::1]:3000/mcp", "http://[::1]",
		"https://example.com/path/with@at", "https://example.com/a:b", "https://example.com/x?u=a@b", "https://localhost", "https://example.com///x",
	}
	bad := []string{
		"https://h/" + strings.Repeat("x", maxURLBytes),
		"", "example.com", "/mcp", "//example.com", "ftp://example.com", "file:///etc/passwd", "javascript:alert(1)", "ws://example.com", "wss://localhost",
		"http://example.com", "http://localhost.evil", "http://localhost.", "http://LOCALHOST", "http://127.0.0.1.nip.io", "http://0.0.0.0", "http://[::ffff:127.0.0.1]",
		"http://[::ffff:7f00:1]", "http://2130706433", "http://0x7f.1", "http://0x7f000001", "http://127.1", "http://127.0.0.01", "http://0177.0.0.1", "http://017700000001",
		"http://127.0.0.1@evil", "http://127.0.0.1:80@evil/", "http://localhost@evil", "https://user@example.com", "https://user:pw@example.com", "https://@example.com",
		"https://:@example.com", "HTTP://localhost", "Https://example.com", "hTTp://127.0.0.1", "http:localhost", "http:/localhost", "https:example.com", "http:\\\\localhost", "https://example.com\\@localhost",
		"http://localhost\\.evil", "http://[::]", "http://[::1%25lo]", "http://[::1%lo]", "http://[0:0:0:0:0:0:0:2]", "http://[127.0.0.1]", "http://::1", "http://[::1", "http://::1]",
		"https://", "https:///path", "https://:443", "https://example.com:", "https://example.com:0", "https://example.com:65536", "https://example.com:x", "https://example.com:-1",
		"https://exam ple.com", "https://example.com/a b", " https://example.com", "https://example.com ", "https://example.com/\n", "https://example.com/\x00", "https://example.com/\x7f", "https://example.com/\xff",
		"https://ex%41mple.com", "https://bücher.example", "http://ⓛocalhost", "http://localhost%00.evil", "http://127。0。0。1", "http://localhost#@evil.com:80@x\\", "http://localhost?@evil\\",
		"https://exam\tple.com", "https://[example.com]", "https://[fe80::1%25eth0]", "https://[fe80::1%eth0]", "https://[1.2.3.4]", "https://example.com:443:443", "https://example.com/%zz",
	}
	for _, u := range good {
		if why, _ := CheckURL(u); why != "" {
			t.Errorf("%q is refused: %s", u, why)
		}
		if _, err := endpoint.Parse(withoutFragment(u)); err != nil {
			t.Errorf("%q is refused by the transport: %v", u, err)
		}
	}
	for _, u := range bad {
		if why, _ := CheckURL(u); why == "" {
			t.Errorf("%q is accepted", u)
		}
	}
}

// R-C8: the fragment is never sent, and nothing but scheme, host, port and path is shown.
func TestLaunchURL(t *testing.T) {
	vars := env(map[string]string{"BASE": "https://h.example/base/", "TOKEN": "t0ken", "HOST": "h.example", "Q": "x=1", "TAIL": "tail?k=v#f"})
	tests := []struct{ in, url, show string }{
		{"https://h/p?q=1#frag", "https://h/p?q=1", "https://h/p"},
		{"https://h/#f?x", "https://h/", "https://h/"},
		{"https://h", "https://h", "https://h"},
		{"https://h/s/${TOKEN}/mcp?k=${TOKEN}", "https://h/s/t0ken/mcp?k=t0ken", "https://h/s/${TOKEN}/mcp"},
		{"https://${HOST}:8443/p?${Q}", "https://h.example:8443/p?x=1", "https://h.example:8443/p"},
		{"${BASE}mcp?x", "https://h.example/base/mcp?x", "https://h.example/base/mcp"},
		{"https://h/${NONE:-dflt}/x", "https://h/dflt/x", "https://h/dflt/x"},
		{"https://h/${TAIL}", "https://h/tail?k=v", "https://h/${TAIL}"},
		{"https://h/${NONE:-a?b=c}", "https://h/a?b=c", "https://h/a"},
		{"https://h/%e2%80%aex", "https://h/%e2%80%aex", "https://h/%e2%80%aex"},
		{"https://h/\u202ex", "https://h/\u202ex", `https://h/\u{202e}x`},
	}
	for _, tt := range tests {
		l, err := Server{Name: "s", Type: HTTP, Timeout: 30, URL: tt.in}.Expand(vars)
		if err != nil || l.URL.Reveal() != tt.url || l.ShowURL != tt.show {
			t.Errorf("%q: url %q, shown %q, %v", tt.in, l.URL.Reveal(), l.ShowURL, err)
		}
	}
}

// Secrets: what a scrubber must know, and what it had better not.
func TestSecrets(t *testing.T) {
	vars := env(map[string]string{"TOKEN": "tok-en-value", "HOME": "/home/me", "USER": "someone", "PORT": "8080", "DSN": "postgres://u:p4ssword@h/db?sslkey=k3yvalue", "PEM": "-----BEGIN KEY-----\nabcdefghijklmnopqrst\n-----END KEY-----\n"})
	stdio := Server{Name: "s", Type: Stdio, Timeout: 30, Command: "${HOME}/bin/x", Args: []string{"--token", "${TOKEN}x", "--port=${PORT}", "plain", "--api-key=literal-key-1", "--dir", "${HOME}/d"}, Env: []Pair{
		{"A", "literal-secret"}, {"HOME", "${HOME}"}, {"PATH", "odd:value"}, {"N", "12345678"}, {"P", "/abs/path/x"}, {"U", "https://api.example.com/v1"}, {"D", "${DSN}"}, {"K", "${PEM}"}, {"M", "production"}, {"E", ""}, {"B", "${TOKEN:-x}"},
	}}
	l, err := stdio.Expand(vars)
	if err != nil {
		t.Fatal(err)
	}
	checkSecrets(t, l, []string{"tok-en-value", "literal-secret", "literal-key-1", "p4ssword", "k3yvalue", "abcdefghijklmnopqrst", vars2(vars, "DSN"), vars2(vars, "PEM")},
		[]string{"/home/me", "/home/me/d", "odd:value", "12345678", "8080", "plain", "/abs/path/x", "https://api.example.com/v1", "production", "", "--port=8080", "-----BEGIN KEY-----"})
	named := Server{Name: "s", Type: Stdio, Timeout: 30, Command: "/opt/${API_KEY}/${FLAVOUR}"}
	if l, err = named.Expand(env(map[string]string{"API_KEY": "shortkey", "FLAVOUR": "vanilla"})); err != nil {
		t.Fatal(err)
	}
	checkSecrets(t, l, []string{"shortkey"}, []string{"vanilla"})
	http := Server{Name: "s", Type: HTTP, Timeout: 30, URL: "https://h/path?key=k%2Fvalue&n=5&flag=true#fr4gment", Headers: []Pair{
		{"Authorization", "Bearer ${TOKEN}"}, {"Proxy-Authorization", "Basic dXNlcjpiYXNpYy1wYXNz"}, {"X-Team", "platform"}, {"X-N", "7"},
	}}
	if l, err = http.Expand(vars); err != nil {
		t.Fatal(err)
	}
	checkSecrets(t, l, []string{"k%2Fvalue", "k/value", "fr4gment", "Bearer tok-en-value", "tok-en-value", "Basic dXNlcjpiYXNpYy1wYXNz", "dXNlcjpiYXNpYy1wYXNz", "basic-pass", "platform"},
		[]string{"5", "true", "7", "path", "https://h/path"})
}

// vars2 is the value of one variable.
func vars2(lookup func(string) (string, bool), name string) string {
	v, _ := lookup(name)
	return v
}

// checkSecrets compares what a launch calls secret with what must and must not be.
func checkSecrets(t *testing.T, l Launch, want, not []string) {
	t.Helper()
	got := map[string]bool{}
	for _, s := range l.Secrets() {
		got[s.Reveal()] = true
	}
	for _, w := range want {
		if !got[w] {
			t.Errorf("%q is not among the secrets", w)
		}
	}
	for _, n := range not {
		if got[n] {
			t.Errorf("%q is among the secrets", n)
		}
	}
	told := fmt.Sprintf("%v %+v %#v", l, l, l)
	for _, w := range want {
		if len(w) >= secret.MinScrubbed && strings.Contains(told, w) {
			t.Errorf("formatting the launch tells %q", w)
		}
	}
}

// FuzzExpand: a value without references is itself; what is expanded is its parts in order; no panic; errors have a field.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"plain", "${A}", "${A:-x}", "${", "${A", "$A", "${A:-${B}}", "${\x00}", "a${A}b${B:-}c"} {
		f.Add(s, "value")
	}
	f.Fuzz(func(t *testing.T, raw, v string) {
		s := Server{Name: "s", Type: Stdio, Timeout: 30, Command: "c", Args: []string{raw}}
		l, err := s.Expand(func(string) (string, bool) { return v, true })
		parts, bad := split(raw)
		if (bad != nil || strings.Contains(raw, "\x00")) && err == nil && !strings.Contains(raw, ":-") {
			t.Fatalf("%q is accepted", raw)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Field != "args[0]" {
				t.Fatalf("%v", err)
			}
			return
		}
		var want strings.Builder
		for _, p := range parts {
			if p.name != "" {
				want.WriteString(v)
			}
			want.WriteString(p.literal)
		}
		if got := l.Args[0].Reveal(); got != want.String() {
			t.Fatalf("%q became %q, want %q", raw, got, want.String())
		}
	})
}

// FuzzCheckURL: what is accepted is read alike by another parser, and is https or this machine.
func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://example.com/x", "http://localhost:1/", "http://[::1]", "http://127.0.0.1@evil", "https://h#@x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if why, _ := CheckURL(s); why != "" {
			return
		}
		if _, err := endpoint.Parse(withoutFragment(s)); err != nil {
			t.Fatalf("%q is accepted here and refused by the transport: %v", s, err)
		}
		rest, ok := strings.CutPrefix(s, "https://")
		if !ok {
			rest = strings.TrimPrefix(s, "http://")
			host := rest[:endOfAuthority(rest)]
			if !strings.HasPrefix(host, "localhost") && !strings.HasPrefix(host, "127.") && !strings.HasPrefix(host, "[::1]") {
				t.Fatalf("%q is accepted", s)
			}
		}
		for _, c := range []byte(rest[:endOfAuthority(rest)]) {
			if !isHostRune(rune(c)) && !slices.Contains([]byte("[]:"), c) {
				t.Fatalf("%q has %q in its authority", s, c)
			}
		}
	})
}
