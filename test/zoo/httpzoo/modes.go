package httpzoo

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Modes are the names that mode understands, without those that end in a number or a version.
func Modes() []string {
	return []string{
		"good-sse", "no-session", "html", "sse-crlf", "sse-cr", "sse-bom", "sse-multiline", "sse-comment", "sse-split", "sse-noterm", "sse-emptydata",
		"sse-names", "sse-huge", "sse-drop", "sse-resume", "sse-mid", "sse-reset", "sse-open", "sse-notes", "sse-ping", "sse-flood", "sse-elsewhere",
		"drop-mid-reply", "drop", "ct-charset", "ct-upper", "ct-problem", "ct-plain", "ct-none", "gzip", "gzip-bomb", "br",
		"get-200-json", "get-200-html", "get-closes", "get-hang", "notify-endless", "delete-hang", "big-session", "bad-session", "new-session",
		"403-scope", "401-origin", "rpc-400", "rpc-404", "slow-error", "empty-202", "batch", "wrong-id", "string-id", "null-id",
	}
}

// mode answers where the mode is odd, and reports whether it did.
func mode(v *visit) bool {
	m := v.mode
	call := v.r.Method == http.MethodPost && v.msg.Method == "tools/call"
	note := v.r.Method == http.MethodPost && len(v.msg.ID) == 0
	switch {
	case m == "" || m == "good":
		return false
	case strings.HasPrefix(m, "sse-") || m == "good-sse":
		return v.events(m)
	case strings.HasPrefix(m, "get-"):
		return v.r.Method == http.MethodGet && v.get(m)
	case strings.HasPrefix(m, "notify-"):
		return note && v.acknowledge(m)
	case strings.HasPrefix(m, "session-") || strings.HasSuffix(m, "-session") && m != "no-session":
		return v.sessions(m, call)
	}
	if code, _, ok := number(m, "delete-"); ok {
		return v.r.Method == http.MethodDelete && v.code(code)
	}
	if code, _, ok := number(m, "redirect-"); ok {
		v.w.Header().Set("Location", v.m.Target)
		return v.code(code)
	}
	if code, when, ok := number(m, "status-"); ok {
		return v.statusMode(code, when, call)
	}
	return v.odd(m, call)
}

func (v *visit) code(n int) bool {
	v.w.WriteHeader(n)
	return true
}

// statusMode: status-503 always, status-503-once for the first of each method, status-503-call for calls.
func (v *visit) statusMode(code int, when string, call bool) bool {
	switch when {
	case "once":
		if len(v.msg.ID) == 0 || v.m.times("once "+v.msg.Method) > 1 {
			return false
		}
		v.w.Header().Set("Retry-After", "0")
	case "call":
		if !call {
			return false
		}
	case "later":
		v.w.Header().Set("Retry-After", "3600")
	}
	v.status(code, "text/plain", "no \x1b[31mluck\x1b[0m, "+v.r.Header.Get("Authorization")+" "+strings.Repeat("x", 4096))
	return true
}

func (v *visit) get(m string) bool {
	if code, _, ok := number(m, "get-"); ok && code != 200 {
		v.status(code, "text/html", "<html>no</html>")
		return true
	}
	switch m {
	case "get-200-json":
		v.json(`{"status":"ok"}`)
	case "get-200-html":
		v.status(200, "text/html", "<html>hello</html>")
	case "get-closes":
		v.stream()
	case "get-hang":
		v.hang()
	}
	return true
}

// acknowledge: notify-202, notify-204, notify-200, notify-200-json, notify-200-null, notify-endless.
func (v *visit) acknowledge(m string) bool {
	if m == "notify-endless" {
		v.status(202, "text/plain", "")
		for v.r.Context().Err() == nil {
			v.write(strings.Repeat("x", 1024))
			select {
			case <-time.After(5 * time.Millisecond):
			case <-v.m.over:
				return true
			}
		}
		return true
	}
	code, rest, _ := number(m, "notify-")
	switch rest {
	case "json":
		v.status(code, "application/json", "{}")
	case "null":
		v.status(code, "application/json", "null")
	default:
		v.w.WriteHeader(code)
	}
	return true
}

// sessions: session-404, session-404-html, session-404-rpc, session-404-always, session-400, session-500; big-session,
// bad-session, new-session. The first calls meet a session that the server forgot.
func (v *visit) sessions(m string, call bool) bool {
	switch m {
	case "big-session", "bad-session":
		if v.msg.Method != "initialize" {
			return false
		}
		id := strings.Repeat("s", 100<<10)
		if m == "bad-session" {
			id = "caf\xe9"
		}
		v.session(id)
		v.json(v.answer())
		return true
	case "new-session": // another id on every answer; only the first counts
		if v.msg.Method == "initialize" || len(v.msg.ID) == 0 {
			return false
		}
		v.w.Header().Set("Mcp-Session-Id", "another")
		return false
	}
	code, rest, ok := number(m, "session-")
	if !ok || !call || rest != "always" && v.r.Header.Get("Mcp-Session-Id") != "zoo-session-1" {
		return false
	}
	switch rest {
	case "html":
		v.status(code, "text/html", "<html>gone</html>")
	case "rpc":
		v.status(code, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
	case "named":
		v.status(code, "application/json", `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`)
	default:
		v.status(code, "text/plain", "unknown session")
	}
	return true
}

// odd are the modes about plain answers.
func (v *visit) odd(m string, call bool) bool {
	post := v.r.Method == http.MethodPost && len(v.msg.ID) > 0
	if m == "html" {
		v.status(200, "text/html; charset=utf-8", "<!doctype html><title>Welcome</title>")
		return true
	}
	if m == "delete-hang" && v.r.Method == http.MethodDelete {
		v.hang()
		return true
	}
	if !post {
		return false
	}
	if t, ok := map[string]string{"ct-charset": "application/json; charset=utf-8", "ct-upper": "Application/JSON;Charset=UTF-8", "ct-problem": "application/problem+json", "ct-plain": "text/plain", "ct-none": ""}[m]; ok {
		if v.msg.Method == "initialize" {
			v.session("zoo-session-1")
		}
		v.status(200, t, v.answer())
		return true
	}
	if !call {
		return false
	}
	switch m {
	case "drop":
		v.reset()
	case "drop-mid-reply":
		v.w.Header().Set("Content-Length", "100000")
		v.json(`{"jsonrpc":"2.0","id":`)
		v.flush()
		v.reset()
	case "gzip", "gzip-bomb":
		v.zipped(m)
	case "br":
		v.w.Header().Set("Content-Encoding", "br")
		v.json("\x0b\x02\x80{}\x03")
	case "403-scope":
		v.w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="files:write files:read"`)
		v.w.WriteHeader(http.StatusForbidden)
	case "rpc-400":
		v.status(400, "application/json", v.fault(-32602, "bad arguments"))
	case "rpc-404":
		v.status(404, "application/json", v.fault(-32601, "no such method"))
	case "slow-error":
		v.status(500, "text/plain", "")
		v.flush()
		v.hang()
	case "empty-202":
		v.w.WriteHeader(http.StatusAccepted)
	case "batch":
		v.json("[" + `{"jsonrpc":"2.0","method":"notifications/message","params":{}},` + v.answer() + "]")
	case "wrong-id":
		v.json(`{"jsonrpc":"2.0","id":987654,"result":{}}`)
	case "string-id":
		v.json(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","result":{"content":[]}}`, v.msg.ID))
	case "null-id":
		v.json(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)
	default:
		return false
	}
	return true
}

func (v *visit) zipped(m string) {
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(v.w)
	defer z.Close()
	if m == "gzip" {
		_, _ = io.WriteString(z, v.answer())
		return
	}
	chunk := strings.Repeat(" ", 1<<20)
	for range 64 { // 64 MiB of blanks from a few KiB
		_, _ = io.WriteString(z, chunk)
	}
	_, _ = io.WriteString(z, v.answer())
}
