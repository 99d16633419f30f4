package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUnasked: what a server sends on a connection without having been asked is shown nowhere; net/http would log it as it is, with
// whatever secret it repeats. R-D4, R-D5.
func TestUnasked(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer r.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		result := `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`
		switch {
		case strings.Contains(string(body), `"tools/list"`):
			result = `{"tools":[]}`
		case !strings.Contains(string(body), `"initialize"`):
			w.WriteHeader(http.StatusAccepted)
			return
		}
		conn, out, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		id, _, _ := strings.Cut(string(body)[strings.Index(string(body), `"id":`)+len(`"id":`):], ",")
		answer := `{"jsonrpc":"2.0","id":` + strings.TrimSpace(strings.Trim(id, "}")) + `,"result":` + result + `}`
		fmt.Fprintf(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
		fmt.Fprintf(out, "unasked %s", r.Header.Get("X-Token"))
		_ = out.Flush()
		_, _ = io.Copy(io.Discard, conn) // until the client has had enough of it
	}))
	defer srv.Close()
	p := newPlace(t)
	p.env = append(p.env, "TOKEN=canary-7d1e-secret")
	p.define(t, map[string]map[string]any{"x": {"type": "http", "url": srv.URL, "headers": map[string]string{"X-Token": "${TOKEN}"}}})
	p.approve(t, "x")
	got := p.run(t, "mcp", "test", "x")
	if got.code != 0 || got.err != "" || strings.Contains(got.out, "unasked") {
		t.Error(got)
	}
}
