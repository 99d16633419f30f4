package endpoint

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBrokenAnswers: whatever a server sends instead of HTTP becomes one sentence of ours, which quotes nothing of it (rule 10).
func TestBrokenAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	chunked := ok + "Transfer-Encoding: chunked\r\n\r\n"
	for name, c := range map[string]struct{ raw, want string }{
		"two lengths":    {ok + "Content-Length: 6\r\nContent-Length: 7\r\n\r\ncanary", "not valid HTTP"},
		"odd length":     {ok + "Content-Length: canary\r\n\r\n", "not valid HTTP"},
		"odd header":     {ok + "Canary canary\r\n\r\n", "not valid HTTP"},
		"odd status":     {"HTTP/1.1 canary\r\n\r\n", "not valid HTTP"},
		"a page":         {"<html>canary", "not valid HTTP"},
		"odd chunk":      {chunked + "canary\r\n", "not valid HTTP"},
		"negative chunk": {chunked + "-5\r\nhello\r\n", "not valid HTTP"},
		"huge chunk":     {chunked + "fffffffffffffffff\r\n", "not valid HTTP"},
		"long extension": {chunked + "5;" + strings.Repeat("canary", 2000) + "\r\nhello\r\n0\r\n\r\n", "not valid HTTP"},
		"long trailer":   {chunked + "0\r\n" + strings.Repeat("X: canary\r\n", 100_000), "not valid HTTP"},
		"long headers":   {ok + strings.Repeat("X: canary\r\n", 100_000) + "\r\n", "larger than 256 KiB"},
		"endless hints":  {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </canary>\r\n\r\n", 20_000), "larger than 256 KiB"},
		"no gzip":        {ok + "Content-Encoding: gzip\r\n\r\n" + strings.Repeat("canary", 20), "damaged"},
		"torn gzip":      {ok + "Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xffcanary canary canary", "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan struct{})
			go func() {
				defer close(served)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, c.raw)
			}()
			t.Cleanup(func() { _ = l.Close(); <-served })
			tr := NewTransport()
			defer tr.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err == nil {
				defer resp.Body.Close()
				_, err = ReadBody(resp, 1<<20)
			}
			if err == nil {
				t.Fatal("no error")
			}
			if got := Describe(err); !strings.Contains(got, c.want) || strings.Contains(got, "canary") {
				t.Errorf("%v: %q", err, got)
			}
		})
	}
}

// TestBrokenHTTP2: the same of HTTP/2, whose errors name streams and frames.
func TestBrokenHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/torn":
			_, _ = io.WriteString(w, "canary")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/hints":
			w.Header().Set("Link", "</canary>")
			for range 20_000 {
				w.WriteHeader(http.StatusEarlyHints)
			}
		}
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	for path, want := range map[string]string{"/abort": "broke its answer off", "/torn": "broke its answer off", "/hints": "larger than 256 KiB"} {
		tr := NewTransport()
		tr.base.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err == nil {
			_, err = ReadBody(resp, 1<<20)
			_ = resp.Body.Close()
		}
		if err == nil {
			t.Fatalf("%s: no error", path)
		}
		if got := Describe(err); !strings.Contains(got, want) {
			t.Errorf("%s: %v: %q", path, err, got)
		}
		tr.CloseIdleConnections()
	}
}
