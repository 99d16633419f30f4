package mcp

import (
	"strings"
	"testing"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

// R-P1, B19, B20: what a server may answer to initialize.
func TestInitializeAnswers(t *testing.T) {
	const ok = ""
	for _, c := range []struct{ name, result, fails string }{
		{"ours", `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"n","version":"v"}}`, ok},
		{"the older one", `{"protocolVersion":"2025-03-26"}`, ok},
		{"only a version", `{"protocolVersion":"2025-06-18"}`, ok},
		{"nulls", `{"protocolVersion":"2025-06-18","capabilities":null,"serverInfo":null,"instructions":null}`, ok},
		{"wrong types", `{"protocolVersion":"2025-06-18","capabilities":[],"serverInfo":"me","instructions":{}}`, ok},
		{"odd tools", `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":"yes"}}}`, ok},
		{"much older", `{"protocolVersion":"2024-11-05"}`, "answered with protocol 2024-11-05, which magi-code does not speak (it speaks 2025-06-18 and 2025-03-26)"},
		{"newer", `{"protocolVersion":"2025-11-25"}`, "protocol 2025-11-25"},
		{"newest", `{"protocolVersion":"2026-07-28"}`, "protocol 2026-07-28"},
		{"empty", `{"protocolVersion":""}`, "without a protocol version"},
		{"number", `{"protocolVersion":7}`, "without a protocol version"},
		{"missing", `{}`, "without a protocol version"},
		{"hostile", `{"protocolVersion":"\u001b[31m` + strings.Repeat("9", 999) + `"}`, `protocol \u{1b}[31m999`},
		{"no object", `"hello"`, "other than an object"},
		{"null", `null`, "other than an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{tools: oneTool("t"), serve: func(p *peer, r jsonrpc.Request) {
				if r.Method == "initialize" {
					p.result(r, c.result)
					return
				}
				p.standard(r)
			}}
			m := start(t, Options{}, map[string]*fake{"s": f})
			st := statusOf(t, m, "s")
			if c.fails == ok {
				if st.State != Ready {
					t.Errorf("%v", st.Err)
				}
				return
			}
			if st.State != Failed || st.Err.Phase != PhaseInitialize || !strings.Contains(st.Err.Text, c.fails) || len(st.Err.Text) > 300 || strings.Contains(st.Err.Text, "\x1b") {
				t.Errorf("%v: %q", st.State, st.Err)
			}
			if f.count("tools/list") != 0 {
				t.Error("went on with a version that we do not speak")
			}
		})
	}
}

// B20: servers that refuse our version say which they speak.
func TestInitializeRefused(t *testing.T) {
	for _, c := range []struct {
		code       int
		data, want string
	}{
		{-32602, `{"supported":["2024-11-05"],"requested":"2025-06-18"}`, "server speaks only 2024-11-05 (magi-code speaks 2025-06-18 and 2025-03-26)"},
		{-32022, `{"supported":["2026-07-28","2026-12-01"]}`, "server speaks only 2026-07-28, 2026-12-01"},
		{-32022, ``, "without saying which it speaks"},
		{-32022, `{"supported":[7,"",null]}`, "without saying which it speaks"},
		{-32022, `{"supported":"x"}`, "without saying which it speaks"},
		{-32602, `{"supported":["a\u001b","b","c","d","e","f","g"]}`, `speaks only a\u{1b}, b, c, d, e (`},
		{-32601, ``, "does not know initialize"},
		{-32603, `"x"`, "error -32603: words"},
	} {
		f := &fake{serve: func(p *peer, r jsonrpc.Request) { p.fault(r, c.code, "words", c.data) }}
		m := start(t, Options{}, map[string]*fake{"s": f})
		if e := m.Failures(); len(e) != 1 || e[0].Phase != PhaseInitialize || !strings.Contains(e[0].Text, c.want) {
			t.Errorf("%d %s: %v", c.code, c.data, e)
		}
	}
}

// S13, S27, B19, R-D5: what a server says about itself is bounded, safe to print, and without our secrets.
func TestServerTextsAreSafe(t *testing.T) {
	const canary = "canary-5f3a-secret"
	long := strings.Repeat("y", 1<<20)
	f := &fake{tools: oneTool("t"), stderr: "old half line " + strings.Repeat("z", maxStderr) + "\n\x1b]0;title\x07token=" + canary + "\r\nlast\u202e\n"}
	f.serve = func(p *peer, r jsonrpc.Request) {
		if r.Method == "initialize" {
			p.result(r, `{"protocolVersion":"2025-06-18","serverInfo":{"name":"n\u001b[31m\n`+canary+long+`","version":"`+long+`"},"instructions":"a\tb\nc\u202e\u001b[2J `+canary+long+`"}`)
			return
		}
		if r.Method == "tools/call" {
			p.fault(r, 1, "half canary-\u200b5f3a-secret", "")
			return
		}
		p.standard(r)
	}
	m := start(t, Options{Scrub: secret.NewScrubber(secret.New(canary))}, map[string]*fake{"s": f})
	st := statusOf(t, m, "s")
	if len(st.ServerName) > maxServerName+3 || len(st.ServerVersion) > maxServerVersion+3 || len(st.Instructions) > maxInstructions+3 {
		t.Errorf("%d, %d, %d bytes", len(st.ServerName), len(st.ServerVersion), len(st.Instructions))
	}
	_, err := m.Call(t.Context(), "s", "t", nil)
	all := st.ServerName + st.ServerVersion + st.Instructions + st.Stderr + err.Error()
	if strings.Contains(all, canary) || strings.ContainsAny(all, "\x1b\x07\u202e\u200b\r") {
		t.Errorf("%.300q, %q", all, err)
	}
	if !strings.HasPrefix(st.Instructions, "a\tb\nc") || st.Stderr != "token=[redacted]\nlast" {
		t.Errorf("%.80q, %q", st.Instructions, st.Stderr)
	}
}

// What we say about ourselves.
func TestInitializeRequest(t *testing.T) {
	var params string
	f := &fake{serve: func(p *peer, r jsonrpc.Request) {
		if r.Method == "initialize" {
			params = string(r.Params)
		}
		p.standard(r)
	}}
	m := start(t, Options{Version: "1.2.3"}, map[string]*fake{"s": f})
	closeNow(t, m)
	if want := `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"magi-code","version":"1.2.3"}}`; params != want {
		t.Errorf("%s", params)
	}
}
