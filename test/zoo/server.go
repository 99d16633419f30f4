package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// message is what a client sent.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	raw    string
}

// server is a sane server until a mode replaces one of its parts.
type server struct {
	options map[string]string
	in      *bufio.Reader

	version      string // what initialize answers; empty: what the client asked for
	capabilities string // raw
	info         string // raw serverInfo
	extra        string // raw members added to the initialize result, with a leading comma
	tools        []string

	start  func()                     // before anything is read
	before func(m message)            // before each message is handled
	on     map[string]func(m message) // replaces the handling of a method
	after  func(m message)            // after each answer
	call   map[string]func(m message, args json.RawMessage)
	encode func(line string) string // the last change to a line, its newline included
	end    func()                   // when stdin has ended

	mu      sync.Mutex // guards what follows and stdout
	out     io.Writer
	replies []string
	calls   sync.WaitGroup
}

func newServer() *server {
	s := &server{
		options: map[string]string{}, in: bufio.NewReaderSize(os.Stdin, 1<<20), out: os.Stdout,
		capabilities: `{"tools":{"listChanged":true}}`, info: `{"name":"zoo","title":"The Zoo","version":"1.0.0"}`,
		start: func() {}, before: func(message) {}, after: func(message) {}, end: func() {},
		on: map[string]func(message){}, encode: func(l string) string { return l },
	}
	s.tools = goodTools()
	s.call = s.goodCalls()
	return s
}

// number is an option as a number.
func (s *server) number(key string, otherwise int) int {
	if v, err := strconv.Atoi(s.options[key]); err == nil {
		return v
	}
	return otherwise
}

// millis is an option as a duration in milliseconds.
func (s *server) millis(key string, otherwise int) time.Duration {
	return time.Duration(s.number(key, otherwise)) * time.Millisecond
}

// option is an option as text.
func (s *server) option(key, otherwise string) string {
	if v, ok := s.options[key]; ok {
		return v
	}
	return otherwise
}

// wait waits.
func wait(d time.Duration) { <-time.After(d) }

// forever never returns.
func forever() {
	for {
		wait(time.Hour)
	}
}

// run serves until stdin ends.
func (s *server) run() {
	s.start()
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			break
		}
		if f := s.options["log"]; f != "" {
			appendTo(f, line)
		}
		m := message{raw: strings.TrimSpace(line)}
		if json.Unmarshal([]byte(line), &m) != nil {
			continue
		}
		if m.Method == "" {
			s.mu.Lock()
			s.replies = append(s.replies, m.raw)
			s.mu.Unlock()
			continue
		}
		s.before(m)
		s.handle(m)
	}
	s.end()
}

// handle answers one request, or notes a notification.
func (s *server) handle(m message) {
	if f, ok := s.on[m.Method]; ok {
		f(m)
		return
	}
	switch {
	case m.Method == "initialize":
		s.result(m, s.initialize(m))
	case m.Method == "tools/list":
		s.result(m, `{"tools":[`+strings.Join(s.tools, ",")+`]}`)
	case m.Method == "tools/call":
		s.callTool(m)
		return
	case m.Method == "ping":
		s.result(m, `{}`)
	case m.ID != nil:
		s.fail(m, -32601, "Method not found")
	}
	s.after(m)
}

// initialize is the result of initialize.
func (s *server) initialize(m message) string {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(m.Params, &p)
	if s.version != "" {
		p.ProtocolVersion = s.version
	}
	out := fmt.Sprintf(`{"protocolVersion":%q`, p.ProtocolVersion)
	if s.capabilities != "" {
		out += `,"capabilities":` + s.capabilities
	}
	if s.info != "" {
		out += `,"serverInfo":` + s.info
	}
	return out + s.extra + "}"
}

// callTool runs a tool; the slow one beside others, so that calls overlap.
func (s *server) callTool(m message) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(m.Params, &p)
	f, ok := s.call[p.Name]
	if !ok {
		s.fail(m, -32602, "unknown tool "+p.Name)
		return
	}
	run := func() {
		f(m, p.Arguments)
		s.after(m)
	}
	if p.Name == "slow" {
		s.calls.Go(run)
		return
	}
	run()
}

// result answers a request.
func (s *server) result(m message, raw string) {
	if m.ID != nil {
		s.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + raw + `}`)
	}
}

// fail answers a request with an error.
func (s *server) fail(m message, code int, text string) {
	if m.ID != nil {
		s.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, m.ID, code, quote(text)))
	}
}

// text answers a call with one block of text.
func (s *server) text(m message, text string) {
	s.result(m, `{"content":[{"type":"text","text":`+quote(text)+`}]}`)
}

// line writes one line the way of the mode.
func (s *server) line(l string) { s.raw(s.encode(l + "\n")) }

// raw writes text as it is. Nobody to write to is the end, as for most servers.
func (s *server) raw(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.WriteString(s.out, text); err != nil {
		os.Exit(1)
	}
}

// note sends a notification.
func (s *server) note(method, params string) {
	s.line(`{"jsonrpc":"2.0","method":` + quote(method) + `,"params":` + params + `}`)
}

// quote is text as JSON.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
