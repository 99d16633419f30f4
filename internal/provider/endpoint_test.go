package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"magi-code/internal/secret"
)

// get makes a request to an endpoint the way adapters do.
func get(ctx context.Context, e Endpoint) (*Answer, error) {
	header := http.Header{}
	if !e.Key.IsEmpty() {
		header.Set("Authorization", "Bearer "+e.Key.Reveal())
	}
	return Post(ctx, e.Client(), e.BaseURL, header, nil)
}

func local(t *testing.T, h http.HandlerFunc) Endpoint {
	t.Helper()
	s := httptest.NewServer(h)
	tr := newTransport()
	t.Cleanup(func() { tr.CloseIdleConnections(); s.Close() })
	return Endpoint{Name: "p", BaseURL: s.URL, URLFrom: "P_BASE_URL", Key: secret.New("sk-very-secret"), HTTP: tr}
}

func TestRedirectIsRefused(t *testing.T) { // S15, S16
	var hits atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		e := local(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", other.URL+"/x?token=sk-very-secret#f")
			w.WriteHeader(status)
		})
		_, err := get(t.Context(), e)
		got := e.Fail(err, "m")
		if got.Retryable || !strings.Contains(got.Message, "redirects to "+other.URL+"/x,") || strings.Contains(got.Error()+got.Hint, "secret") {
			t.Errorf("%d: %+v", status, got)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("the target got %d requests", hits.Load())
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	e := local(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(503)
		for range 1000 {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<12)); err != nil {
				return
			}
		}
	})
	_, err := get(t.Context(), e)
	got := e.Fail(err, "m")
	if got.Status != 503 || got.RetryAfter != 2*time.Second || len(got.Message) > 2*maxForeign {
		t.Errorf("got %+v", got)
	}
}

func TestNotAStream(t *testing.T) {
	for media, want := range map[string]string{
		"text/html; charset=utf-8": "answered text/html instead of an event stream",
		"application/json":         "answered application/json instead of an event stream",
	} {
		e := local(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = io.WriteString(w, map[bool]string{true: "<html>", false: "{}"}[strings.HasPrefix(media, "text")])
		})
		_, err := get(t.Context(), e)
		if got := e.Fail(err, "m"); !strings.Contains(got.Message, want) || got.Retryable || !strings.Contains(got.Hint, "P_BASE_URL") {
			t.Errorf("%s: %+v", media, got)
		}
	}
	e := local(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"error":{"message":"prompt is too long"}}`)
	})
	_, err := get(t.Context(), e)
	if !errors.Is(e.Fail(err, "m"), ErrContextOverflow) {
		t.Errorf("an error with status 200: %v", e.Fail(err, "m"))
	}
}

func TestConnectionIsReused(t *testing.T) {
	e := local(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("fail") != "" {
			w.WriteHeader(429)
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
		w.(http.Flusher).Flush()
	})
	var conns, reused int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		conns++
		if i.Reused {
			reused++
		}
	}})
	for i := range 6 {
		if i == 3 {
			e.BaseURL += "?fail=1"
		}
		a, err := get(ctx, e)
		if err != nil {
			continue
		}
		buf := make([]byte, 8) // the last event, not the end of the body
		if _, err := io.ReadFull(a, buf); err != nil {
			t.Fatal(err)
		}
		a.Finish()
	}
	if conns != 6 || reused != 5 {
		t.Errorf("%d requests, %d on a used connection", conns, reused)
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	_ = l.Close()
	e := Endpoint{Name: "ollama", BaseURL: gone + "/v1", URLFrom: "the base URL"}
	_, err = get(t.Context(), e)
	got := e.Fail(err, "m")
	if got.Message != "cannot connect to "+gone+"/v1: connection refused" || got.Hint != "start the service, or set the base URL to the right address" || got.Retryable {
		t.Errorf("%+v", got)
	}

	tlsServer := httptest.NewTLSServer(nil)
	defer tlsServer.Close()
	tlsServer.Config.ErrorLog = nil
	e = local(t, func(http.ResponseWriter, *http.Request) {})
	plain := e.BaseURL
	for address, want := range map[string]string{
		tlsServer.URL: "its certificate is not trusted",
		strings.Replace(plain, "http://", "https://", 1): "it does not speak TLS",
	} {
		e.BaseURL = address
		_, err = get(t.Context(), e)
		if got := e.Fail(err, "m"); !strings.Contains(got.Message, want) || got.Retryable {
			t.Errorf("%s: %+v", address, got)
		}
	}

	e = local(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.Close()
		}
	})
	e.BaseURL += "/?q=sk-very-secret"
	_, err = get(t.Context(), e)
	got = e.Fail(err, "m")
	if !got.Retryable || !strings.Contains(got.Message, "broke") || strings.Contains(fmt.Sprintf("%v %+v", got, got), "secret") {
		t.Errorf("a dropped connection: %+v", got)
	}
	for err := error(got); err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the query is in %q", err)
		}
	}

	dns := &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}
	if got := e.Fail(fmt.Errorf("x: %w", dns), "m"); got.Retryable || !strings.Contains(got.Message, "could not be resolved") {
		t.Errorf("%+v", got)
	}
}

// silent answers with a header and then nothing, until its request is cancelled; in memory, for a bubble.
type silent struct{ header bool }

func (s silent) RoundTrip(req *http.Request) (*http.Response, error) {
	if !s.header {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	r, w := io.Pipe()
	context.AfterFunc(req.Context(), func() { _ = w.CloseWithError(req.Context().Err()) })
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: r, Request: req}, nil
}

func TestStallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, header := range []bool{false, true} {
			e := Endpoint{Name: "p", BaseURL: "http://h", HTTP: silent{header}}
			start := time.Now()
			a, err := get(t.Context(), e)
			if header {
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.ReadAll(a)
				_ = a.Close()
			}
			got := e.Fail(err, "m")
			if !errors.Is(err, errStalled) || !got.Retryable || !strings.Contains(got.Message, "sent nothing") {
				t.Errorf("header %v: %v: %+v", header, err, got)
			}
			if want := map[bool]time.Duration{false: firstByteWait, true: idleWait}[header]; time.Since(start) != want {
				t.Errorf("header %v: ended after %s", header, time.Since(start))
			}
		}
	})
}

func TestFinishIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := Endpoint{Name: "p", BaseURL: "http://h", HTTP: silent{true}}
		a, err := get(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		a.Finish()
		if took := time.Since(start); took != finishWait {
			t.Errorf("took %s", took)
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }
func (endless) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: endless{}, Request: req}, nil
}

func TestAnswerIsBounded(t *testing.T) {
	e := Endpoint{Name: "p", BaseURL: "http://h", HTTP: endless{}}
	a, err := get(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, a)
	if n > maxAnswer+1<<20 || !errors.Is(err, errTooLarge) || e.Fail(err, "m").Retryable {
		t.Errorf("%d bytes, %v", n, err)
	}
	_ = a.Close()
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ url, key, want string }{
		{"https://a.example/v1", "k", ""},
		{"http://localhost:11434/v1", "", ""},
		{"localhost:11434", "", "not an http or https address"},
		{"", "", "not an http or https address"},
		{"file:///x", "", "not an http or https address"},
		{"https://u:sk-very-secret@a.example", "", "a user, a query or a fragment"},
		{"https://a.example/?key=sk-very-secret", "", "a user, a query or a fragment"},
		{"https://a.example", "a b", "the key holds a space"},
		{"https://a.example", "sk-very-secret\r\nX: y", "the key holds a space"},
		{"https://a.example", "schlüssel", "the key holds a space"},
	} {
		err := Endpoint{Name: "p", BaseURL: c.url, Key: secret.New(c.key), URLFrom: "U", KeyFrom: "K"}.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v", c.url, c.key, err)
		}
		if err != nil && strings.Contains(fmt.Sprintf("%+v", err), "secret") {
			t.Errorf("a secret is in %+v", err)
		}
	}
}
