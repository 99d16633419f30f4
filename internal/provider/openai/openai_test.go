package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-very-secret"

// service is a loopback server that answers the nth request with the nth handler, the last one repeated.
type service struct {
	url      string
	tr       *http.Transport
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func serve(t testing.TB, handlers ...http.HandlerFunc) *service {
	t.Helper()
	s := &service{tr: &http.Transport{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		n := len(s.requests)
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
		s.mu.Unlock()
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	s.url = server.URL
	t.Cleanup(func() { s.tr.CloseIdleConnections(); server.Close() })
	return s
}

func (s *service) responses() *Responses {
	return NewResponses(Options{BaseURL: s.url + "/v1", Key: secret.New(key), HTTP: s.tr})
}

func (s *service) chat() *Chat {
	return NewChat(Options{Name: "local", BaseURL: s.url + "/v1", Key: secret.New(key), KeyFrom: "LOCAL_KEY", HTTP: s.tr})
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// named answers with events whose name is their type; chat answers with nameless ones and the end mark.
func named(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			var n struct {
				Type string `json:"type"`
			}
			_ = json.Unmarshal([]byte(e), &n)
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", n.Type, e)
		}
	}
}

func nameless(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
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

func drop(before http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(w, r)
			w.(http.Flusher).Flush()
		}
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}
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

func same(t *testing.T, got, want []string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	g, w := canonical(t, got), canonical(t, want)
	if g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// canonical is an object without white space, its own members in order.
func canonical(t *testing.T, s string) string {
	t.Helper()
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(s), &members); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	b, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func hello() provider.Request {
	return provider.Request{Model: "gpt-x", Messages: []provider.Message{
		{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: "hi"}}}}}
}

// conversation has everything that a history can hold, what services refuse included.
func conversation(origin string, opaque string) provider.Request {
	png := []byte{1, 2}
	return provider.Request{
		Model: "gpt-x", System: "be good", MaxTokens: 99, CacheKey: strings.Repeat("k", 65),
		Tools: []tool.Tool{{Name: "a", Description: "A", Schema: jsontext.Value(`{"type":"object","properties":{"z":{"maximum":12345678901234567890},"b":{}}}`)}, {Name: "b"}},
		Messages: []provider.Message{
			{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: "first"}, {Kind: provider.Text, Text: " \n"}, {Kind: provider.Image, MIME: "image/png", Data: png}}},
			{Role: provider.Assistant, Blocks: []provider.Block{
				{Kind: provider.Thinking, Text: "t", Origin: origin, Opaque: jsontext.Value(opaque)},
				{Kind: provider.Thinking, Text: "of another", Origin: "anthropic", Opaque: jsontext.Value(`{"type":"thinking"}`)},
				{Kind: provider.Text, Text: "ok", Origin: origin, Opaque: jsontext.Value(`{"phase":"commentary"}`)},
				{Kind: provider.ToolCall, CallID: "call_1", Name: "a", Input: jsontext.Value(`{"z":1}`)},
				{Kind: provider.ToolCall, CallID: "functions.b:0", Name: "b", Input: provider.Input(`{"x":`)}}},
			{Role: provider.User, Blocks: []provider.Block{
				{Kind: provider.ToolResult, CallID: "call_1", Content: []tool.Content{{Kind: tool.Text, Text: "one"}, {Kind: tool.Image, MIME: "image/png", Data: png}}},
				{Kind: provider.ToolResult, CallID: "functions.b:0", IsError: true, Content: []tool.Content{{Kind: tool.Text}}}}},
			{Role: provider.Assistant, Blocks: []provider.Block{{Kind: provider.Thinking, Text: "alone", Origin: origin, Opaque: jsontext.Value(opaque)}}},
			{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Image, MIME: "image/svg+xml", Data: png}}},
		},
	}
}

// both runs a test against the two wires.
func both(t *testing.T, f func(t *testing.T, of func(*service) provider.Provider, good http.HandlerFunc, half http.HandlerFunc, want []string)) {
	t.Run("responses", func(t *testing.T) {
		f(t, func(s *service) provider.Provider { return s.responses() }, named(responsesAnswer...), named(responsesAnswer[:10]...), responsesLines)
	})
	t.Run("chat", func(t *testing.T) {
		f(t, func(s *service) provider.Provider { return s.chat() }, nameless(chatAnswer...), nameless(chatAnswer[:5]...), chatLines)
	})
}

func TestStreamInPieces(t *testing.T) { // B26
	both(t, func(t *testing.T, of func(*service) provider.Provider, good, _ http.HandlerFunc, want []string) {
		rec := httptest.NewRecorder()
		good(rec, nil)
		whole := strings.ReplaceAll(rec.Body.String(), "\n\n", "\r\n\r\n")
		for _, size := range []int{1, 9, 200} {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for rest := whole; rest != ""; {
					n := min(size, len(rest))
					_, _ = io.WriteString(w, rest[:n])
					w.(http.Flusher).Flush()
					rest = rest[n:]
				}
			})
			lines, _, err := collect(t.Context(), of(s), hello())
			if err != nil {
				t.Fatal(err)
			}
			same(t, lines, want)
		}
	})
}

func TestRetries(t *testing.T) { // R-G1
	now := []string{"Retry-After-Ms", "1"}
	both(t, func(t *testing.T, of func(*service) provider.Provider, good, half http.HandlerFunc, want []string) {
		for name, first := range map[string]http.HandlerFunc{
			"rate limit": status(429, `{"error":{"message":"slow","type":"requests","code":"rate_limit_exceeded"}}`, now...),
			"failure":    status(500, `{"error":{"message":"The server had an error","type":"server_error"}}`, now...),
			"gateway":    status(502, `<html>bad gateway</html>`, now...),
			"broken":     half,
			"cut":        drop(half),
			"dropped":    drop(nil),
			"malformed":  nameless(`{"type":`),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := serve(t, first, good)
				lines, _, err := collect(t.Context(), of(s), hello())
				if err != nil || s.count() != 2 {
					t.Fatalf("%d requests, %v, %v", s.count(), err, lines)
				}
				for i, l := range lines {
					if strings.HasPrefix(l, "retry ") {
						same(t, lines[i+1:], want)
						return
					}
				}
				t.Errorf("no retry in %v", lines)
			})
		}
	})
}

func TestFailures(t *testing.T) {
	both(t, func(t *testing.T, of func(*service) provider.Provider, _, _ http.HandlerFunc, _ []string) {
		for _, c := range []struct {
			name          string
			h             http.HandlerFunc
			message, hint string
			is            error
		}{
			{"key", status(401, `{"error":{"message":"Incorrect API key provided: `+key+`.","code":"invalid_api_key"}}`), "authentication failed (401): Incorrect API key", "_KEY to a valid key", nil},
			{"model", status(404, `{"error":{"message":"The model 'gpt-x' does not exist","code":"model_not_found"}}`), `the model "gpt-x" was not found`, "--model", nil},
			{"ollama model", status(404, `{"error":{"message":"model \"gpt-x\" not found, try pulling it first"}}`), `the model "gpt-x" was not found`, "--model", nil},
			{"path", status(404, `404 page not found`), "has no such API (404)", "/v1", nil},
			{"overflow", status(400, `{"error":{"message":"This model's maximum context length is 10 tokens.","code":"context_length_exceeded"}}`), "longer than the model's context window", "new conversation", provider.ErrContextOverflow},
			{"quota", status(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), "no credit or quota", "billing", nil},
			{"html", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<h1>hi</h1>")
			}, "instead of an event stream", "set ", nil},
			{"redirect", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://elsewhere.example/v1?secret="+key, http.StatusPermanentRedirect)
			}, "redirects to https://elsewhere.example/v1,", "set ", nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := serve(t, c.h)
				_, _, err := collect(t.Context(), of(s), hello())
				failed, ok := errors.AsType[*provider.Error](err)
				if !ok || !strings.Contains(failed.Error(), c.message) || !strings.Contains(failed.Hint, c.hint) || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%v, hint %q", err, failed.Hint)
				}
				if s.count() != 1 {
					t.Errorf("%d requests", s.count())
				}
				if all := fmt.Sprintf("%v %+v %#v", err, failed, failed); strings.Contains(all, "very-secret") {
					t.Errorf("leaks: %s", all)
				}
			})
		}
	})
}

func TestCancel(t *testing.T) {
	both(t, func(t *testing.T, of func(*service) provider.Provider, _, half http.HandlerFunc, _ []string) {
		for _, leave := range []bool{false, true} {
			gone := make(chan struct{})
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				half(w, r)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(gone)
			})
			ctx, cancel := context.WithCancel(t.Context())
			var last error
			for e, err := range of(s).Stream(ctx, hello()) {
				last = err
				if e.Kind == provider.TextDelta && leave {
					break
				}
				if e.Kind == provider.TextDelta {
					cancel()
				}
			}
			<-gone
			cancel()
			if !leave && !errors.Is(last, context.Canceled) {
				t.Errorf("ended with %v", last)
			}
		}
	})
}

// Nothing of the environment is used, whatever the library would read there.
func TestEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "env-secret")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Evil: env-secret")
	both(t, func(t *testing.T, of func(*service) provider.Provider, good, _ http.HandlerFunc, _ []string) {
		s := serve(t, good)
		if _, _, err := collect(t.Context(), of(s), hello()); err != nil {
			t.Fatal(err)
		}
		h := s.requests[0].Header
		if all := fmt.Sprint(h); strings.Contains(all, "env-secret") || h.Get("Authorization") != "Bearer "+key {
			t.Errorf("headers %s", all)
		}
	})
	s := serve(t, named(responsesAnswer...), nameless(chatAnswer...))
	for _, p := range []provider.Provider{NewResponses(Options{BaseURL: s.url, HTTP: s.tr}), NewChat(Options{Name: "n", BaseURL: s.url, HTTP: s.tr})} {
		if _, _, err := collect(t.Context(), p, hello()); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range s.requests {
		if strings.Contains(fmt.Sprint(r.Header), "secret") {
			t.Errorf("headers %v", r.Header)
		}
	}
}

func BenchmarkAnswer(b *testing.B) { // one streamed answer with one call, over loopback
	s := serve(b, named(responsesAnswer...))
	c := serve(b, nameless(chatAnswer...))
	for name, p := range map[string]provider.Provider{"responses": s.responses(), "chat": c.chat()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := collect(b.Context(), p, hello()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRequest(b *testing.B) { // 200 messages, 200 tools
	r := provider.Request{Model: "m", System: strings.Repeat("s", 4000)}
	for i := range 200 {
		r.Tools = append(r.Tools, tool.Tool{Name: fmt.Sprint("server__tool", i), Description: strings.Repeat("d", 200),
			Schema: jsontext.Value(`{"type":"object","properties":{"intent":{"type":"string"},"arguments":{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"]}},"required":["intent","arguments"],"additionalProperties":false}`)})
		role := []provider.Role{provider.User, provider.Assistant}[i%2]
		r.Messages = append(r.Messages, provider.Message{Role: role, Blocks: []provider.Block{{Kind: provider.Text, Text: strings.Repeat("hello\n", 100)}}})
	}
	for name, encode := range map[string]func() ([]byte, error){
		"responses": func() ([]byte, error) { return encodeResponses(r, true, &provider.EncodedTools{}) },
		"chat":      func() ([]byte, error) { return encodeChat(r, "n", true, &provider.EncodedTools{}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				body, err := encode()
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(body)))
			}
		})
	}
}
