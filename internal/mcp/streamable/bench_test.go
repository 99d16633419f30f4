package streamable

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/secret"
)

const benchAnswer = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`

func benchServer(form string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", form)
		if form == "text/event-stream" {
			fmt.Fprint(w, "data: ")
		}
		fmt.Fprint(w, benchAnswer+"\n\n")
	}))
}

// BenchmarkCall compares a call with the bare HTTP round trip of the same bytes: at most 1.5 times.
func BenchmarkCall(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		srv := benchServer("application/json")
		defer srv.Close()
		rt := endpoint.NewTransport()
		defer rt.CloseIdleConnections()
		body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`)
		for b.Loop() {
			req, _ := http.NewRequestWithContext(b.Context(), "POST", srv.URL, bytes.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			resp, err := rt.RoundTrip(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	for _, form := range []string{"application/json", "text/event-stream"} {
		b.Run(form, func(b *testing.B) {
			tr, done := benchTransport(b, form)
			defer done()
			for b.Loop() {
				if _, err := tr.Call(b.Context(), request(1, "tools/call", `{"name":"echo","arguments":{}}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOverlap is 64 calls at once.
func BenchmarkOverlap(b *testing.B) {
	tr, done := benchTransport(b, "application/json")
	defer done()
	for b.Loop() {
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := tr.Call(b.Context(), request(1, "tools/call", `{"name":"echo","arguments":{}}`)); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func benchTransport(b *testing.B, form string) (*Transport, func()) {
	srv := benchServer(form)
	tr, err := Open(b.Context(), Options{URL: secret.New(srv.URL)})
	if err != nil {
		b.Fatal(err)
	}
	return tr, func() {
		_ = tr.Close(b.Context())
		srv.Close()
	}
}
