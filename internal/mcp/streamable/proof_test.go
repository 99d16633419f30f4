package streamable

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"magi-code/internal/secret"
	"magi-code/test/zoo/httpzoo"
)

// TestRedirectedStreamAndEnd: GET and DELETE follow no redirect either. R-H5, S15.
func TestRedirectedStreamAndEnd(t *testing.T) {
	target := httpzoo.Start("")
	defer target.Close()
	var refused atomic.Int64
	m := httpzoo.Start("")
	defer m.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			m.ServeHTTP(w, r)
			return
		}
		refused.Add(1)
		http.Redirect(w, r, target.URL(), http.StatusTemporaryRedirect)
	}))
	defer front.Close()
	tr, err := Open(t.Context(), Options{Name: "zoo", URL: secret.New(front.URL + "/mcp")})
	if err != nil {
		t.Fatal(err)
	}
	handshake(t, tr)
	eventually(t, "GET", func() bool { return refused.Load() == 1 })
	if _, err := echo(t, tr, 1); err != nil {
		t.Error(err)
	}
	_ = tr.Close(t.Context())
	if n := len(target.Requests()); n != 0 || refused.Load() != 2 {
		t.Errorf("%d redirects, the target got %d requests", refused.Load(), n)
	}
}

// TestOddEnds: whatever a server answers to DELETE, closing is no failure. W7, B30.
func TestOddEnds(t *testing.T) {
	for _, mode := range []string{"delete-404", "delete-405", "delete-500"} {
		m := httpzoo.Start(mode)
		tr := open(t, m)
		handshake(t, tr)
		if err := tr.Close(t.Context()); err != nil || m.Count("DELETE", "") != 1 {
			t.Errorf("%s: %v, %d DELETE", mode, err, m.Count("DELETE", ""))
		}
	}
}

// TestHostAsWritten: a server that knows this machine by one name alone is asked by that name. W7.
func TestHostAsWritten(t *testing.T) {
	m := httpzoo.Start("")
	defer m.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Host, "localhost:") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		m.ServeHTTP(w, r)
	}))
	defer front.Close()
	for name, ok := range map[string]bool{"localhost": true, "127.0.0.1": false} {
		tr, err := Open(t.Context(), Options{Name: "zoo", URL: secret.New(strings.Replace(front.URL, "127.0.0.1", name, 1) + "/mcp")})
		if err != nil {
			t.Fatal(err)
		}
		if err := tryHandshake(t.Context(), tr); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "403") {
			t.Errorf("%s: %v", name, err)
		}
		_ = tr.Close(t.Context())
	}
}
