package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/secret"
	"magi-code/test/zoo/httpzoo"
)

// TestLogin: every way that servers are found, register and answer. R-O2, R-O3, R-O5, B31, B32, B33, B34.
func TestLogin(t *testing.T) {
	for _, mode := range []string{
		"", "prm-header", "prm-named", "prm-root", "meta-openid", "meta-tenant", "meta-tenant-openid", "meta-tenant-append", "meta-html meta-openid", "issuer-slash",
		"prm-none meta-none", "silent-pkce", "no-challenge", "iss", "registration-200", "auth-basic", "auth-post",
		"expires-string", "expires-0", "expires-none", "expires-odd", "form", "form-plain", "no-type", "no-refresh",
	} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if err := Login(t.Context(), w.o); err != nil {
				t.Fatal(text(err))
			}
			if s, err := Status(w.o.Options); s != Authenticated || err != nil {
				t.Errorf("%v %v", s, err)
			}
			h, err := NewSource(w.o.Options).Header(t.Context())
			if err != nil || !strings.HasPrefix(h.Reveal(), "Bearer zoo-access-") {
				t.Errorf("%q %v", h.Reveal(), err)
			}
			r, err := load(w.o.Options)
			if err != nil || (mode == "expires-0" || mode == "expires-none" || mode == "expires-odd") != r.expires.IsZero() {
				t.Errorf("expires %v, %v", r.expires, err)
			}
			w.checkRequests(t)
			w.checkFiles(t)
			if len(w.shown) != 1 || len(w.opened) != 1 || w.shown[0] != w.opened[0] || strings.ContainsAny(w.shown[0], " '\"`$();\n\x1b") {
				t.Errorf("shown %q, opened %q", w.shown, w.opened)
			}
			origin := w.as.Origin()
			if strings.Contains(mode, "meta-none") {
				origin = w.mcp.Origin()
			}
			if w.prompt.Origin != origin || w.prompt.Endpoint != w.mcp.URL() || w.prompt.ClientID != "zoo-client" {
				t.Errorf("prompt %+v", w.prompt) // S18
			}
			if !strings.Contains(w.page, "Your answer has arrived") {
				t.Errorf("page %q", w.page)
			}
		})
	}
}

// TestOtherNames: a server on this machine may call itself by another name, and the path may end in a slash. B31.
func TestOtherNames(t *testing.T) {
	w := newWorld(t, "prm-header")
	w.o.Server.URL = secret.New(strings.Replace(w.mcp.URL(), "127.0.0.1", "localhost", 1))
	if err := Login(t.Context(), w.o); err != nil {
		t.Error(text(err))
	}
	w = newWorld(t, "")
	w.o.Server.URL = secret.New(w.mcp.URL() + "/")
	if err := Login(t.Context(), w.o); err != nil {
		t.Error(text(err))
	}
}

// checkRequests: configured headers and the query stay at the MCP endpoint, resource and PKCE are everywhere. S16, S22, S24, R-O3.
func (w *world) checkRequests(t *testing.T) {
	t.Helper()
	for _, r := range append(w.as.Requests(), w.mcp.Requests()...) {
		endpoint := r.Path == "/mcp"
		if !endpoint && (r.Header.Get("X-Team") != "" || strings.Contains(r.Query+r.Body, "canary")) {
			t.Errorf("%s %s got what is not for it: %v %s", r.Method, r.Path, r.Header, r.Query)
		}
		if r.Header.Get("Cookie") != "" {
			t.Errorf("%s got a cookie", r.Path)
		}
		q, _ := url.ParseQuery(r.Query)
		body, _ := url.ParseQuery(r.Body)
		switch r.Path {
		case "/authorize":
			if q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("state")) < 20 || !strings.HasPrefix(w.mcp.URL(), q.Get("resource")) || q.Get("resource") == "" {
				t.Errorf("authorize: %v", q)
			}
		case "/token":
			if !strings.HasPrefix(w.mcp.URL(), body.Get("resource")) || body.Get("resource") == "" || len(body.Get("code_verifier")) < 43 || r.Header.Get("Accept") != "application/json" {
				t.Errorf("token: %v %v", body, r.Header)
			}
		}
	}
}

// checkFiles: S23.
func (w *world) checkFiles(t *testing.T) {
	t.Helper()
	for name, perm := range map[string]os.FileMode{"mcp-tokens": 0o700, "mcp-tokens/zoo.json": 0o600} {
		info, err := os.Stat(filepath.Join(w.o.Home, name))
		if err != nil || info.Mode().Perm() != perm {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// TestLoginRefused: what must not lead to a login says why, and nothing opens or is stored. S15, S17, S18, S19, S22, B31 to B34.
func TestLoginRefused(t *testing.T) {
	trap := httpzoo.Start("")
	t.Cleanup(func() {
		if n := len(trap.Requests()); n > 0 {
			t.Errorf("the trap got %d requests", n)
		}
		trap.Close()
	})
	for _, c := range []struct {
		mode, want string
		opens      bool
		tokens     int // token requests
	}{
		{"prm-mismatch", "another resource, https://evil.example.com/mcp", false, 0},
		{"issuer-other", "another issuer", false, 0},
		{"no-s256", "PKCE", false, 0},
		{"grants-other", "authorization code", false, 0},
		{"no-registration", `"client_id"`, false, 0},
		{"registration-null", `"client_id"`, false, 0},
		{"registration-error", "not that one", false, 0},
		{"redirect-meta", "redirects to", false, 0},
		{"redirect-register", "redirects to", false, 0},
		{"redirect-token", "redirects to", true, 1},
		{"iss-wrong", "another authorization server", true, 0},
		{"iss-missing", "does not say", true, 0},
		{"iss-slash", "another authorization server", true, 0},
		{"denied", "access_denied", true, 0},
		{"error-200", "bad_verification_code", true, 1},
		{"no-access", "no usable access token", true, 1},
		{"bad-token", "no usable access token", true, 1},
		{"type-mac", "Bearer", true, 1},
		{"token-503", "503", true, 1},
		{"secret-huge", "more than is stored", true, 1},
	} {
		t.Run(c.mode, func(t *testing.T) {
			w := newWorld(t, c.mode, func(a *httpzoo.AS) { a.Target = trap.URL() + "?x=canary" })
			err := Login(t.Context(), w.o)
			if err == nil || !strings.Contains(text(err), c.want) || unsafeText(text(err)) {
				t.Errorf("%q lacks %q", text(err), c.want)
			}
			if len(w.opened) > 0 != c.opens || w.as.Count("/token") != c.tokens {
				t.Errorf("opened %v, %d token requests", w.opened, w.as.Count("/token"))
			}
			if s, err := Status(w.o.Options); s != NotAuthenticated || err != nil {
				t.Errorf("%v %v", s, err)
			}
			if strings.Contains(w.page, "<b>no</b>") {
				t.Errorf("reflected: %s", w.page)
			}
		})
	}
}

// TestForeignMetadata: a challenge that points elsewhere is not followed, and the well-known place is used. S17.
func TestForeignMetadata(t *testing.T) {
	trap := httpzoo.Start("")
	defer trap.Close()
	for _, target := range []string{trap.URL(), "http://169.254.169.254/latest", "file:///etc/passwd", "https://[fd00::1]/x", "http://example.com/x"} {
		w := newWorld(t, "prm-foreign", func(a *httpzoo.AS) { a.Target = target })
		if err := Login(t.Context(), w.o); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
	if n := len(trap.Requests()); n > 0 {
		t.Errorf("the trap got %d requests", n)
	}
}

// TestAddresses: which URLs of documents may be contacted. S14, S17, S18.
func TestAddresses(t *testing.T) {
	remote := &fetcher{server: mustURL(t, "https://mcp.example.com/mcp")}
	local := &fetcher{server: mustURL(t, "http://localhost:1/mcp")}
	inside := &fetcher{server: mustURL(t, "https://10.1.2.3/mcp")}
	pinned := &fetcher{server: remote.server, pinned: "http://127.0.0.1:8080"}
	for _, c := range []struct {
		f   *fetcher
		url string
		ok  bool
	}{
		{remote, "https://auth.example.com/token", true},
		{remote, "http://auth.example.com/token", false},
		{remote, "http://127.0.0.1:8080/token", false},
		{remote, "https://localhost/token", false},
		{remote, "https://169.254.169.254/latest", false},
		{remote, "https://[fe80::1]/", false},
		{remote, "https://[fd00::1]/", false},
		{remote, "https://10.0.0.1/", false},
		{remote, "https://0.0.0.0/", false},
		{remote, "https://[::ffff:127.0.0.1]/", false},
		{remote, "javascript:alert(1)", false},
		{remote, "file:///etc/passwd", false},
		{remote, "https://user:pw@auth.example.com/", false},
		{remote, "", false},
		{local, "http://127.0.0.1:9/token", true},
		{local, "https://auth.example.com/", true},
		{local, "https://169.254.169.254/", false},
		{inside, "https://10.0.0.1/", true},
		{pinned, "http://127.0.0.1:8080/token", true},
		{pinned, "http://127.0.0.1:8081/token", false},
	} {
		if _, err := c.f.parse(c.url); (err == nil) != c.ok {
			t.Errorf("%s for %s: %v", c.url, c.f.server, err)
		}
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := endpoint.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestIssuers: B32.
func TestIssuers(t *testing.T) {
	for _, c := range []struct {
		got, want string
		ok        bool
	}{
		{"https://a.example", "https://a.example", true},
		{"https://a.example/", "https://a.example", true},
		{"https://a.example", "https://a.example/", true},
		{"https://a.example/t/", "https://a.example/t", false},
		{"https://A.example", "https://a.example", false},
		{"https://a.example:443", "https://a.example", false},
		{"https://b.example", "https://a.example", false},
		{"", "", false},
		{"", "https://a.example", false},
	} {
		if sameIssuer(c.got, c.want) != c.ok {
			t.Errorf("%q for %q", c.got, c.want)
		}
	}
}

// TestScopes: R-O3, B36.
func TestScopes(t *testing.T) {
	held := record{scopes: []string{"h"}, wanted: []string{"w"}}
	for _, c := range []struct {
		name       string
		p          plan
		configured []string
		held       record
		want       string
	}{
		{"none", plan{}, nil, record{}, ""},
		{"resource", plan{supported: []string{"r1", "r2"}}, nil, record{}, "r1 r2"},
		{"challenge", plan{supported: []string{"r1"}, challenge: []string{"c"}}, nil, record{}, "c"},
		{"configured", plan{supported: []string{"r1"}, challenge: []string{"c"}, offline: true}, []string{"x", "x"}, record{}, "x"},
		{"offline", plan{challenge: []string{"c"}, offline: true}, nil, record{}, "c offline_access"},
		{"offline alone", plan{offline: true}, nil, record{}, ""},
		{"step up", plan{challenge: []string{"c"}}, nil, held, "c h w"},
		{"step up configured", plan{}, []string{"x"}, held, "x h w"},
	} {
		if got := strings.Join(c.p.scopesFor(c.configured, c.held), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := validScopes([]string{"a:b", "", "x\"y", "x y", "caf\xc3\xa9", "ok"}); !slices.Equal(got, []string{"a:b", "ok"}) {
		t.Errorf("%q", got)
	}
}

// TestStepUp: a 403 that names scopes makes the next login ask for them besides those held. B36.
func TestStepUp(t *testing.T) {
	w := newWorld(t, "scope-header", func(a *httpzoo.AS) { a.Scopes = []string{"basic"} })
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(err)
	}
	s := NewSource(w.o.Options)
	s.NeedScopes(t.Context(), []string{"write", "basic"})
	s.NeedScopes(t.Context(), []string{"write"})
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, r := range w.as.Requests() {
		if r.Path == "/authorize" {
			q, _ := url.ParseQuery(r.Query)
			asked = append(asked, q.Get("scope"))
		}
	}
	if !slices.Equal(asked, []string{"basic", "basic write"}) {
		t.Errorf("asked for %q", asked)
	}
	if r, _ := load(w.o.Options); len(r.wanted) != 0 {
		t.Errorf("still wanted: %v", r.wanted)
	}
}

// TestOddScopes: what a server says that it granted is kept as far as it can be a scope, so that the next login, which asks for it
// again, shows and sends nothing else; B36.
func TestOddScopes(t *testing.T) {
	w := newWorld(t, "scope-odd")
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(err)
	}
	NewSource(w.o.Options).NeedScopes(t.Context(), []string{"write"})
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.prompt.Scopes, []string{"basic", "write"}) {
		t.Errorf("asked for %q", w.prompt.Scopes)
	}
}

// TestConfiguredClient: the configured id wins over registration, its redirect path is fixed. B33, B37.
func TestConfiguredClient(t *testing.T) {
	w := newWorld(t, "auth-basic")
	w.o.Server.ClientID, w.o.ClientSecret = "zoo-client", secret.New("zoo-client-secret+/=")
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(text(err))
	}
	if w.as.Count("/register") != 0 {
		t.Error("registered")
	}
	u, _ := url.Parse(w.opened[0])
	if back, _ := url.Parse(u.Query().Get("redirect_uri")); back.Path != "/callback" || back.Hostname() != "127.0.0.1" || back.Port() == "" {
		t.Errorf("redirect to %v", back)
	}
}

// TestCallback: S21, B37, R-O4.
func TestCallback(t *testing.T) {
	cb, err := newCallback(t.Context(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer cb.close(t.Context())
	if !strings.HasPrefix(cb.host, "127.0.0.1:") || len(cb.path) < 30 {
		t.Error(cb.host, cb.path)
	}
	ask := func(method, target, host string) int {
		req, _ := http.NewRequestWithContext(t.Context(), method, target, nil)
		if host != "" {
			req.Host = host
		}
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	good := cb.uri + "?code=c&state=" + cb.state.Reveal()
	for _, c := range []struct {
		method, url, host string
		want              int
	}{
		{"GET", "http://" + cb.host + "/favicon.ico", "", 404},
		{"GET", "http://" + cb.host + "/callback?code=c&state=" + cb.state.Reveal(), "", 404},
		{"GET", good, "evil.example.com", 421},
		{"GET", good, "localhost" + cb.host[len("127.0.0.1"):], 421},
		{"HEAD", good, "", 405},
		{"POST", good, "", 405},
		{"GET", cb.uri, "", 400},
		{"GET", cb.uri + "?code=c&state=wrong", "", 400},
		{"GET", cb.uri + "?code=c", "", 400},
		{"GET", good + "&state=x", "", 400},
		{"GET", good + "&code=x", "", 400},
		{"GET", good + "&error=x", "", 400},
		{"GET", cb.uri + "?state=" + cb.state.Reveal(), "", 400},
		{"GET", good + "&x=" + strings.Repeat("x", maxCallbackQuery), "", 400},
		{"GET", good, "", 200},
		{"GET", good, "", 410},
	} {
		if got := ask(c.method, c.url, c.host); got != c.want {
			t.Errorf("%s %.80s (host %q): %d, want %d", c.method, c.url, c.host, got, c.want)
		}
	}
	if r := <-cb.got; r.code.Reveal() != "c" {
		t.Error(r)
	}
	if _, err := newCallback(t.Context(), mustPort(t, cb.host), false); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Errorf("busy port: %v", err)
	}
}

func mustPort(t *testing.T, host string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(host, "127.0.0.1:%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPaste: the final URL can be given back by hand, and nothing else counts. R-O4, B37.
func TestPaste(t *testing.T) {
	w := newWorld(t, "")
	w.o.Open = nil
	lines := make(chan string, 10)
	w.o.ShowURL = func(u string) {
		q := mustURL(t, u).Query()
		lines <- ""
		lines <- "hello"
		lines <- q.Get("redirect_uri") + "?code=x&state=wrong"
		// What the browser would be sent to: the person copies it.
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, u, nil)
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
		lines <- " " + resp.Header.Get("Location") + "\n"
	}
	w.o.Paste = func(ctx context.Context) (string, error) {
		select {
		case l := <-lines:
			return l, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(text(err))
	}
	if len(w.warned) != 2 {
		t.Errorf("warned %q", w.warned)
	}
}

// TestLoginEnds: giving up and refusing the prompt leave the old tokens as they were. B35, B37.
func TestLoginEnds(t *testing.T) {
	w := newWorld(t, "")
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(filepath.Join(w.o.Home, "mcp-tokens", "zoo.json"))
	no := errors.New("no")
	w.o.Confirm = func(context.Context, Prompt) error { return no }
	if err := Login(t.Context(), w.o); !errors.Is(err, no) || len(w.opened) != 1 {
		t.Errorf("%v, opened %d", err, len(w.opened))
	}
	w.o.Confirm, w.o.Open = nil, nil
	ctx, cancel := context.WithCancel(t.Context())
	w.o.ShowURL = func(string) { cancel() }
	started := time.Now()
	if err := Login(ctx, w.o); !errors.Is(err, context.Canceled) || time.Since(started) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(started))
	}
	if after, _ := os.ReadFile(filepath.Join(w.o.Home, "mcp-tokens", "zoo.json")); string(after) != string(before) {
		t.Error("the tokens changed")
	}
}

// TestAuthorizeURL: whatever the metadata holds, the URL is harmless in a shell and on a terminal. S20.
func TestAuthorizeURL(t *testing.T) {
	f := &fetcher{server: mustURL(t, "https://mcp.example.com/")}
	for _, bad := range []string{"https://a.example/`id`", "https://a.example/$(id)?x='y';z\"", "https://a.example/a|b&c<d>e", "https://a.example/?scope=evil&state=evil&client_id=evil"} {
		u, err := f.parse(bad)
		if err != nil {
			continue
		}
		got := authorizeURL(plan{authorize: u, resource: "r"}, client{id: "me'$(x)"}, &callback{uri: "http://127.0.0.1:1/c", state: secret.New("S")}, secret.New("v"), nil)
		if strings.ContainsAny(got, " '\"`$();<>|\\\n\x1b") {
			t.Errorf("%q", got)
		}
		if q := mustURL(t, got).Query(); q.Get("client_id") != "me'$(x)" || q.Get("state") != "S" || q.Has("scope") {
			t.Errorf("%v", q)
		}
	}
	for _, bad := range []string{"-flag", "javascript:x", "file:///x", "https://a.example/\n", "http://a.example/"} {
		if _, err := f.parse(bad); err == nil {
			t.Errorf("%q parsed", bad)
		}
	}
}

// TestServerChanged: another authorization server gets a registration of its own and nothing of the old one. S25, B33.
func TestServerChanged(t *testing.T) {
	w := newWorld(t, "scope-header", func(a *httpzoo.AS) { a.Scopes = []string{"a"} })
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(err)
	}
	NewSource(w.o.Options).NeedScopes(t.Context(), []string{"wanted"})
	old, _ := load(w.o.Options)
	next := httpzoo.StartAS("")
	defer next.Close()
	w.mcp.Auth = next
	if err := Login(t.Context(), w.o); err != nil {
		t.Fatal(text(err))
	}
	if next.Count("/register") != 1 {
		t.Error("not registered anew")
	}
	for _, r := range next.Requests() {
		if s := r.Query + r.Body + r.Header.Get("Authorization"); strings.Contains(s, old.refresh.Reveal()) || strings.Contains(s, "wanted") {
			t.Errorf("%s got something of the old server: %s", r.Path, s)
		}
	}
	if now, err := load(w.o.Options); err != nil || now.issuer != next.Issuer() || now.tokenURL == old.tokenURL || len(now.wanted) != 0 {
		t.Errorf("%v", err)
	}
}

// TestBounds: documents are bounded in size, time and number, and every miss is soft. S17, B31.
func TestBounds(t *testing.T) {
	var hits atomic.Int64
	over := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasPrefix(r.URL.Path, wellKnownResource):
			var many []string
			for i := range 1000 {
				many = append(many, fmt.Sprintf("http://%s/as%d", r.Host, i))
			}
			_ = json.MarshalWrite(w, map[string]any{"resource": "http://" + r.Host + "/mcp", "authorization_servers": many})
		case strings.HasSuffix(r.URL.Path, "as0"):
			fmt.Fprintf(w, `{"issuer":"http://%s/as0","x":%q}`, r.Host, strings.Repeat("x", maxDocument))
		case r.URL.Path == "/.well-known/oauth-authorization-server/as1":
			_ = http.NewResponseController(w).Flush()
			select {
			case <-over:
			case <-r.Context().Done():
			}
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	defer close(over)
	o := Options{Home: t.TempDir(), Server: Server{Name: "zoo", URL: secret.New(srv.URL + "/mcp")}}
	f, err := newFetcher(o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	f.limit = 2 * time.Second // as0's whole document takes its time on a busy machine
	_, err = f.discover(t.Context(), o)
	for _, want := range []string{"as0: the answer is larger", "as1: timed out", "as3: HTTP 404"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q: %v", want, err)
		}
	}
	if n := hits.Load(); n > 2+3*maxServers || len(err.Error()) > 5000 {
		t.Errorf("%d requests, an error of %d bytes", n, len(err.Error()))
	}
	f.left = 1
	if _, err := f.discover(t.Context(), o); err == nil || hits.Load() > 3+3*maxServers+1 {
		t.Errorf("%d requests, %v", hits.Load(), err)
	}
}

// TestNobodyComes: a login that nobody finishes ends by itself. R-O4.
func TestNobodyComes(t *testing.T) {
	w := newWorld(t, "")
	w.o.Open, w.o.wait = nil, 20*time.Millisecond
	if err := Login(t.Context(), w.o); err == nil || !strings.Contains(err.Error(), "5 minutes") {
		t.Error(err)
	}
	if callbackWait != 5*time.Minute {
		t.Error(callbackWait)
	}
}
