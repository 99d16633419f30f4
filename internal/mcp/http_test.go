package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

// endpoint is a small Streamable HTTP server with sessions.
type endpoint struct {
	*httptest.Server
	session     atomic.Int64 // the valid one
	initializes atomic.Int64
	calls       atomic.Int64
	deletes     atomic.Int64
	refuse      func(w http.ResponseWriter, r *http.Request) bool
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Server.Close)
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.refuse != nil && e.refuse(w, r) {
		return
	}
	switch r.Method {
	case http.MethodDelete:
		e.deletes.Add(1)
		return
	case http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	m, err := jsonrpc.Decode(body)
	if err != nil || m.Request == nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.Request.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != fmt.Sprint("session", e.session.Load()) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var result string
	switch m.Request.Method {
	case "initialize":
		e.initializes.Add(1)
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("session", e.session.Load()))
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"web"}}`
	case "tools/list":
		result = `{"tools":[` + oneTool("t") + `]}`
	case "tools/call":
		e.calls.Add(1)
		result = `{"content":[{"type":"text","text":"ok"}]}`
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.Request.ID, result)
}

func startHTTP(t *testing.T, url string, headers ...definition.Pair) *Manager {
	t.Helper()
	d := definition.Server{Name: "web", Source: "/home/u/.mcp.json", Type: definition.HTTP, URL: url, Headers: headers, Timeout: 5}
	o := Options{Lookup: func(string) (string, bool) { return "", false }, Scrub: secret.NewScrubber()}
	m := open(t.Context(), o, []definition.Server{d}, func(o *Options, d definition.Server) dialer { return o.dialer(d, approval.Approved{}) })
	t.Cleanup(func() { closeNow(t, m) })
	return m
}

// The same manager over HTTP, with the session ended at the end.
func TestHTTP(t *testing.T) {
	e := newEndpoint(t)
	m := startHTTP(t, e.URL+"/mcp?key=canary-5f3a-secret")
	st := statusOf(t, m, "web")
	if st.State != Ready || st.Type != "http" || st.ServerName != "web" || len(st.Tools) != 1 {
		t.Fatalf("%+v, %v", st, st.Err)
	}
	if r, err := m.Call(t.Context(), "web", "t", nil); err != nil || r.Plain() != "ok" {
		t.Errorf("%v", err)
	}
	closeNow(t, m)
	if e.deletes.Load() != 1 {
		t.Errorf("%d DELETEs", e.deletes.Load())
	}
}

// B22, X3: the server forgets the session. Ten callers share one new connection, each call runs exactly once.
func TestHTTPSessionLost(t *testing.T) {
	e := newEndpoint(t)
	m := startHTTP(t, e.URL)
	e.session.Add(1)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if r, err := m.Call(t.Context(), "web", "t", nil); err != nil || r.Plain() != "ok" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if e.initializes.Load() != 2 || e.calls.Load() != 10 {
		t.Errorf("%d initializes, %d calls", e.initializes.Load(), e.calls.Load())
	}
	if st := statusOf(t, m, "web"); st.State != Ready {
		t.Errorf("%+v", st)
	}
}

// Failures name the phase and the cure, and never what the URL or the headers hold.
func TestHTTPFailures(t *testing.T) {
	const canary = "canary-5f3a-secret"
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, c := range []struct {
		name   string
		url    string
		answer func(w http.ResponseWriter, r *http.Request)
		phase  Phase
		want   string
		hint   string
	}{
		{"nobody there", closed.URL, nil, PhaseConnect, "refused", "running"},
		{"redirect", "", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/mcp/", http.StatusPermanentRedirect)
		}, PhaseInitialize, "redirect", `"url"`},
		{"web page", "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		}, PhaseInitialize, "web page", `"url"`},
		{"unauthorized", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, PhaseInitialize, "401", ""},
		{"echo", "", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			fmt.Fprintf(w, "bad %s %s\x1b[31m", r.URL, r.Header.Get("X-Key"))
		}, PhaseInitialize, "bad", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := c.url
			if c.answer != nil {
				e := newEndpoint(t)
				e.refuse = func(w http.ResponseWriter, r *http.Request) bool { c.answer(w, r); return true }
				url = e.URL
			}
			m := startHTTP(t, url+"/mcp?key="+canary, definition.Pair{Name: "X-Key", Value: canary})
			f := m.Failures()
			if len(f) != 1 || f[0].Phase != c.phase || !strings.Contains(f[0].Text, c.want) || !strings.Contains(f[0].Hint, c.hint) {
				t.Fatalf("%v", f)
			}
			if all := fmt.Sprintf("%+v %s", statusOf(t, m, "web"), f[0].Hint); strings.Contains(all, canary) || strings.Contains(all, "\x1b") {
				t.Errorf("%s", all)
			}
		})
	}
}

// source is a token source that knows one token.
type source struct{ asked, rejected atomic.Int64 }

func (s *source) Header(context.Context) (secret.String, error) {
	s.asked.Add(1)
	return secret.New("Bearer canary-5f3a-secret"), nil
}

func (s *source) Rejected(context.Context, secret.String) { s.rejected.Add(1) }

// R-O1: the silent source of a definition with oauth gives its header; a definition without has none.
func TestHTTPTokens(t *testing.T) {
	e := newEndpoint(t)
	e.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer canary-5f3a-secret" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	for _, oauth := range []*definition.OAuth{nil, {}} {
		tokens := &source{}
		d := definition.Server{Name: "web", Source: "/home/u/.mcp.json", Type: definition.HTTP, URL: e.URL, OAuth: oauth, Timeout: 5}
		o := Options{Scrub: secret.NewScrubber(), Tokens: func(approval.Approved) Tokens { return tokens }}
		m := open(t.Context(), o, []definition.Server{d}, func(o *Options, d definition.Server) dialer { return o.dialer(d, approval.Approved{}) })
		if st := statusOf(t, m, "web"); (st.State == Ready) != (oauth != nil) || (tokens.asked.Load() > 0) != (oauth != nil) {
			t.Errorf("oauth %v: %v, %v", oauth, st.State, st.Err)
		}
		closeNow(t, m)
	}
}

// R-P6 over HTTP: a cancelled call ends the session, its sibling fails distinctly, and the next call starts a session.
func TestHTTPCancel(t *testing.T) {
	e := newEndpoint(t)
	hanging := make(chan struct{}, 2)
	var hang atomic.Bool
	hang.Store(true)
	e.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !hang.Load() {
			return false
		}
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if !strings.Contains(string(body), `"tools/call"`) {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			return false
		}
		hanging <- struct{}{}
		<-r.Context().Done()
		return true
	}
	m := startHTTP(t, e.URL)
	ctx, cancel := context.WithCancel(t.Context())
	errs, sibling := make(chan error, 1), make(chan error, 1)
	go func() { _, err := m.Call(ctx, "web", "t", nil); errs <- err }()
	go func() { _, err := m.Call(t.Context(), "web", "t", nil); sibling <- err }()
	<-hanging
	<-hanging
	cancel()
	if err := <-errs; !errors.Is(err, ErrAborted) || errors.Is(err, ErrSibling) {
		t.Errorf("the cancelled one: %v", err)
	}
	if err := <-sibling; !errors.Is(err, ErrSibling) {
		t.Errorf("its sibling: %v", err)
	}
	hang.Store(false)
	if r, err := m.Call(t.Context(), "web", "t", nil); err != nil || r.Plain() != "ok" || e.initializes.Load() != 2 {
		t.Errorf("the next: %v, %d initializes", err, e.initializes.Load())
	}
	closeNow(t, m)
	if e.deletes.Load() != 2 {
		t.Errorf("%d DELETEs", e.deletes.Load())
	}
}
