package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
	"magi-code/internal/tool"
)

// fake is a server in memory: the real jsonrpc.Conn over net.Pipe, with a script at the other end.
type fake struct {
	// serve answers one message; nil means the default. It runs on the reader of its peer.
	serve func(p *peer, r jsonrpc.Request)
	// refuse, when it returns an error, makes dialling fail.
	refuse func(n int) error

	mu      sync.Mutex
	tools   string // the JSON of "tools"
	changes bool   // advertise listChanged
	peers   []*peer
	methods []string
	stderr  string
}

// peer is the server's end of one connection.
type peer struct {
	f    *fake
	n    int // 1 for the first
	conn net.Conn
	mu   sync.Mutex
}

// wire is the client's end.
type wire struct {
	*jsonrpc.Conn
	served chan struct{}
}

func (w wire) Close(ctx context.Context) error {
	err := w.Conn.Close(ctx)
	<-w.served
	return err
}

func (f *fake) dial(ctx context.Context, _ definition.Launch, h jsonrpc.Handler) (link, error) {
	f.mu.Lock()
	p := &peer{f: f, n: len(f.peers) + 1}
	f.peers = append(f.peers, p)
	f.mu.Unlock()
	if f.refuse != nil {
		if err := f.refuse(p.n); err != nil {
			return link{}, err
		}
	}
	ours, theirs := net.Pipe()
	p.conn = theirs
	w := wire{jsonrpc.NewConn(ctx, ours, ours, jsonrpc.Options{Handler: h}), make(chan struct{})}
	go func() {
		defer close(w.served)
		p.run()
	}()
	k := bare(w)
	k.ended = w.Ended()
	k.stderr = func() string { return f.stderr }
	return k, nil
}

func (p *peer) run() {
	defer p.conn.Close()
	in := bufio.NewReaderSize(p.conn, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		m, err := jsonrpc.Decode(line)
		if err != nil || m.Request == nil {
			continue
		}
		p.f.mu.Lock()
		p.f.methods = append(p.f.methods, m.Request.Method)
		p.f.mu.Unlock()
		if p.f.serve != nil {
			p.f.serve(p, *m.Request)
			continue
		}
		p.standard(*m.Request)
	}
}

// standard is a well-behaved server whose tools echo their arguments.
func (p *peer) standard(r jsonrpc.Request) {
	p.f.mu.Lock()
	tools, changes := p.f.tools, p.f.changes
	p.f.mu.Unlock()
	switch r.Method {
	case "initialize":
		p.result(r, fmt.Sprintf(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":%v}},"serverInfo":{"name":"fake","version":"1"},"instructions":"be kind"}`, changes))
	case "tools/list":
		p.result(r, `{"tools":[`+tools+`]}`)
	case "tools/call":
		params, _ := object(r.Params, "arguments")
		p.result(r, `{"content":[{"type":"text","text":`+string(mustQuote(string(params["arguments"])))+`}]}`)
	}
}

func mustQuote(s string) []byte {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic(err)
	}
	return b
}

func (p *peer) send(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.conn, line+"\n")
}

func (p *peer) result(r jsonrpc.Request, result string) {
	if len(r.ID) > 0 {
		p.send(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + result + `}`)
	}
}

func (p *peer) fault(r jsonrpc.Request, code int, message, data string) {
	s := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s`, r.ID, code, mustQuote(message))
	if data != "" {
		s += `,"data":` + data
	}
	p.send(s + `}}`)
}

func (p *peer) changed() { p.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) }

// count is how often a method arrived.
func (f *fake) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.methods {
		if m == method {
			n++
		}
	}
	return n
}

func (f *fake) setTools(tools string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tools = tools
}

func (f *fake) peer(n int) *peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.peers[n-1]
}

func (f *fake) dials() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.peers)
}

func oneTool(name string) string {
	return `{"name":"` + name + `","description":"does ` + name + `","inputSchema":{"type":"object"}}`
}

// define is a stdio definition that is never started: the fake is.
func define(name string) definition.Server {
	return definition.Server{Name: name, Source: "/home/u/.mcp.json", Type: definition.Stdio, Command: "server", Timeout: 30}
}

// start opens a manager over fakes, one per name in order.
func start(t testing.TB, o Options, servers map[string]*fake) *Manager {
	t.Helper()
	var defs []definition.Server
	for name := range servers {
		defs = append(defs, define(name))
	}
	return startDefined(t, o, defs, servers)
}

func startDefined(t testing.TB, o Options, defs []definition.Server, servers map[string]*fake) *Manager {
	t.Helper()
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	if o.Scrub == nil {
		o.Scrub = secret.NewScrubber()
	}
	m := open(context.Background(), o, defs, func(_ *Options, d definition.Server) dialer { return servers[d.Name].dial })
	t.Cleanup(func() { closeNow(t, m) })
	return m
}

func closeNow(t testing.TB, m *Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// status of the only or the named server.
func statusOf(t testing.TB, m *Manager, name string) Status {
	t.Helper()
	for _, st := range m.Status() {
		if st.Name == name {
			return st
		}
	}
	t.Fatalf("no server %q", name)
	return Status{}
}

func toolNames(s Snapshot) string {
	var names []string
	for _, t := range s.Tools().All() {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

// run calls an advertised tool of a snapshot.
func run(ctx context.Context, s Snapshot, name, arguments string) (tool.Result, error) {
	t, ok := s.Tools().Get(name)
	if !ok {
		return tool.Result{}, errors.New("no tool " + name)
	}
	call, err := tool.Parse(t, "1", []byte(`{"intent":"test","arguments":`+arguments+`}`))
	if err != nil {
		return tool.Result{}, err
	}
	return t.Run(ctx, call)
}

// mcpError is err as ours.
func mcpError(t testing.TB, err error) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("%v (%T) is no *Error", err, err)
	}
	return e
}

// watch collects status changes.
type watch struct {
	mu   sync.Mutex
	seen []Status
	more chan struct{}
}

func newWatch() *watch { return &watch{more: make(chan struct{}, 1000)} }

func (w *watch) hear(s Status) {
	w.mu.Lock()
	w.seen = append(w.seen, s)
	w.mu.Unlock()
	w.more <- struct{}{}
}

// until waits until a status satisfies f.
func (w *watch) until(t testing.TB, f func(Status) bool) Status {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		w.mu.Lock()
		i := slices.IndexFunc(w.seen, f)
		var s Status
		if i >= 0 {
			s = w.seen[i]
		}
		w.mu.Unlock()
		if i >= 0 {
			return s
		}
		select {
		case <-w.more:
		case <-deadline:
			t.Fatal("the status never came")
		}
	}
}

func defs(names ...string) (out []definition.Server) {
	for _, n := range names {
		out = append(out, define(n))
	}
	return out
}

func dialFake(f *fake) func(*Options, definition.Server) dialer {
	return func(*Options, definition.Server) dialer { return f.dial }
}

type (
	definitionServer = definition.Server
	launch           = definition.Launch
)
