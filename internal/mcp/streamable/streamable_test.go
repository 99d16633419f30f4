package streamable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
	"magi-code/test/zoo/httpzoo"
)

// TestHeaders: R-H1, R-H3, R-H4, B30.
func TestHeaders(t *testing.T) {
	m := httpzoo.Start("new-session")
	tr := open(t, m, func(o *Options) {
		o.Headers = []Header{{"X-Team", secret.New("platform")}, {"Mcp-Session-Id", secret.New("forged")}, {"Accept-Encoding", secret.New("br")}}
	})
	handshake(t, tr)
	eventually(t, "GET stream", tr.HasStream)
	for i := range 2 {
		if _, err := echo(t, tr, i+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	deletes := 0
	for _, r := range m.Requests() {
		h := r.Header
		if h.Get("X-Team") != "platform" || h.Get("Accept-Encoding") == "br" {
			t.Errorf("%s %s: configured headers: %v", r.Method, r.RPC, h)
		}
		if r.RPC == "initialize" {
			if h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Protocol-Version") != "" {
				t.Errorf("initialize carries %v", h)
			}
		} else if h.Get("Mcp-Session-Id") != "zoo-session-1" || h.Get("Mcp-Protocol-Version") != version {
			t.Errorf("%s %s carries %v", r.Method, r.RPC, h)
		}
		if a := h.Get("Accept"); r.Method == "POST" && a != "application/json, text/event-stream" || r.Method == "GET" && a != "text/event-stream" {
			t.Errorf("%s accepts %q", r.Method, a)
		}
		if r.Method == "DELETE" {
			deletes++
		}
	}
	if deletes != 1 {
		t.Errorf("%d DELETE", deletes)
	}
}

// TestAnswers: every way to say the same answer is understood. R-H1, R-H6, B13, B24, B25, B26, X6.
func TestAnswers(t *testing.T) {
	for _, mode := range []string{"", "good-sse", "no-session", "ct-charset", "ct-upper", "ct-problem", "ct-plain", "ct-none", "gzip",
		"sse-crlf", "sse-cr", "sse-bom", "sse-multiline", "sse-comment", "sse-split", "sse-noterm", "sse-emptydata", "sse-names", "sse-open", "sse-notes", "sse-ping",
		"notify-200", "notify-202", "notify-204", "notify-200-json", "notify-202-null", "notify-endless", "string-id",
		"get-400", "get-401", "get-403", "get-404", "get-405", "get-406", "get-500", "get-200-json", "get-200-html", "get-closes", "get-hang"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			tr := open(t, httpzoo.Start(mode))
			started := time.Now()
			handshake(t, tr)
			for i := range 3 {
				r, err := echo(t, tr, i+1)
				if err != nil || r.Error != nil || mode != "string-id" && !strings.Contains(string(r.Result), fmt.Sprint(i+1)) {
					t.Fatalf("call %d: %v %v", i, r, err)
				}
			}
			if d := time.Since(started); d > 2*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestRefused: what goes wrong says what to do. R-H5, R-H7, B22, B25, B28, B29, W7.
func TestRefused(t *testing.T) {
	target := httpzoo.Start("")
	t.Cleanup(func() { // after the parallel subtests
		if n := len(target.Requests()); n != 0 {
			t.Errorf("the redirect target got %d requests", n) // S15
		}
		target.Close()
	})
	for _, c := range []struct {
		mode  string
		wants []string // in the error or in its hint
		dead  bool     // the connection ends
	}{
		{"html", []string{"web page", "not an MCP endpoint", `"url"`}, false},
		{"redirect-307", []string{"redirects to " + target.Origin() + "/other", `"url"`}, false},
		{"redirect-301", []string{"redirects to " + target.Origin() + "/other"}, false},
		{"status-401", []string{"authorization", `"oauth": {}`, "magi-code mcp login zoo"}, false},
		{"status-404", []string{"404", "path"}, false},
		{"status-405", []string{"405", "HTTP+SSE"}, false},
		{"status-503", []string{"503", "no luck"}, false},
		{"status-429-later", []string{"429"}, false},
		{"status-500-call", []string{"500"}, false},
		{"403-scope", []string{"files:write files:read"}, false},
		{"big-session", []string{"session id"}, true},
		{"bad-session", []string{"session id"}, true},
		{"session-400", []string{"400", "unknown session"}, true},
		{"session-400-named", []string{"400 Bad Request: Session not found"}, true},
		{"empty-202", []string{"no answer"}, false},
		{"wrong-id", []string{"no response"}, false},
		{"batch", []string{"no response"}, false},
		{"br", []string{"encoding"}, true},
		{"gzip-bomb", []string{"16 MiB"}, false},
		{"sse-huge", []string{"16 MiB"}, false},
		{"sse-drop", []string{"ended before the response"}, false},
		{"sse-mid", []string{"ended before the response"}, false},
		{"sse-reset", []string{"ended before the response"}, false},
		{"drop", []string{"closed the connection"}, true},
		{"drop-mid-reply", []string{"closed the connection"}, true},
		{"slow-error", []string{"500"}, false},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			m := httpzoo.StartWith(&httpzoo.MCP{Mode: c.mode, Target: target.URL()[:len(target.URL())-3] + "other?token=canary-secret#frag"})
			tr := open(t, m, func(o *Options) {
				o.URL = secret.New(m.URL() + "?key=canary-secret")
				o.Headers = []Header{{"X-Key", secret.New("canary-secret")}}
			})
			tr.pause = func(ctx context.Context, d time.Duration) error { return ctx.Err() }
			err := tryHandshake(t.Context(), tr)
			if err == nil {
				_, err = echo(t, tr, 1)
			}
			if err == nil {
				t.Fatal("no error")
			}
			if jsonrpc.NotSent(err) {
				t.Error("claims that nothing was sent")
			}
			text := err.Error()
			var e *Error
			if errors.As(err, &e) {
				text += "\n" + e.Hint()
			}
			for _, w := range c.wants {
				if !strings.Contains(text, w) {
					t.Errorf("%q lacks %q", text, w)
				}
			}
			if strings.Contains(text, "canary") || strings.ContainsAny(text, "\x1b\x07") || len(text) > 3000 {
				t.Errorf("unsafe text of %d bytes: %q", len(text), text)
			}
			if dead := tr.Err() != nil; dead != c.dead {
				t.Errorf("connection ended: %v (%v)", dead, tr.Err())
			}
			if strings.HasPrefix(c.mode, "redirect") {
				if err := tr.Close(t.Context()); err != nil || m.Count("DELETE", "") != 0 {
					t.Error("DELETE without a session") // B30
				}
			}
		})
	}
}

// TestRPCErrorInStatus: an error status with a JSON-RPC error to our id is the call's own, and the connection lives. B28.
func TestRPCErrorInStatus(t *testing.T) {
	for mode, code := range map[string]int64{"rpc-400": -32602, "rpc-404": -32601, "null-id": -32700} {
		tr := open(t, httpzoo.Start(mode))
		handshake(t, tr)
		if r, err := echo(t, tr, 1); err != nil || r.Error == nil || r.Error.Code != code {
			t.Errorf("%s: %v %v", mode, r, err)
		}
		if tr.Err() != nil {
			t.Errorf("%s: %v", mode, tr.Err())
		}
	}
}

// TestRetry: only what may be repeated is repeated. B28.
func TestRetry(t *testing.T) {
	t.Parallel()
	m := httpzoo.Start("status-503-once")
	tr := open(t, m)
	handshake(t, tr)
	if _, err := tr.Call(t.Context(), request(1, "tools/list", "")); err != nil {
		t.Fatal(err)
	}
	if m.Count("POST", "initialize") != 2 || m.Count("POST", "tools/list") != 2 {
		t.Error("not repeated")
	}
	if _, err := echo(t, tr, 2); err == nil || m.Count("POST", "tools/call") != 1 {
		t.Errorf("a call was repeated: %v", err)
	}
}

// TestSessionLost: ten calls at once that meet a forgotten session may all be sent again. B22, R-H3.
func TestSessionLost(t *testing.T) {
	for _, mode := range []string{"session-404", "session-404-html", "session-404-rpc", "session-404-named"} {
		m := httpzoo.Start(mode)
		tr := open(t, m)
		handshake(t, tr)
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				_, err := echo(t, tr, i+1)
				var lost *SessionLostError
				if !errors.As(err, &lost) || !jsonrpc.NotSent(err) {
					t.Errorf("%s: %v", mode, err)
				}
				if tr.Err() == nil {
					t.Errorf("%s: the connection lives on", mode)
				}
			})
		}
		wg.Wait()
		if _, err := echo(t, tr, 11); !jsonrpc.NotSent(err) {
			t.Errorf("%s: after the end: %v", mode, err)
		}
		if err := tr.Close(t.Context()); err != nil || m.Count("DELETE", "") != 0 {
			t.Errorf("%s: DELETE of a session that is gone", mode)
		}
	}
}

// TestSessionLostBySibling: a call that runs on while another meets the loss is cut off after a moment, as sent.
func TestSessionLostBySibling(t *testing.T) {
	t.Parallel()
	m := httpzoo.Start("")
	tr := open(t, m)
	handshake(t, tr)
	waiting := make(chan error, 1)
	go func() {
		_, err := tr.Call(t.Context(), request(1, "tools/call", `{"name":"wait"}`))
		waiting <- err
	}()
	eventually(t, "call", func() bool { return m.Count("POST", "tools/call") == 1 })
	m.ForgetSessions()
	if _, err := echo(t, tr, 2); !jsonrpc.NotSent(err) {
		t.Errorf("lost: %v", err)
	}
	if err := <-waiting; err == nil || jsonrpc.NotSent(err) {
		t.Errorf("sibling: %v", err)
	}
}

// TestServer500: two in a row on a session that worked end the connection. W7.
func TestServer500(t *testing.T) {
	tr := open(t, httpzoo.Start("session-500"))
	handshake(t, tr)
	_, _ = echo(t, tr, 1)
	if tr.Err() != nil {
		t.Error("one 500 ended the connection")
	}
	_, _ = echo(t, tr, 2)
	if tr.Err() == nil {
		t.Error("two did not")
	}
}

// TestCancel: a context ends a POST under way, its headers or its body. R-P6.
func TestCancel(t *testing.T) {
	for _, mode := range []string{"", "good-sse"} {
		m := httpzoo.Start(mode)
		tr := open(t, m)
		handshake(t, tr)
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("enough")
		go func() {
			eventually(t, "call", func() bool { return m.Count("POST", "tools/call") == 1 })
			cancel(reason)
		}()
		_, err := tr.Call(ctx, request(1, "tools/call", `{"name":"wait"}`))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) || jsonrpc.NotSent(err) {
			t.Errorf("%q: %v", mode, err)
		}
		if tr.Err() != nil {
			t.Errorf("%q: the transport closed by itself: %v", mode, tr.Err())
		}
		_, err = tr.Call(ctx, request(2, "tools/call", `{"name":"echo"}`))
		if !jsonrpc.NotSent(err) || m.Count("POST", "tools/call") != 1 {
			t.Errorf("%q: canceled before it began: %v", mode, err)
		}
	}
}

// TestUnreachable: a refused connection sent nothing, and says so.
func TestUnreachable(t *testing.T) {
	m := httpzoo.Start("")
	tr := open(t, m)
	m.Close()
	_, err := tr.Call(t.Context(), request(1, "initialize", ""))
	if !jsonrpc.NotSent(err) || tr.Err() == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

// TestClose: a server that hangs on DELETE, on a call and on GET holds nobody up. R-H3, B30.
func TestClose(t *testing.T) {
	t.Parallel()
	m := httpzoo.Start("delete-hang")
	tr := open(t, m)
	handshake(t, tr)
	waiting := make(chan error, 1)
	go func() {
		_, err := tr.Call(t.Context(), request(1, "tools/call", `{"name":"wait"}`))
		waiting <- err
	}()
	eventually(t, "call", func() bool { return m.Count("POST", "tools/call") == 1 })
	started := time.Now()
	_ = tr.Close(t.Context())
	if d := time.Since(started); d > deleteWait+time.Second {
		t.Errorf("took %v", d)
	}
	if err := <-waiting; !errors.Is(err, ErrClosed) {
		t.Errorf("call: %v", err)
	}
	if !errors.Is(tr.Err(), ErrClosed) {
		t.Errorf("reason: %v", tr.Err())
	}
	if _, err := echo(t, tr, 2); !jsonrpc.NotSent(err) {
		t.Errorf("after close: %v", err)
	}
}

// TestOpenRefuses: S14, S16.
func TestOpenRefuses(t *testing.T) {
	for _, u := range []string{"http://example.com/", "ftp://localhost/", "", "http://localhost.evil/", "https://u:p@example.com/"} {
		if _, err := Open(t.Context(), Options{URL: secret.New(u)}); err == nil {
			t.Errorf("%q opened", u)
		}
	}
	_, err := Open(t.Context(), Options{URL: secret.New("https://example.com"), Headers: []Header{{"X-A", secret.New("canary\r\nX-B: 1")}}})
	if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "X-A") {
		t.Errorf("header: %v", err)
	}
}

// TestOddEventID: an id that cannot stand in a header is never sent, and resumes nothing.
func TestOddEventID(t *testing.T) {
	for id, ok := range map[string]bool{"": false, "a": true, "a b": true, "caf\xe9": true, "\x01": false, "a\x7f": false} {
		if sendable(id) != ok {
			t.Errorf("%q", id)
		}
	}
}

// TestFormatting: R-D5.
func TestFormatting(t *testing.T) {
	m := httpzoo.Start("")
	tr := open(t, m, func(o *Options) {
		o.URL = secret.New(m.URL() + "?key=canary-query")
		o.Headers = []Header{{"Authorization", secret.New("Bearer canary-header")}}
	})
	handshake(t, tr)
	for _, v := range []any{tr, struct{ T *Transport }{tr}, tr.o, tr.o.Headers} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			if out := fmt.Sprintf(verb, v); strings.Contains(out, "canary") || strings.Contains(out, "zoo-session") {
				t.Errorf("%s of %T tells: %s", verb, v, out)
			}
		}
	}
}
