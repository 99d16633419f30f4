package oauth

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"magi-code/internal/secret"
	"magi-code/test/zoo/httpzoo"
)

// TestMain also plays one of several processes that share a token file.
func TestMain(m *testing.M) {
	if home := os.Getenv("OAUTH_TEST_HOME"); home != "" {
		os.Exit(processRole(home))
	}
	goleak.VerifyTestMain(m)
}

func processRole(home string) int {
	s := NewSource(Options{Home: home, Server: Server{Name: "zoo", URL: secret.New(os.Getenv("OAUTH_TEST_URL"))}})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _ = os.Stdin.Read(make([]byte, 1)) // all start at once
	h, err := s.Header(ctx)
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println(h.Reveal())
	return 0
}

// world is an MCP server with its authorization server and a person with a browser.
type world struct {
	as  *httpzoo.AS
	mcp *httpzoo.MCP
	o   LoginOptions

	mu     sync.Mutex
	shown  []string // URLs printed
	opened []string
	prompt Prompt
	page   string // what the browser showed last
	warned []string
}

func newWorld(t *testing.T, mode string, change ...func(*httpzoo.AS)) *world {
	t.Helper()
	as := &httpzoo.AS{Mode: mode}
	for _, c := range change {
		c(as)
	}
	w := &world{as: httpzoo.StartASWith(as)}
	w.mcp = httpzoo.StartWith(&httpzoo.MCP{Auth: as})
	t.Cleanup(func() { w.mcp.Close(); w.as.Close() })
	w.o = LoginOptions{
		Options: Options{
			Home:   t.TempDir(),
			Server: Server{Name: "zoo", URL: secret.New(w.mcp.URL() + "?key=canary-query"), Headers: []Header{{"X-Team", secret.New("canary-header")}}},
		},
		Confirm: func(_ context.Context, p Prompt) error { w.prompt = p; return nil },
		ShowURL: func(u string) { w.shown = append(w.shown, u) },
		Open:    w.browse,
		Warn:    func(s string) { w.warned = append(w.warned, s) },
	}
	return w
}

// browse is the browser: it follows redirects and shows the last page.
func (w *world) browse(ctx context.Context, u string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, u)
	_, w.page = get(ctx, u)
	return nil
}

func get(ctx context.Context, u string) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return 0, err.Error()
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(b)
}

// text is an error with its hint.
func text(err error) string {
	if err == nil {
		return ""
	}
	var hinted interface{ Hint() string }
	out := err.Error()
	if e, ok := err.(*Error); ok {
		hinted = e
		out += "\n" + hinted.Hint()
	}
	return out
}

// unsafeText reports what must never be in an error or on a screen.
func unsafeText(s string) bool {
	return strings.Contains(s, "canary") || strings.Contains(s, "zoo-access") || strings.Contains(s, "zoo-refresh") || strings.Contains(s, "zoo-code") ||
		strings.Contains(s, "zoo-client-secret") || strings.ContainsAny(s, "\x1b")
}
