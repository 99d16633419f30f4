package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"magi-code/test/zoo/httpzoo"
)

// TestUnapprovedIsNotContacted: no command sends a request to an HTTP server that was not approved. S4, R-A1.
func TestUnapprovedIsNotContacted(t *testing.T) {
	t.Parallel()
	m := httpzoo.Start("")
	defer m.Close()
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"web": {"type": "http", "url": m.URL()}, "auth": {"type": "http", "url": m.URL(), "oauth": map[string]any{}}})
	for _, args := range [][]string{
		{"mcp", "list"}, {"mcp", "list", "--json"}, {"mcp", "get", "web"}, {"mcp", "test", "web"}, {"mcp", "call", "web", "echo"}, {"mcp", "login", "auth"},
		{"mcp", "logout", "auth"}, {"mcp", "revoke", "web"}, {"run", "--provider", "offline", "--no-session", "--allow", "*", "call mcp__web__echo {}"},
	} {
		p.run(t, args...)
		if n := len(m.Requests()); n != 0 {
			t.Fatalf("%v: %d requests", args, n)
		}
	}
	p.approve(t, "web")
	if o := p.run(t, "mcp", "test", "web"); o.code != 0 || len(m.Requests()) == 0 {
		t.Errorf("the approved server: %v", o)
	}
}

// TestProxyIsUsed: servers and their metadata are reached through the proxy of the environment, and this machine is not. X6.
func TestProxyIsUsed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host)
		mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "no")
	}))
	defer proxy.Close()
	m := httpzoo.Start("")
	defer m.Close()
	p := newPlace(t)
	p.env = []string{"HTTPS_PROXY=" + strings.Replace(proxy.URL, "http://", "http://user:canary-pass@", 1), "HTTP_PROXY=" + proxy.URL}
	p.define(t, map[string]map[string]any{
		"far":  {"type": "http", "url": "https://mcp.invalid/mcp"},
		"auth": {"type": "http", "url": "https://auth.invalid/mcp", "oauth": map[string]any{}},
		"near": {"type": "http", "url": m.URL()},
	})
	p.approve(t, "far", "auth", "near")
	for _, args := range [][]string{{"mcp", "test", "far"}, {"mcp", "login", "auth", "--no-browser"}} {
		if o := p.run(t, args...); o.code == 0 || strings.Contains(o.out+o.err, "canary") {
			t.Errorf("%v: %v", args, o)
		}
	}
	if o := p.run(t, "mcp", "test", "near"); o.code != 0 {
		t.Errorf("near: %v", o)
	}
	for _, want := range []string{"CONNECT mcp.invalid:443", "CONNECT auth.invalid:443"} {
		if !slices.Contains(asked, want) {
			t.Errorf("the proxy was asked %v", asked)
		}
	}
	if slices.ContainsFunc(asked, func(s string) bool { return strings.Contains(s, "127.0.0.1") }) {
		t.Errorf("this machine was reached through the proxy: %v", asked)
	}
}
