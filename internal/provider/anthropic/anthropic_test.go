package anthropic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"magi-code/internal/provider"
	"magi-code/internal/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-very-secret"

// service is a loopback server that answers the nth request with the nth handler, the last one repeated.
type service struct {
	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

func serve(t testing.TB, handlers ...http.HandlerFunc) (*service, *Provider) {
	t.Helper()
	s := &service{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		n := len(s.requests)
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, body)
		s.mu.Unlock()
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	tr := &http.Transport{}
	t.Cleanup(func() { tr.CloseIdleConnections(); server.Close() })
	return s, New(Options{BaseURL: server.URL, Key: secret.New(key), HTTP: tr})
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// sse answers with events, each given as its data; the name is its type.
func sse(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			var named struct {
				Type string `json:"type"`
			}
			_ = json.Unmarshal([]byte(e), &named)
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", named.Type, e)
		}
	}
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

var answer = []string{
	`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":200,"cache_creation_input_tokens":30,"output_tokens":1}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
	`{"type":"ping"}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZGF0YQ"}}`,
	`{"type":"content_block_stop","index":1}`,
	`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Hello "}}`,
	`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"w\u00f6rld"}}`,
	`{"type":"content_block_stop","index":2}`,
	`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"files__read","input":{}}}`,
	`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}`,
	`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"intent\":\"x\",\"argu"}}`,
	`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"ments\":{}}"}}`,
	`{"type":"content_block_stop","index":3}`,
	`{"type":"some_future_event","new":true}`,
	`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":25}}`,
	`{"type":"message_stop"}`,
}

// collect reads a whole answer and renders it, one event a line.
func collect(ctx context.Context, p provider.Provider, r provider.Request) (lines []string, blocks []provider.Block, err error) {
	for e, failed := range p.Stream(ctx, r) {
		if failed != nil {
			return lines, blocks, failed
		}
		switch e.Kind {
		case provider.BlockDone:
			blocks = append(blocks, e.Block)
			b := e.Block
			line := fmt.Sprintf("block %s %s", b.Kind, b.Text)
			if b.Kind == provider.ToolCall {
				line += fmt.Sprintf("%s %s %s", b.CallID, b.Name, b.Input)
			}
			lines = append(lines, strings.TrimSpace(line))
		case provider.Done:
			lines = append(lines, fmt.Sprintf("done %s %+v", e.Stop, e.Usage))
		default:
			lines = append(lines, fmt.Sprintf("%s %s", e.Kind, e.Text))
		}
	}
	return lines, blocks, nil
}

var answerLines = []string{
	"thinking hm", "block thinking hm", "block thinking", "text Hello ", "text wörld", "block text Hello wörld",
	`block tool_call toolu_1 files__read {"intent":"x","arguments":{}}`,
	"done tool_use {Input:10 CacheRead:200 CacheWrite:30 Output:25 Cost:0}",
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func hello() provider.Request {
	return provider.Request{Model: "claude-x", Messages: []provider.Message{
		{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: "hi"}}}}}
}

func TestStream(t *testing.T) { // R-G1
	s, p := serve(t, sse(answer...))
	lines, blocks, err := collect(t.Context(), p, hello())
	if err != nil {
		t.Fatal(err)
	}
	same(t, lines, answerLines)
	if got := string(blocks[0].Opaque); got != `{"type":"thinking","thinking":"hm","signature":"c2ln"}` || blocks[0].Origin != Name {
		t.Errorf("kept thought %s", got)
	}
	if got := string(blocks[1].Opaque); got != `{"type":"redacted_thinking","data":"ZGF0YQ"}` {
		t.Errorf("kept hidden thought %s", got)
	}
	r := s.requests[0]
	if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") == "" || r.Header.Get("Authorization") != "" {
		t.Errorf("%s %v", r.URL, r.Header)
	}
}

// Any way of cutting the same bytes gives the same events. // B26
func TestStreamInPieces(t *testing.T) {
	var whole bytes.Buffer
	for i, e := range answer {
		eol := []string{"\n", "\r\n"}[i%2]
		var named struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &named)
		fmt.Fprintf(&whole, ": note%sevent: %s%sdata: %s%s%s", eol, named.Type, eol, e, eol, eol)
	}
	for _, size := range []int{1, 7, 100} {
		_, p := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			rest := whole.Bytes()
			for len(rest) > 0 {
				n := min(size, len(rest))
				_, _ = w.Write(rest[:n])
				w.(http.Flusher).Flush()
				rest = rest[n:]
			}
		})
		lines, _, err := collect(t.Context(), p, hello())
		if err != nil {
			t.Fatal(err)
		}
		same(t, lines, answerLines)
	}
}

func TestRetries(t *testing.T) {
	now := []string{"Retry-After-Ms", "1"}
	fine := sse(answer...)
	for name, first := range map[string]http.HandlerFunc{
		"rate limit": status(429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, now...),
		"overloaded": status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, now...),
		"failure":    status(500, `{"type":"error","error":{"type":"api_error","message":"Internal"}}`, now...),
		"in stream":  sse(append(append([]string{}, answer[:10]...), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)...),
		"broken":     sse(answer[:10]...),
		"cut": func(w http.ResponseWriter, r *http.Request) {
			sse(answer[:10]...)(w, r)
			w.(http.Flusher).Flush()
			c, _, _ := http.NewResponseController(w).Hijack()
			_ = c.Close()
		},
		"dropped": func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_ = c.Close()
		},
		"malformed": sse(answer[0], `{"type":"content_block_start",`),
	} {
		t.Run(name, func(t *testing.T) {
			s, p := serve(t, first, fine)
			lines, _, err := collect(t.Context(), p, hello())
			if err != nil || s.count() != 2 {
				t.Fatalf("%d requests, %v, %v", s.count(), err, lines)
			}
			retries := 0
			for i, l := range lines {
				if strings.HasPrefix(l, "retry ") {
					retries++
					same(t, lines[i+1:], answerLines)
				}
			}
			if retries != 1 {
				t.Errorf("%d retries in %v", retries, lines)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name          string
		h             http.HandlerFunc
		message, hint string
		is            error
	}{
		{"key", status(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key `+key+`"}}`), "authentication failed (401): invalid x-api-key", "set ANTHROPIC_API_KEY", nil},
		{"model", status(404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`), `the model "claude-x" was not found`, "--model", nil},
		{"overflow", status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 5 > 4"}}`), "longer than the model's context window (400): prompt is too long", "new conversation", provider.ErrContextOverflow},
		{"overflow in stream", sse(answer[0], `{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}`, `{"type":"message_stop"}`), "longer than the model's context window", "new conversation", provider.ErrContextOverflow},
		{"credit", status(400, `{"type":"error","error":{"type":"billing_error","message":"Your credit balance is too low"}}`), "no credit", "billing", nil},
		{"html", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>hi</h1>")
		}, "instead of an event stream", "set ANTHROPIC_BASE_URL", nil},
		{"control", status(400, `{"error":{"message":"a\u001b]0;x\u0007b\nc"}}`), "refused the request (400): a", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := serve(t, c.h)
			_, _, err := collect(t.Context(), p, hello())
			failed, ok := errors.AsType[*provider.Error](err)
			if !ok || !strings.Contains(failed.Error(), c.message) || !strings.Contains(failed.Hint, c.hint) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v, hint %q", err, failed.Hint)
			}
			if s.count() != 1 {
				t.Errorf("%d requests", s.count())
			}
			if all := fmt.Sprintf("%v %+v %#v %q", err, failed, failed, failed); strings.Contains(all, "very-secret") || strings.ContainsAny(failed.Error(), "\x1b\a\n") {
				t.Errorf("leaks: %s", all)
			}
		})
	}
}

func TestNoKey(t *testing.T) {
	_, _, err := collect(t.Context(), New(Options{}), hello())
	failed, _ := errors.AsType[*provider.Error](err)
	if failed == nil || failed.Message != "no API key is set" || !strings.Contains(failed.Hint, "set ANTHROPIC_API_KEY") {
		t.Errorf("%v", err)
	}
}

// Nothing of the environment is used, whatever the library would read there.
func TestEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "env-secret")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "env-secret")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Evil: env-secret")
	s, p := serve(t, sse(answer...))
	if _, _, err := collect(t.Context(), p, hello()); err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(s.requests[0].Header); strings.Contains(all, "env-secret") {
		t.Errorf("headers %s", all)
	}
	base := strings.TrimSuffix(p.endpoint.BaseURL, "/")
	q := New(Options{BaseURL: base + "/v1/", HTTP: p.endpoint.HTTP})
	if _, _, err := collect(t.Context(), q, hello()); err != nil {
		t.Fatal(err)
	}
	if r := s.requests[1]; r.URL.Path != "/v1/messages" || strings.Contains(fmt.Sprint(r.Header), "secret") {
		t.Errorf("%s %v", r.URL, r.Header)
	}
}

func TestRedirect(t *testing.T) { // S15
	_, target := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("the target of the redirect was asked") })
	_, p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.endpoint.BaseURL+"/v1/messages?k=v", http.StatusTemporaryRedirect)
	})
	_, _, err := collect(t.Context(), p, hello())
	if err == nil || !strings.Contains(err.Error(), "redirects to "+target.endpoint.BaseURL+"/v1/messages,") {
		t.Errorf("%v", err)
	}
}

func TestCancel(t *testing.T) {
	gone := make(chan struct{})
	_, p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sse(answer[:10]...)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the request is really ended, not only forgotten
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for e, err := range p.Stream(ctx, hello()) {
		if e.Kind == provider.TextDelta {
			cancel()
		}
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v", last)
	}
	<-gone
}

func TestLeaveLoop(t *testing.T) {
	gone := make(chan struct{})
	_, p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sse(answer[:10]...)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	start := time.Now()
	for e := range p.Stream(t.Context(), hello()) {
		if e.Kind == provider.TextDelta {
			break
		}
	}
	<-gone
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}
