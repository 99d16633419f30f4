package streamable

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
	"magi-code/test/zoo/httpzoo"
)

// TestServerMessages: requests inside a POST stream and on the GET stream reach the handler, and the reply goes back with
// the id as it came and all headers. R-H2, R-H8, R-P5.
func TestServerMessages(t *testing.T) {
	m := httpzoo.Start("sse-ping")
	var notes atomic.Int64
	tr := open(t, m, func(o *Options) {
		o.Headers = []Header{{"X-Team", secret.New("platform")}}
		o.Handler = func(r jsonrpc.Request) *jsonrpc.Response {
			if len(r.ID) == 0 {
				notes.Add(1)
				return nil
			}
			return &jsonrpc.Response{ID: r.ID, Result: []byte("{}")}
		}
	})
	handshake(t, tr)
	eventually(t, "GET stream", func() bool { return m.Push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) > 0 })
	eventually(t, "notification", func() bool { return notes.Load() > 0 })
	if _, err := echo(t, tr, 1); err != nil {
		t.Fatal(err)
	}
	replies := func() (out []string) {
		for _, r := range m.Requests() {
			if r.Method == "POST" && r.RPC == "" {
				out = append(out, r.Body)
				if r.Header.Get("Mcp-Session-Id") == "" || r.Header.Get("Mcp-Protocol-Version") != version || r.Header.Get("X-Team") == "" {
					t.Errorf("reply carries %v", r.Header)
				}
			}
		}
		return out
	}
	eventually(t, "three replies", func() bool { return len(replies()) == 3 })
	for i, id := range []string{"1", `"abc"`, "12345678901234567890"} {
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`; replies()[i] != want {
			t.Errorf("reply %s, want %s", replies()[i], want)
		}
	}
}

// TestFlood: a thousand pings fill the queue and no more. S35, R-H8.
func TestFlood(t *testing.T) {
	m := httpzoo.Start("sse-flood")
	tr := open(t, m, func(o *Options) {
		o.Handler = func(r jsonrpc.Request) *jsonrpc.Response { return &jsonrpc.Response{ID: r.ID, Result: []byte("{}")} }
	})
	handshake(t, tr)
	if _, err := echo(t, tr, 1); err != nil {
		t.Fatal(err)
	}
	if tr.Dropped() == 0 {
		t.Error("nothing was dropped")
	}
	eventually(t, "the queue to empty", func() bool { return m.Count("POST", "") >= 1000-tr.Dropped() })
}

// TestResume: a stream that ends before the response is resumed from its last event, after the time that the server set.
// B27, R-H2.
func TestResume(t *testing.T) {
	m := httpzoo.Start("sse-resume")
	tr := open(t, m)
	handshake(t, tr)
	r, err := echo(t, tr, 7)
	if err != nil || !strings.Contains(string(r.Result), `{\"n\":7}`) {
		t.Fatal(r, err)
	}
	var ids []string
	var last time.Time
	for _, q := range m.Requests() {
		if q.RPC == "tools/call" {
			last = q.At
		}
		if id := q.Header.Get("Last-Event-Id"); id != "" {
			ids = append(ids, id)
			if d := q.At.Sub(last); d < 45*time.Millisecond {
				t.Errorf("resumed after %v", d)
			}
			last = q.At
		}
	}
	if strings.Join(ids, " ") != "e1 e2" {
		t.Errorf("resumed from %v", ids)
	}
}

// TestElsewhere: an answer that comes on the GET stream is still the answer. P4.
func TestElsewhere(t *testing.T) {
	tr := open(t, httpzoo.Start("sse-elsewhere"))
	handshake(t, tr)
	eventually(t, "GET stream", tr.HasStream)
	for i := range 3 {
		if r, err := echo(t, tr, i+1); err != nil || !strings.Contains(string(r.Result), fmt.Sprintf(`{\"n\":%d}`, i+1)) {
			t.Error(r, err)
		}
	}
	if tr.Err() != nil {
		t.Error(tr.Err())
	}
}

// TestResumeEnds: a server that resumes nothing, or always breaks off, gets bounded tries. B27.
func TestResumeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		gets   int
	}{"refuses": {405, 1}, "fails": {503, maxResumeFails}, "breaks": {200, maxResumes}} {
		var gets atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				gets.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(c.status)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 1\ndata:\n\n")
		}))
		tr, err := Open(t.Context(), Options{URL: secret.New(srv.URL)})
		if err != nil {
			t.Fatal(err)
		}
		tr.pause = func(ctx context.Context, d time.Duration) error { return ctx.Err() }
		_, err = tr.Call(t.Context(), request(1, "tools/call", "{}"))
		if err == nil || jsonrpc.NotSent(err) || int(gets.Load()) != c.gets {
			t.Errorf("%s: %d GETs, %v", name, gets.Load(), err)
		}
		_ = tr.Close(t.Context())
		srv.Close()
	}
}

// TestListenBackoff: a GET stream that closes at once is opened again ever more slowly. B23.
func TestListenBackoff(t *testing.T) {
	m := httpzoo.Start("get-closes")
	tr := open(t, m)
	waits := make(chan time.Duration)
	tr.pause = func(ctx context.Context, d time.Duration) error {
		select {
		case waits <- d:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	handshake(t, tr)
	want := time.Second
	for range 8 {
		if d := <-waits; d != want {
			t.Errorf("waits %v, want %v", d, want)
		}
		want = min(2*want, maxBackoff)
	}
}

// TestListenLost: a GET stream that meets 404 when it is opened again tells that the session is gone. R-H3.
func TestListenLost(t *testing.T) {
	m := httpzoo.Start("get-closes")
	tr := open(t, m)
	var once sync.Once
	tr.pause = func(ctx context.Context, d time.Duration) error {
		once.Do(func() { m.SetMode(""); m.ForgetSessions() })
		return ctx.Err()
	}
	handshake(t, tr)
	<-tr.Done()
	var lost *SessionLostError
	if !errors.As(tr.Err(), &lost) {
		t.Error(tr.Err())
	}
}

// tokens is a source whose first value the server does not take.
type tokens struct {
	mu       sync.Mutex
	value    string
	next     []string
	rejected []string
	scopes   []string
	err      error
}

func (k *tokens) Header(context.Context) (secret.String, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return secret.New(k.value), k.err
}

func (k *tokens) Rejected(_ context.Context, h secret.String) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rejected = append(k.rejected, h.Reveal())
	if h.Reveal() == k.value && len(k.next) > 0 {
		k.value, k.next = k.next[0], k.next[1:]
	}
}

func (k *tokens) NeedScopes(_ context.Context, s []string) { k.scopes = s }

// TestTokens: a 401 is answered by one more try with a fresh token, and not by two. R-O1.
func TestTokens(t *testing.T) {
	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		switch r.Header.Get("Authorization") {
		case "Bearer good-token":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		case "Bearer poor-token":
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="a b"`)
			w.WriteHeader(http.StatusForbidden)
		case "Bearer broken-token":
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, "I do not take broken-\x1b[31mtoken, not ", r.Header.Get("Authorization"))
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer srv.Close()
	for _, c := range []struct {
		name   string
		k      *tokens
		calls  int64
		want   string // of the error; "" for none
		scopes int
	}{
		{"good", &tokens{value: "Bearer good-token"}, 1, "", 0},
		{"stale", &tokens{value: "Bearer old-token", next: []string{"Bearer good-token"}}, 2, "", 0},
		{"stale twice", &tokens{value: "Bearer old-token", next: []string{"Bearer odd-token", "Bearer good-token"}}, 2, "refuses the token", 0},
		{"no other", &tokens{value: "Bearer old-token"}, 1, "refuses the token", 0},
		{"poor", &tokens{value: "Bearer poor-token"}, 1, "a b", 2},
		{"broken", &tokens{value: "Bearer broken-token"}, 1, "I do not take", 0},
		{"none", &tokens{err: errors.New("not authenticated")}, 0, "not authenticated", 0},
	} {
		calls.Store(0)
		tr, err := Open(t.Context(), Options{Name: "n", URL: secret.New(srv.URL), Tokens: c.k})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Call(t.Context(), request(1, "tools/call", "{}"))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
		var e *Error
		if errors.As(err, &e) && c.calls > 0 && e.Status != 500 && !strings.Contains(e.Hint(), "magi-code mcp login n") {
			t.Errorf("%s: hint %q", c.name, e.Hint())
		}
		if err != nil && strings.Contains(err.Error(), "-token") {
			t.Errorf("%s: tells the token: %v", c.name, err)
		}
		if calls.Load() != c.calls || len(c.k.scopes) != c.scopes {
			t.Errorf("%s: %d calls, scopes %v", c.name, calls.Load(), c.k.scopes)
		}
		_ = tr.Close(t.Context())
	}
}

// TestKeepAlive: calls after the first use its connection, whatever form the answers have. R-H9.
func TestKeepAlive(t *testing.T) {
	for _, form := range []string{"application/json", "text/event-stream"} {
		var conns atomic.Int64
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", form)
			if form == "text/event-stream" {
				fmt.Fprint(w, "data: ")
			}
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n\n")
		}))
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				conns.Add(1)
			}
		}
		srv.Start()
		tr, err := Open(t.Context(), Options{URL: secret.New(srv.URL)})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if _, err := tr.Call(t.Context(), request(1, "tools/call", "{}")); err != nil {
				t.Fatal(err)
			}
		}
		if n := conns.Load(); n > 1 {
			t.Errorf("%s: %d connections for calls in a row", form, n)
		}
		_ = tr.Close(t.Context())
		srv.Close()
	}
}

// TestOverlap: 64 calls at once are matched to their answers. R-P4.
func TestOverlap(t *testing.T) {
	for _, mode := range []string{"", "good-sse"} {
		tr := open(t, httpzoo.Start(mode))
		handshake(t, tr)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				r, err := echo(t, tr, i+1)
				if err != nil || !strings.Contains(string(r.Result), fmt.Sprintf(`{\"n\":%d}`, i+1)) {
					t.Errorf("%d: %v %v", i, r, err)
				}
			})
		}
		wg.Wait()
	}
}

// TestBatch: an array is taken element by element with 2025-03-26 alone. B21.
func TestBatch(t *testing.T) {
	tr := open(t, httpzoo.Start("batch"))
	handshake(t, tr)
	tr.Negotiated("2025-03-26")
	if r, err := echo(t, tr, 1); err != nil || r.Error != nil {
		t.Error(r, err)
	}
}

// TestListenOnce: a first answer that is no stream is final, whatever its status. B23.
func TestListenOnce(t *testing.T) {
	for _, mode := range []string{"get-401", "get-404", "get-405", "get-429", "get-503", "get-200-json", "get-200-html"} {
		m := httpzoo.Start(mode)
		tr := open(t, m)
		asked := make(chan struct{}, 1)
		tr.pause = func(ctx context.Context, d time.Duration) error {
			asked <- struct{}{}
			return ctx.Err()
		}
		handshake(t, tr)
		eventually(t, "GET", func() bool { return m.Count("GET", "") > 0 })
		_ = tr.Close(t.Context()) // waits for the listener
		if len(asked) > 0 || m.Count("GET", "") != 1 {
			t.Errorf("%s: %d GETs", mode, m.Count("GET", ""))
		}
	}
}

// TestTail: what a server says after the response is heard, though the caller has its answer and ended its context.
func TestTail(t *testing.T) {
	canceled := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-canceled
		fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
	}))
	defer srv.Close()
	heard := make(chan string, 1)
	tr, err := Open(t.Context(), Options{URL: secret.New(srv.URL), Handler: func(r jsonrpc.Request) *jsonrpc.Response {
		heard <- r.Method
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := tr.Call(ctx, request(1, "tools/call", "{}")); err != nil {
		t.Error(err)
	}
	cancel()
	close(canceled)
	select {
	case <-heard:
	case <-time.After(30 * time.Second):
		t.Error("not heard")
	}
}

// TestRetryAfter: B28.
func TestRetryAfter(t *testing.T) {
	soon := time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)
	for v, want := range map[string][2]time.Duration{
		"": {0, 0}, "0": {0, 0}, "2": {2 * time.Second, 2 * time.Second}, "6": {-1, -1}, "3600": {-1, -1}, "-1": {-1, -1}, "soon": {-1, -1},
		soon: {0, 2 * time.Second}, "Fri, 31 Dec 2999 23:59:59 GMT": {-1, -1}, "Fri, 31 Dec 1999 23:59:59 GMT": {0, 0},
	} {
		if d := retryAfter(http.Header{"Retry-After": {v}}); d < want[0] || d > want[1] {
			t.Errorf("%q: %v", v, d)
		}
	}
}
