package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"magi-code/internal/mcp/streamable"
	"magi-code/internal/secret"
	"magi-code/test/zoo/httpzoo"
)

var (
	_ streamable.Tokens    = (*Source)(nil)
	_ streamable.ScopeSink = (*Source)(nil)
)

// store writes a record with tokens of the world's authorization server.
func (w *world) store(t *testing.T, expires time.Time) record {
	t.Helper()
	bound, err := boundTo(w.o.Server)
	if err != nil {
		t.Fatal(err)
	}
	access, refresh := w.as.Mint("a")
	r := record{
		server: "zoo", serverURL: bound, resource: w.mcp.URL(), issuer: w.as.Issuer(), tokenURL: w.as.Origin() + "/token", clientID: "zoo-client", authMethod: "none",
		access: secret.New(access), refresh: secret.New(refresh), expires: expires, refreshAt: expires, obtained: expires.Add(-2 * time.Hour), scopes: []string{"a"},
	}
	w.put(t, r)
	return r
}

func (w *world) put(t *testing.T, r record) {
	t.Helper()
	release, err := lock(t.Context(), w.o.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := save(w.o.Options, r); err != nil {
		t.Fatal(err)
	}
}

// TestRace: eight processes with one expired token, and a server that rotates refresh tokens and revokes the family when
// one comes twice: exactly one refresh, eight good tokens. R-O5, B35.
func TestRace(t *testing.T) {
	w := newWorld(t, "", func(a *httpzoo.AS) { a.Delay = 50 * time.Millisecond })
	w.store(t, time.Now().Add(-time.Minute))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const n = 8
	var wg sync.WaitGroup
	var ready sync.WaitGroup
	start := make(chan struct{})
	outs := make([]bytes.Buffer, n)
	for i := range n {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "OAUTH_TEST_HOME="+w.o.Home, "OAUTH_TEST_URL="+w.mcp.URL())
		cmd.Stdout, cmd.Stderr = &outs[i], &outs[i]
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ready.Add(1)
		wg.Go(func() {
			ready.Done()
			<-start
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("%d: %v: %s", i, err, outs[i].String())
			}
		})
	}
	ready.Wait()
	close(start)
	wg.Wait()
	if got := w.as.Count("/token"); got != 1 || w.as.Refusals() != 0 {
		t.Errorf("%d refreshes, %d refused", got, w.as.Refusals())
	}
	for i := range outs {
		if outs[i].String() != outs[0].String() || !strings.HasPrefix(outs[i].String(), "Bearer zoo-access-") {
			t.Errorf("%d: %s", i, outs[i].String())
		}
	}
}

// TestRefresh: R-O5, R-O6, B34, B35.
func TestRefresh(t *testing.T) {
	for _, c := range []struct {
		mode  string
		want  State
		error string // of Header; "" for none
		keeps bool   // the refresh token stays the same
	}{
		{"", Authenticated, "", false},
		{"keep-refresh", Authenticated, "", true},
		{"token-503", Refreshable, "could not be refreshed", true},
		{"error-200", Refreshable, "bad_verification_code", true},
		{"no-access", Refreshable, "no usable", true},
	} {
		w := newWorld(t, c.mode)
		before := w.store(t, time.Now().Add(-time.Minute))
		if s, _ := Status(w.o.Options); s != Refreshable {
			t.Errorf("%s: first %v", c.mode, s)
		}
		h, err := NewSource(w.o.Options).Header(t.Context())
		if (err == nil) != (c.error == "") || err != nil && (!strings.Contains(err.Error(), c.error) || unsafeText(text(err))) {
			t.Errorf("%s: %v", c.mode, text(err))
		}
		after, loadErr := load(w.o.Options)
		if loadErr != nil || after.state(time.Now()) != c.want || (after.refresh.Reveal() == before.refresh.Reveal()) != c.keeps {
			t.Errorf("%s: then %v %v", c.mode, after.state(time.Now()), loadErr)
		}
		if err == nil && h.Reveal() != "Bearer "+after.access.Reveal() {
			t.Errorf("%s: what is used is not what is stored", c.mode)
		}
		w.checkFiles(t)
	}
}

// TestInvalidGrant: it alone ends a login. B35.
func TestInvalidGrant(t *testing.T) {
	w := newWorld(t, "")
	r := w.store(t, time.Now().Add(-time.Minute))
	r.refresh = secret.New("zoo-refresh-unknown")
	w.put(t, r)
	_, err := NewSource(w.o.Options).Header(t.Context())
	if err == nil || !strings.Contains(text(err), "magi-code mcp login zoo") || unsafeText(text(err)) {
		t.Errorf("%v", text(err))
	}
	if s, err := Status(w.o.Options); s != NotAuthenticated || err != nil {
		t.Errorf("%v %v", s, err)
	}
}

// TestRejected: a refused token is refreshed once; a fresh one that is refused too leads to no loop. B37.
func TestRejected(t *testing.T) {
	w := newWorld(t, "")
	w.store(t, time.Now().Add(time.Hour))
	s := NewSource(w.o.Options)
	first, err := s.Header(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Rejected(t.Context(), first)
	second, err := s.Header(t.Context())
	if err != nil || second.Reveal() == first.Reveal() || w.as.Count("/token") != 1 {
		t.Fatalf("%v, %d refreshes", err, w.as.Count("/token"))
	}
	s.Rejected(t.Context(), second)
	for range 3 {
		if _, err := s.Header(t.Context()); err == nil || !strings.Contains(text(err), "magi-code mcp login zoo") {
			t.Errorf("%v", err)
		}
	}
	if w.as.Count("/token") != 1 {
		t.Errorf("%d refreshes", w.as.Count("/token"))
	}
	// Another process logs in: its token is taken.
	fresh := w.store(t, time.Now().Add(time.Hour))
	if h, err := s.Header(t.Context()); err != nil || h.Reveal() != "Bearer "+fresh.access.Reveal() {
		t.Errorf("%v", err)
	}
}

// TestEarly: a token that will end soon is refreshed; when that fails it is used while it lasts.
func TestEarly(t *testing.T) {
	w := newWorld(t, "token-503")
	r := w.store(t, time.Now().Add(time.Hour))
	r.refreshAt = time.Now().Add(-time.Second)
	w.put(t, r)
	if h, err := NewSource(w.o.Options).Header(t.Context()); err != nil || h.Reveal() != "Bearer "+r.access.Reveal() || w.as.Count("/token") != 1 {
		t.Errorf("%v", err)
	}
}

// TestOverlap: many callers in one process share one refresh. R-O5.
func TestOverlap(t *testing.T) {
	w := newWorld(t, "")
	w.store(t, time.Now().Add(-time.Minute))
	s := NewSource(w.o.Options)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if _, err := s.Header(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.as.Count("/token"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// TestCanceledRefresh: the caller gives up, the rotated token is stored all the same.
func TestCanceledRefresh(t *testing.T) {
	w := newWorld(t, "", func(a *httpzoo.AS) { a.Delay = 100 * time.Millisecond })
	before := w.store(t, time.Now().Add(-time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := NewSource(w.o.Options).Header(ctx); err != nil {
		t.Error(err)
	}
	if after, err := load(w.o.Options); err != nil || after.refresh.Reveal() == before.refresh.Reveal() {
		t.Errorf("the new token was lost: %v", err)
	}
}

// TestNoLogin: runs open nothing and say what to do. R-O1, S26.
func TestNoLogin(t *testing.T) {
	w := newWorld(t, "")
	for name, put := range map[string]func(){
		"nothing": func() {},
		"expired": func() {
			r := w.store(t, time.Now().Add(-time.Minute))
			r.refresh = secret.String{}
			w.put(t, r)
			if s, _ := Status(w.o.Options); s != Expired {
				t.Errorf("state %v", s)
			}
		},
	} {
		put()
		_, err := NewSource(w.o.Options).Header(t.Context())
		if err == nil || !strings.Contains(text(err), "magi-code mcp login zoo") {
			t.Errorf("%s: %v", name, text(err))
		}
	}
	if len(w.as.Requests())+len(w.mcp.Requests()) != 0 {
		t.Error("something was sent")
	}
}

// TestBinding: a token belongs to one definition. S23, R-O5.
func TestBinding(t *testing.T) {
	w := newWorld(t, "")
	r := w.store(t, time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		change func(*Options)
		want   State
	}{
		"same":         {func(*Options) {}, Authenticated},
		"query":        {func(o *Options) { o.Server.URL = secret.New(w.mcp.URL() + "?other=1") }, Authenticated},
		"path":         {func(o *Options) { o.Server.URL = secret.New(w.mcp.URL() + "2") }, NotAuthenticated},
		"host":         {func(o *Options) { o.Server.URL = secret.New("https://evil.example.com/mcp") }, NotAuthenticated},
		"scheme":       {func(o *Options) { o.Server.URL = secret.New("https" + strings.TrimPrefix(w.mcp.URL(), "http")) }, NotAuthenticated},
		"client":       {func(o *Options) { o.Server.ClientID = "other" }, NotAuthenticated},
		"server":       {func(o *Options) { o.Server.AuthorizationServer = "https://other.example.com" }, NotAuthenticated},
		"name":         {func(o *Options) { o.Server.Name = "other" }, NotAuthenticated},
		"invalid name": {func(o *Options) { o.Server.Name = "../zoo" }, Invalid},
	} {
		o := w.o.Options
		c.change(&o)
		if s, _ := Status(o); s != c.want {
			t.Errorf("%s: %v", name, s)
		}
		if h, err := NewSource(o).Header(t.Context()); (err == nil) != (c.want == Authenticated) || strings.Contains(h.Reveal(), r.access.Reveal()) != (c.want == Authenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamaged: what is not our file is not used. S23.
func TestDamaged(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"not JSON": func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) },
		"version":  func(p string) error { return os.WriteFile(p, []byte(`{"version":2}`), 0o600) },
		"twice":    func(p string) error { return os.WriteFile(p, []byte(`{"version":1,"version":1}`), 0o600) },
		"open":     func(p string) error { return os.Chmod(p, 0o644) },
		"link": func(p string) error {
			return errors.Join(os.Rename(p, p+".real"), os.Symlink(p+".real", p))
		},
		"folder": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"header": func(p string) error {
			b, err := os.ReadFile(p)
			return errors.Join(err, os.WriteFile(p, bytes.Replace(b, []byte(`"zoo-access-`), []byte(`"a\r\nX-Evil: `), 1), 0o600))
		},
	} {
		w := newWorld(t, "")
		w.store(t, time.Now().Add(time.Hour))
		p, _ := path(w.o.Options)
		if err := damage(p); err != nil {
			t.Fatal(name, err)
		}
		if s, err := Status(w.o.Options); s != Invalid || err == nil || unsafeText(err.Error()) {
			t.Errorf("%s: %v %v", name, s, err)
		}
		if _, err := NewSource(w.o.Options).Header(t.Context()); err == nil {
			t.Errorf("%s: used", name)
		}
	}
}

// TestSwept: what a killed process left beside the token file holds tokens, so the next writer removes it, and logout too.
func TestSwept(t *testing.T) {
	w := newWorld(t, "")
	w.store(t, time.Now().Add(-time.Minute))
	dir := filepath.Join(w.o.Home, folder)
	for what, write := range map[string]func() error{
		"refresh": func() error { _, err := NewSource(w.o.Options).Header(t.Context()); return err },
		"logout":  func() error { _, err := Logout(t.Context(), w.o.Options); return err },
	} {
		w.store(t, time.Now().Add(-time.Minute))
		left := filepath.Join(dir, ".zoo.json.new-1")
		if err := os.WriteFile(left, []byte("tokens"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s leaves it: %v", what, err)
		}
	}
}

// TestLogout: R-O1.
func TestLogout(t *testing.T) {
	w := newWorld(t, "")
	if was, err := Logout(t.Context(), w.o.Options); was || err != nil {
		t.Error(was, err)
	}
	w.store(t, time.Now().Add(time.Hour))
	if was, err := Logout(t.Context(), w.o.Options); !was || err != nil {
		t.Error(was, err)
	}
	if s, err := Status(w.o.Options); s != NotAuthenticated || err != nil {
		t.Error(s, err)
	}
	if len(w.as.Requests()) != 0 {
		t.Error("something was revoked")
	}
}

// TestFormatting: R-D5.
func TestFormatting(t *testing.T) {
	w := newWorld(t, "")
	r := w.store(t, time.Now().Add(time.Hour))
	s := NewSource(w.o.Options)
	if _, err := s.Header(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, _ := parseToken([]byte(`{"access_token":"zoo-access-9"}`))
	for _, v := range []any{r, s.current, s.refused, w.o.Server, a, client{secret: secret.New("zoo-client-secret")}, redirected{code: secret.New("zoo-code-1")}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if out := fmt.Sprintf(verb, v); unsafeText(out) {
				t.Errorf("%T tells: %s", v, out)
			}
		}
	}
	scrub := secret.NewScrubber()
	o := w.o.Options
	o.Scrub = scrub
	if _, err := load(o); err != nil || strings.Contains(scrub.Text("x "+r.access.Reveal()+" y "+r.refresh.Reveal()), "zoo-") {
		t.Error("the scrubber did not learn the tokens")
	}
}
