// Package httpzoo holds the hostile and the merely odd servers of the HTTP half: an MCP server with a mode for each
// misbehaviour seen in the wild, and an authorization server with modes of its own. Both record what they are sent,
// so that a test can prove what was not. It is for tests only.
package httpzoo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Request is one recorded request.
type Request struct {
	Method, Path, Query, Host string
	Header                    http.Header
	Body                      string
	RPC                       string // JSON-RPC method; empty for none
	At                        time.Time
}

// MCP is a Streamable HTTP server. Its zero Mode behaves well: JSON answers, a session, an open GET stream.
type MCP struct {
	Mode   string
	Target string // of the redirect modes
	Auth   *AS    // when set, every request needs an access token that it issued

	mu       sync.Mutex
	log      []Request
	sessions map[string]bool
	count    map[string]int
	streams  []chan string // open GET streams
	over     chan struct{}
	overOnce sync.Once
	srv      *httptest.Server
}

// Start serves the mode on loopback until Close.
func Start(mode string) *MCP {
	m := &MCP{Mode: mode}
	m.serve()
	return m
}

// StartWith serves m, whose fields may be set.
func StartWith(m *MCP) *MCP {
	m.serve()
	return m
}

func (m *MCP) prepare() {
	m.sessions, m.count, m.over = map[string]bool{}, map[string]int{}, make(chan struct{})
}

func (m *MCP) serve() {
	m.prepare()
	m.srv = httptest.NewServer(m)
}

// URL is the endpoint.
func (m *MCP) URL() string { return m.srv.URL + "/mcp" }

// Origin is scheme, host and port.
func (m *MCP) Origin() string { return m.srv.URL }

// Close ends everything.
func (m *MCP) Close() {
	m.overOnce.Do(func() { close(m.over) })
	m.srv.CloseClientConnections()
	m.srv.Close()
}

// Disconnect breaks every connection that there is; new ones are served as before.
func (m *MCP) Disconnect() { m.srv.CloseClientConnections() }

// Requests returns what was recorded so far.
func (m *MCP) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// Count is how many requests match an HTTP method and a JSON-RPC method ("" matches all).
func (m *MCP) Count(method, rpc string) (n int) {
	for _, r := range m.Requests() {
		if (method == "" || r.Method == method) && (rpc == "" || r.RPC == rpc) {
			n++
		}
	}
	return n
}

// Push sends a message on every open GET stream and reports how many there were.
func (m *MCP) Push(message string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.streams {
		select {
		case s <- message:
		default:
		}
	}
	return len(m.streams)
}

// ForgetSessions makes every session unknown, as a restart does.
func (m *MCP) ForgetSessions() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = map[string]bool{}
}

// SetMode changes the mode of a server that runs.
func (m *MCP) SetMode(mode string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Mode = mode
}

// times counts per key: the first call returns 1.
func (m *MCP) times(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count[key]++
	return m.count[key]
}

// message is what a body holds.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Version   string          `json:"protocolVersion"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
	raw string
}

// visit is one request being served.
type visit struct {
	m    *MCP
	mode string
	w    http.ResponseWriter
	r    *http.Request
	msg  message
}

// ServeHTTP records and answers one request.
func (m *MCP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	r.Body = io.NopCloser(bytes.NewReader(body))
	v := &visit{m: m, w: w, r: r}
	_ = json.Unmarshal(body, &v.msg)
	v.msg.raw = string(body)
	m.mu.Lock()
	v.mode = m.Mode
	m.log = append(m.log, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Host, r.Header.Clone(), string(body), v.msg.Method, time.Now()})
	m.mu.Unlock()
	if m.Auth != nil {
		if m.Auth.resource(w, r, m.Origin()) {
			return
		}
		if !m.Auth.allowed(w, r, m.Origin(), v.msg.Method) {
			return
		}
	}
	if mode(v) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		v.post()
	case http.MethodGet:
		v.listen()
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// post is the good behaviour.
func (v *visit) post() {
	if v.msg.Method != "initialize" && !v.known() {
		v.status(http.StatusNotFound, "text/plain", "session not found")
		return
	}
	if len(v.msg.ID) == 0 || v.msg.Method == "" {
		v.w.WriteHeader(http.StatusAccepted)
		return
	}
	if v.msg.Method == "initialize" && !strings.HasPrefix(v.mode, "no-session") {
		v.session(fmt.Sprintf("zoo-session-%d", v.m.times("initialize")))
	}
	v.json(v.answer())
}

func (v *visit) session(id string) {
	v.m.mu.Lock()
	v.m.sessions[id] = true
	v.m.mu.Unlock()
	v.w.Header().Set("Mcp-Session-Id", id)
}

func (v *visit) known() bool {
	if strings.HasPrefix(v.mode, "no-session") {
		return true
	}
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	return v.m.sessions[v.r.Header.Get("Mcp-Session-Id")]
}

// answer is the JSON-RPC response of the good behaviour.
func (v *visit) answer() string {
	result := ""
	switch v.msg.Method {
	case "initialize":
		version := v.msg.Params.Version
		if p, ok := strings.CutPrefix(v.mode, "version-"); ok {
			version = p
		}
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"httpzoo","version":"1"}}`, version)
	case "tools/list":
		result = `{"tools":[{"name":"echo","description":"Gives back its arguments.","inputSchema":{"type":"object"}},{"name":"wait","description":"Answers when the request is canceled.","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		text, _ := json.Marshal(v.msg.Params.Name + " " + string(v.msg.Params.Arguments))
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text)
		if v.msg.Params.Name == "wait" {
			v.hang()
		}
	case "ping":
		result = `{}`
	default:
		return v.fault(-32601, "Method not found")
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, v.msg.ID, result)
}

func (v *visit) fault(code int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, v.msg.ID, code, text)
}

func (v *visit) json(body string) { v.status(http.StatusOK, "application/json", body) }

func (v *visit) status(code int, contentType, body string) {
	if contentType != "" {
		v.w.Header().Set("Content-Type", contentType)
	} else {
		v.w.Header()["Content-Type"] = nil
	}
	v.w.WriteHeader(code)
	_, _ = io.WriteString(v.w, body)
}

// listen is an open GET stream.
func (v *visit) listen() {
	if !v.known() {
		v.status(http.StatusNotFound, "text/plain", "session not found")
		return
	}
	in := make(chan string, 100)
	v.m.mu.Lock()
	v.m.streams = append(v.m.streams, in)
	v.m.mu.Unlock()
	defer func() {
		v.m.mu.Lock()
		v.m.streams = slices.DeleteFunc(v.m.streams, func(c chan string) bool { return c == in })
		v.m.mu.Unlock()
	}()
	v.stream()
	for {
		select {
		case s := <-in:
			v.write("data: " + s + "\n\n")
		case <-v.r.Context().Done():
			return
		case <-v.m.over:
			return
		}
	}
}

// stream starts an answer of server-sent events.
func (v *visit) stream() {
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.WriteHeader(http.StatusOK)
	v.flush()
}

func (v *visit) write(s string) {
	_, _ = io.WriteString(v.w, s)
	v.flush()
}

func (v *visit) flush() { _ = http.NewResponseController(v.w).Flush() }

// hang waits until the client or the test gives up.
func (v *visit) hang() {
	select {
	case <-v.r.Context().Done():
	case <-v.m.over:
	}
}

// reset breaks the TCP connection.
func (v *visit) reset() { panic(http.ErrAbortHandler) }

// number returns the number behind a prefix, and whether the mode has that form.
func number(mode, prefix string) (n int, rest string, ok bool) {
	tail, found := strings.CutPrefix(mode, prefix)
	if !found {
		return 0, "", false
	}
	digits, rest, _ := strings.Cut(tail, "-")
	n, err := strconv.Atoi(digits)
	return n, rest, err == nil
}
