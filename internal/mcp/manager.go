// Package mcp is the heart: a Manager starts, refreshes and closes approved servers; a client speaks MCP on a
// transport; a Snapshot is the frozen catalogue of their tools.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/secret"
	"magi-code/internal/tool"
)

// Tokens is the silent OAuth source of one HTTP server: it never opens anything.
type Tokens interface {
	// Header returns the Authorization value to send, refreshing if needed; an error says which command to run.
	Header(ctx context.Context) (secret.String, error)
	// Rejected tells that the server refused this value with 401, so that Header must not give it again.
	Rejected(ctx context.Context, header secret.String)
}

// Options are the parts that a Manager is made of.
type Options struct {
	Servers []approval.Approved
	Lookup  func(string) (string, bool) // the environment, for expansion and PATH; nil: an empty one
	Dir     string                      // cwd of stdio children
	Version string                      // ours, for clientInfo
	Scrub   *secret.Scrubber            // learns the secrets of every launch; nil: one of the manager's own
	// Tokens returns the source for an HTTP server with oauth; nil when login is not built in.
	Tokens func(a approval.Approved) Tokens
	// HTTP is the base round tripper; nil means one made with proxies from the environment and platform TLS.
	HTTP http.RoundTripper
	// OnStatus hears every change of a server's state, from several goroutines; it must not block. May be nil.
	OnStatus func(Status)
}

// Manager runs the approved servers. Its methods may be called concurrently.
type Manager struct {
	servers []*server // sorted by name, never changed
	end     context.CancelCauseFunc
	rush    context.CancelFunc
	mu      sync.Mutex // guards current
	current Snapshot
}

// Open starts all servers at once, waits until each is ready or has failed, and returns the manager. It returns an
// error only for a zero Approved; failures of servers are in Status. The end of ctx ends starts under way, and nothing else:
// Close must follow.
func Open(ctx context.Context, o Options) (*Manager, error) {
	var definitions []definition.Server
	proofs := map[string]approval.Approved{}
	for _, a := range o.Servers {
		d, ok := a.Definition()
		if !ok {
			return nil, ErrUnapproved
		}
		if _, twice := proofs[d.Name]; twice {
			return nil, fmt.Errorf("server %q is given twice", d.Name)
		}
		proofs[d.Name] = a
		definitions = append(definitions, d)
	}
	return open(ctx, o, definitions, func(o *Options, d definition.Server) dialer { return o.dialer(d, proofs[d.Name]) }), nil
}

// open is Open once approval was proved. dial gives each server its dialer.
func open(ctx context.Context, o Options, definitions []definition.Server, dial func(*Options, definition.Server) dialer) *Manager {
	if o.Scrub == nil {
		o.Scrub = secret.NewScrubber()
	}
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	hurry, rush := context.WithCancel(context.WithoutCancel(ctx))
	m := &Manager{end: end, rush: rush}
	for _, d := range definitions {
		m.servers = append(m.servers, newServer(&o, d, dial(&o, d), life, hurry))
	}
	slices.SortFunc(m.servers, func(a, b *server) int { return cmp.Compare(a.name, b.name) })
	var wg sync.WaitGroup
	for _, s := range m.servers {
		wg.Go(func() {
			if _, err := s.connected(ctx); err != nil { // what became of it is in the status
				s.settle()
			}
		})
	}
	wg.Wait()
	return m
}

// Probe starts one server through initialize and tools/list, returns its status, and closes it. The error is a *Error, or
// that of an Options without exactly one approved server.
func Probe(ctx context.Context, o Options) (Status, error) {
	if len(o.Servers) != 1 {
		return Status{}, fmt.Errorf("a probe takes one server, not %d", len(o.Servers))
	}
	m, err := Open(ctx, o)
	if err != nil {
		return Status{}, err
	}
	return m.probed(ctx)
}

// probed takes the only server's status and closes it.
func (m *Manager) probed(ctx context.Context) (Status, error) {
	st := m.servers[0].status()
	failures := m.Failures()
	_ = m.Close(ctx) // the children are gone or were killed; the probe's answer stands
	if len(failures) > 0 {
		return st, failures[0]
	}
	return st, nil
}

// Status returns every server's status, sorted by name.
func (m *Manager) Status() []Status {
	out := make([]Status, len(m.servers))
	for i, s := range m.servers {
		out[i] = s.status()
	}
	return out
}

// Failures returns the errors of servers that are not ready, sorted by name.
func (m *Manager) Failures() []*Error {
	var out []*Error
	for _, s := range m.servers {
		s.mu.Lock()
		st := s.st
		s.mu.Unlock()
		switch {
		case st.State == Ready:
		case st.Err != nil:
			out = append(out, st.Err)
		default:
			out = append(out, &Error{Server: s.name, Phase: cmp.Or(st.Phase, PhaseConnect), Text: "the server is " + st.State.String(), Cause: ErrAborted})
		}
	}
	return out
}

// Call runs a tool by its own name on its server, for people who type. Arguments must be an object; nil is {}. The error is
// a *Error.
func (m *Manager) Call(ctx context.Context, serverName, name string, arguments jsontext.Value) (tool.Result, error) {
	i, ok := slices.BinarySearchFunc(m.servers, serverName, func(s *server, n string) int { return cmp.Compare(s.name, n) })
	if !ok {
		return tool.Result{}, &Error{Server: shownName(serverName), Phase: PhaseCall, Text: "it is not among the running servers", Cause: ErrUnknownServer}
	}
	s := m.servers[i]
	if len(arguments) == 0 {
		arguments = jsontext.Value("{}")
	}
	if !arguments.IsValid() || arguments.Kind() != '{' {
		return tool.Result{}, &Error{Server: s.name, Phase: PhaseCall, Text: "the arguments must be one JSON object"}
	}
	if _, err := s.connected(ctx); err != nil { // its tools may not be known yet
		return tool.Result{}, s.explain(inPhase(PhaseCall, err), nil)
	}
	if err := s.unknownTool(name); err != nil {
		return tool.Result{}, err
	}
	return s.call(ctx, name, arguments)
}

// unknownTool explains that the server has no such tool; nil when it has.
func (s *server) unknownTool(name string) error {
	s.mu.Lock()
	list := s.listing
	s.mu.Unlock()
	if list == nil {
		return nil
	}
	if _, ok := list.set.Get(advertised(s.name, name)); ok {
		return nil
	}
	e := &Error{Server: s.name, Phase: PhaseCall, Text: fmt.Sprintf("it has no tool %q", shownName(name)), Cause: ErrUnknownTool}
	var known []string
	for _, t := range list.infos {
		known = append(known, t.Name)
	}
	for _, t := range list.omitted {
		if t.Name == shownName(name) {
			e.Text, e.Hint = fmt.Sprintf("its tool %q is left out", shownName(name)), t.Reason
			return e
		}
	}
	e.Hint = "magi-code mcp test " + s.name + " lists those that it has"
	if near := closeMatches(strings.TrimPrefix(name, advertised(s.name, "")), known); len(near) > 0 {
		e.Hint = "did you mean " + strings.Join(near, ", ") + "?"
	}
	return e
}

// Close ends all servers at once, within ctx and the transports' own bounds, and waits for everything.
func (m *Manager) Close(ctx context.Context) error {
	stop := context.AfterFunc(ctx, m.rush)
	defer stop()
	m.end(ErrClosed)
	errs := make([]error, len(m.servers))
	var wg sync.WaitGroup
	for i, s := range m.servers {
		wg.Go(func() { errs[i] = s.close() })
	}
	wg.Wait()
	m.rush() // releases its context
	return errors.Join(errs...)
}
