package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/jsonrpc"
)

// A definition without proof of approval starts nothing.
func TestOpenRefusesZeroApproved(t *testing.T) {
	if m, err := Open(t.Context(), Options{Servers: make([]approval.Approved, 1)}); !errors.Is(err, ErrUnapproved) || m != nil {
		t.Errorf("Open: %v", err)
	}
	if _, err := Probe(t.Context(), Options{Servers: make([]approval.Approved, 1)}); !errors.Is(err, ErrUnapproved) {
		t.Errorf("Probe: %v", err)
	}
	if _, err := Probe(t.Context(), Options{}); err == nil {
		t.Error("a probe of nothing succeeded")
	}
}

// R-P1, R-D1: the handshake in order, and what is known after it.
func TestStart(t *testing.T) {
	f := &fake{tools: oneTool("b") + "," + oneTool("a")}
	w := newWatch()
	m := start(t, Options{OnStatus: w.hear, Version: "9"}, map[string]*fake{"s": f})
	st := statusOf(t, m, "s")
	if st.State != Ready || st.Protocol != "2025-06-18" || st.ServerName != "fake" || st.ServerVersion != "1" ||
		st.Instructions != "be kind" || len(st.Tools) != 2 || st.Tools[0].Name != "a" || st.Err != nil || st.Timeout != 30*time.Second {
		t.Errorf("%+v", st)
	}
	f.mu.Lock()
	if got := strings.Join(f.methods, " "); got != "initialize notifications/initialized tools/list" {
		t.Errorf("sent %s", got)
	}
	f.mu.Unlock()
	var steps []string
	w.mu.Lock()
	for _, s := range w.seen {
		steps = append(steps, s.State.String()+" "+string(s.Phase))
	}
	w.mu.Unlock()
	if got := strings.Join(steps, ", "); got != "starting connect, starting initialize, starting list, ready " {
		t.Errorf("told %s", got)
	}
	snap, changed := m.Prepare(t.Context(), Snapshot{})
	if toolNames(snap) != "mcp__s__a mcp__s__b" || changed != nil {
		t.Errorf("%s, %v", toolNames(snap), changed)
	}
	r, err := run(t.Context(), snap, "mcp__s__a", `{"x":1,"intent":"theirs"}`)
	if err != nil || r.Plain() != `{"x":1,"intent":"theirs"}` {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestStateString(t *testing.T) {
	var all []string
	for s := NotStarted; s <= Closed+1; s++ {
		all = append(all, s.String())
	}
	if got := strings.Join(all, ", "); got != "not started, starting, ready, failed, closed, unknown" {
		t.Error(got)
	}
}

// One server's failure is its own; all start at once.
func TestStartSeveral(t *testing.T) {
	barrier := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(3)
	together := func(p *peer, r jsonrpc.Request) {
		if r.Method == "initialize" {
			arrived.Done()
			<-barrier
		}
		p.standard(r)
	}
	servers := map[string]*fake{
		"a": {tools: oneTool("t"), serve: together}, "b": {tools: oneTool("t"), serve: together}, "c": {tools: oneTool("t"), serve: together},
		"d": {refuse: func(int) error { return errors.New("no way") }},
	}
	go func() { arrived.Wait(); close(barrier) }()
	m := start(t, Options{}, servers)
	failures := m.Failures()
	if len(failures) != 1 || failures[0].Error() != `server "d": connect: no way` {
		t.Errorf("failures %v", failures)
	}
	snap, _ := m.Prepare(t.Context(), Snapshot{})
	if toolNames(snap) != "mcp__a__t mcp__b__t mcp__c__t" { // W6: one tool name in several servers
		t.Errorf("tools %s", toolNames(snap))
	}
}

// B9, R-C7: no answer within the timeout names the timeout and the setting, and ends only that server.
func TestStartTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			delay time.Duration
			ok    bool
		}{{30*time.Second - time.Millisecond, true}, {30*time.Second + time.Millisecond, false}} {
			f := &fake{tools: oneTool("t"), serve: func(p *peer, r jsonrpc.Request) {
				if r.Method == "initialize" {
					time.AfterFunc(c.delay, func() { p.standard(r) })
					return
				}
				p.standard(r)
			}}
			m := start(t, Options{}, map[string]*fake{"slow": f, "quick": {tools: oneTool("t")}})
			if st := statusOf(t, m, "quick"); st.State != Ready {
				t.Errorf("the other server: %+v", st)
			}
			st := statusOf(t, m, "slow")
			if c.ok {
				if st.State != Ready || st.Took < c.delay-time.Millisecond {
					t.Errorf("%+v", st)
				}
			} else {
				e := st.Err
				if st.State != Failed || e.Error() != `server "slow": initialize: no answer to initialize within 30s` || !errors.Is(e, ErrTimeout) ||
					!strings.Contains(e.Hint, `"timeout"`) || !strings.Contains(e.Hint, "/home/u/.mcp.json") || !strings.Contains(e.Hint, "now 30 s") {
					t.Errorf("%v, hint %q", e, e.Hint)
				}
				if f.count("notifications/cancelled") != 0 {
					t.Error("initialize was cancelled, which the protocol forbids")
				}
			}
			closeNow(t, m)
			<-time.After(time.Minute) // the late answer comes to nobody
		}
	})
}

// The end of Open's context ends the starts; the manager is still to be closed.
func TestOpenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{serve: func(*peer, jsonrpc.Request) { cancel() }}
	o := Options{Lookup: func(string) (string, bool) { return "", false }}
	m := open(ctx, o, defs("s"), dialFake(f))
	if e := m.Failures(); len(e) != 1 || e[0].Error() != `server "s": initialize: cancelled` || !errors.Is(e[0], context.Canceled) || e[0].Stderr != "" {
		t.Errorf("%v", e)
	}
	closeNow(t, m)
	if st := statusOf(t, m, "s"); st.State != Closed {
		t.Errorf("%+v", st)
	}
}

// R-T5, X3, B8: a death is known at once, with its reason, and the next call connects again.
func TestDeathAndReconnect(t *testing.T) {
	f := &fake{tools: oneTool("t"), stderr: "fatal: it broke\n"}
	w := newWatch()
	m := start(t, Options{OnStatus: w.hear}, map[string]*fake{"s": f})
	snap, _ := m.Prepare(t.Context(), Snapshot{})
	f.peer(1).conn.Close()
	st := w.until(t, func(s Status) bool { return s.State == Failed })
	if st.Err == nil || !strings.Contains(st.Err.Text, "closed") || st.Err.Stderr != "fatal: it broke" || st.Err.Hint == "" || len(st.Tools) != 1 {
		t.Errorf("%+v, %+v", st, st.Err)
	}
	if r, err := run(t.Context(), snap, "mcp__s__t", `{}`); err != nil || r.Plain() != "{}" {
		t.Fatalf("%v, %v", r, err)
	}
	if st := statusOf(t, m, "s"); st.State != Ready || st.Err != nil || f.dials() != 2 {
		t.Errorf("%+v", st)
	}
	if f.count("tools/list") != 1 {
		t.Error("a reconnection during a turn listed the tools again (R-L1)")
	}
}

// Concurrent callers share one reconnection (single flight).
func TestReconnectShared(t *testing.T) {
	f := &fake{tools: oneTool("t")}
	w := newWatch()
	m := start(t, Options{OnStatus: w.hear}, map[string]*fake{"s": f})
	snap, _ := m.Prepare(t.Context(), Snapshot{})
	f.peer(1).conn.Close()
	w.until(t, func(s Status) bool { return s.State == Failed })
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := run(t.Context(), snap, "mcp__s__t", `{}`); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if f.dials() != 2 || f.count("initialize") != 2 {
		t.Errorf("%d dials", f.dials())
	}
}

// One of two callers of a reconnection leaves; the other gets its connection.
func TestReconnectSurvivesOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := &fake{tools: oneTool("t")}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if p.n == 2 && r.Method == "initialize" {
				<-release
			}
			p.standard(r)
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		f.peer(1).conn.Close()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 2)
		go func() { _, err := run(ctx, snap, "mcp__s__t", `{}`); results <- err }()
		synctest.Wait()
		go func() { _, err := run(t.Context(), snap, "mcp__s__t", `{}`); results <- err }()
		synctest.Wait()
		cancel()
		if err := <-results; !errors.Is(err, ErrAborted) || !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left: %v", err)
		}
		close(release)
		if err := <-results; err != nil {
			t.Errorf("the one who stayed: %v", err)
		}
		if f.dials() != 2 {
			t.Errorf("%d dials", f.dials())
		}
		closeNow(t, m)
	})
}

// All callers of a reconnection leave: it ends, and the next caller starts another.
func TestReconnectAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("t")}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if p.n != 2 {
				p.standard(r)
			}
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		f.peer(1).conn.Close()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := run(ctx, snap, "mcp__s__t", `{}`); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, ErrAborted) {
			t.Errorf("%v", err)
		}
		if _, err := run(t.Context(), snap, "mcp__s__t", `{}`); err != nil || f.dials() != 3 {
			t.Errorf("%v after %d dials", err, f.dials())
		}
		closeNow(t, m)
	})
}

// W3: dead right after a good handshake is a failure to start, and said to be one.
func TestDeathDuringStart(t *testing.T) {
	for _, at := range []string{"initialize", "notifications/initialized", "tools/list"} {
		f := &fake{tools: oneTool("t"), serve: func(p *peer, r jsonrpc.Request) {
			if r.Method == at {
				p.conn.Close()
				return
			}
			p.standard(r)
		}}
		lookup := func(n string) (string, bool) { return "v", n == "HTTPS_PROXY" || n == "SECRET_TOKEN" }
		m := start(t, Options{Lookup: lookup}, map[string]*fake{"s": f})
		e := m.Failures()
		if len(e) != 1 || e[0].Phase != PhaseInitialize && e[0].Phase != PhaseList {
			t.Fatalf("%s: %v", at, e)
		}
		// R-C9, B12: names only
		if !strings.Contains(e[0].Hint, `"HOME": "${HOME}"`) || !strings.Contains(e[0].Hint, "HTTPS_PROXY") || strings.Contains(e[0].Hint, "SECRET_TOKEN") {
			t.Errorf("%s: hint %q", at, e[0].Hint)
		}
	}
}

// Manager.Call is for people: raw names, close matches.
func TestCall(t *testing.T) {
	f := &fake{tools: oneTool("read_file") + "," + oneTool("write_file") + "," + oneTool("bad.name")}
	m := start(t, Options{}, map[string]*fake{"fs": f})
	if r, err := m.Call(t.Context(), "fs", "read_file", nil); err != nil || r.Plain() != "{}" {
		t.Errorf("%v, %v", r, err)
	}
	for _, c := range []struct{ server, tool, args, want, hint string }{
		{"nope", "x", `{}`, "not among the running servers", ""},
		{"fs", "read_fil", `{}`, `no tool "read_fil"`, "read_file"},
		{"fs", "mcp__fs__write_file", `{}`, "no tool", "write_file"},
		{"fs", "zzz", `{}`, "no tool", "magi-code mcp test fs lists"},
		{"fs", "bad.name", `{}`, "left out", "characters"},
		{"fs", "read_file", `[]`, "JSON object", ""},
		{"fs", "read_file", `{`, "JSON object", ""},
	} {
		_, err := m.Call(t.Context(), c.server, c.tool, []byte(c.args))
		e := mcpError(t, err)
		if !strings.Contains(e.Text, c.want) || !strings.Contains(e.Hint, c.hint) || c.hint == "" && e.Hint != "" {
			t.Errorf("%s %s: %v (hint %q)", c.server, c.tool, e, e.Hint)
		}
	}
}

// Errors tell nothing but their sentence, whatever the verb.
func TestErrorFormat(t *testing.T) {
	e := &Error{Server: "s", Phase: PhaseCall, Text: "it broke", Stderr: "tail", Cause: errors.New("canary")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		if got := fmt.Sprintf(verb, e); !strings.Contains(got, "it broke") || strings.Contains(got, "canary") {
			t.Errorf("%s: %s", verb, got)
		}
		if got := fmt.Sprintf(verb, struct{ E *Error }{e}); strings.Contains(got, "canary") {
			t.Errorf("%s in a struct: %s", verb, got)
		}
	}
	var none *Error
	if got := fmt.Sprintf("%v", none); got != "<nil>" {
		t.Errorf("nil: %s", got)
	}
}
