package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"magi-code/internal/mcp/jsonrpc"
)

// silent answers everything but tools/call; calls are kept for the test to answer.
func silent(calls chan<- jsonrpc.Request) func(p *peer, r jsonrpc.Request) {
	return func(p *peer, r jsonrpc.Request) {
		if r.Method == "tools/call" {
			calls <- r
			return
		}
		p.standard(r)
	}
}

// R-P4, B13, B17: calls overlap, answers come in any order, and the first id is as good as any.
func TestCallsOverlap(t *testing.T) {
	calls := make(chan jsonrpc.Request, 64)
	f := &fake{tools: oneTool("t"), serve: silent(calls)}
	m := start(t, Options{}, map[string]*fake{"s": f})
	snap, _ := m.Prepare(t.Context(), Snapshot{})
	type answer struct{ sent, got string }
	answers := make(chan answer, 64)
	for i := range 64 {
		go func() {
			sent := `{"n":` + string(rune('0'+i/10)) + string(rune('0'+i%10)) + `.5}`
			sent = strings.Replace(sent, ":0", ":1", 1)
			r, err := run(t.Context(), snap, "mcp__s__t", sent)
			if err != nil {
				t.Error(err)
			}
			answers <- answer{sent, r.Plain()}
		}()
	}
	var pending []jsonrpc.Request
	for range 64 {
		pending = append(pending, <-calls)
	}
	for i := len(pending) - 1; i >= 0; i-- {
		f.peer(1).result(jsonrpc.Request{ID: jsonrpc.ID("99999")}, `{}`) // unknown ids are ignored
		r := pending[i]
		params, _ := object(r.Params, "arguments")
		f.peer(1).result(r, `{"content":[{"type":"text","text":`+string(mustQuote(string(params["arguments"])))+`}]}`)
	}
	for range 64 {
		if a := <-answers; a.sent != a.got {
			t.Errorf("sent %s, got %s", a.sent, a.got)
		}
	}
}

// R-P6, B17: a cancelled call tells the server, closes the connection, fails its siblings distinctly, and the next call
// connects again.
func TestCancelClosesForSiblings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan jsonrpc.Request, 64)
		f := &fake{tools: oneTool("t")}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if p.n == 1 {
				silent(calls)(p, r)
				return
			}
			p.standard(r)
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		ctx, cancel := context.WithCancelCause(t.Context())
		first := make(chan error, 1)
		go func() { _, err := run(ctx, snap, "mcp__s__t", `{}`); first <- err }()
		synctest.Wait()
		siblings := make(chan error, 20)
		for range 20 {
			go func() { _, err := run(t.Context(), snap, "mcp__s__t", `{}`); siblings <- err }()
		}
		synctest.Wait()
		why := errors.New("the user pressed escape")
		cancel(why)
		err := <-first
		if e := mcpError(t, err); e.Phase != PhaseCall || !errors.Is(err, ErrAborted) || !errors.Is(err, why) || errors.Is(err, ErrSibling) || errors.Is(err, ErrTimeout) {
			t.Errorf("the cancelled one: %v", err)
		}
		for range 20 {
			err := <-siblings
			if e := mcpError(t, err); !errors.Is(err, ErrSibling) || errors.Is(err, ErrAborted) || !strings.Contains(e.Text, "another call to this server was cancelled") {
				t.Errorf("a sibling: %v", err)
			}
		}
		synctest.Wait()
		if n := f.count("notifications/cancelled"); n != 1 {
			t.Errorf("%d cancellations told", n)
		}
		st := statusOf(t, m, "s")
		if st.State != Failed || st.Err == nil || st.Err.Text != "the connection was closed because a call was cancelled" {
			t.Errorf("%+v %+v", st, st.Err)
		}
		if _, err := run(t.Context(), snap, "mcp__s__t", `{}`); err != nil || f.dials() != 2 {
			t.Errorf("the next call: %v", err)
		}
		closeNow(t, m)
	})
}

// R-C7, B9, B17: a timeout is not an abort, for nobody; a late answer goes to nobody.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			delay time.Duration
			ok    bool
		}{{30*time.Second - time.Millisecond, true}, {30*time.Second + time.Millisecond, false}} {
			f := &fake{tools: oneTool("t")}
			f.serve = func(p *peer, r jsonrpc.Request) {
				if r.Method == "tools/call" && p.n == 1 {
					time.AfterFunc(c.delay, func() { p.standard(r) })
					return
				}
				p.standard(r)
			}
			m := start(t, Options{}, map[string]*fake{"s": f})
			snap, _ := m.Prepare(t.Context(), Snapshot{})
			sibling := make(chan error, 1)
			go func() {
				<-time.After(time.Second)
				_, err := run(t.Context(), snap, "mcp__s__t", `{}`)
				sibling <- err
			}()
			_, err := run(t.Context(), snap, "mcp__s__t", `{}`)
			if c.ok {
				if err != nil {
					t.Error(err)
				}
			} else {
				e := mcpError(t, err)
				if !errors.Is(err, ErrTimeout) || errors.Is(err, ErrAborted) || e.Text != "no answer to tools/call within 30s" || !strings.Contains(e.Hint, `"timeout"`) {
					t.Errorf("%v (%s)", err, e.Hint)
				}
				if err := <-sibling; !errors.Is(err, ErrSibling) || !strings.Contains(err.Error(), "timed out") {
					t.Errorf("sibling: %v", err)
				}
				if _, err := run(t.Context(), snap, "mcp__s__t", `{}`); err != nil {
					t.Error(err)
				}
			}
			closeNow(t, m)
			<-time.After(time.Hour)
		}
	})
}

// R-P6: a call cancelled before admission closes nothing.
func TestCancelBeforeAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan jsonrpc.Request, maxPending+1)
		f := &fake{tools: oneTool("t"), serve: silent(calls)}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := run(gone, snap, "mcp__s__t", `{}`); !errors.Is(err, ErrAborted) {
			t.Errorf("dead on arrival: %v", err)
		}
		errs := make(chan error, maxPending)
		for range maxPending {
			go func() { _, err := run(t.Context(), snap, "mcp__s__t", `{}`); errs <- err }()
		}
		synctest.Wait()
		if len(calls) != maxPending {
			t.Fatalf("%d calls at the server", len(calls))
		}
		waiting, cancel := context.WithCancel(t.Context())
		late := make(chan error, 1)
		go func() { _, err := run(waiting, snap, "mcp__s__t", `{}`); late <- err }()
		synctest.Wait()
		if len(calls) != maxPending {
			t.Error("the bound on pending calls does not hold")
		}
		cancel()
		if err := <-late; !errors.Is(err, ErrAborted) {
			t.Errorf("while waiting: %v", err)
		}
		for range maxPending {
			f.peer(1).result(<-calls, `{}`)
		}
		for range maxPending {
			if err := <-errs; err != nil {
				t.Errorf("a sibling: %v", err)
			}
		}
		if f.dials() != 1 || f.count("notifications/cancelled") != 0 {
			t.Error("the connection was closed")
		}
		closeNow(t, m)
	})
}

// lossy is a transport whose calls fail as the test says.
type lossy struct {
	wire
	call func(r jsonrpc.Request) error
}

func (l lossy) Call(ctx context.Context, r jsonrpc.Request) (jsonrpc.Response, error) {
	if err := l.call(r); err != nil {
		return jsonrpc.Response{}, err
	}
	return l.wire.Call(ctx, r)
}

type notSent struct{}

func (notSent) Error() string { return "never left" }
func (notSent) NotSent() bool { return true }

// R-P6: tools/call is repeated by itself only when nothing of it was sent, and once.
func TestRepeatOnlyUnsent(t *testing.T) {
	for _, c := range []struct {
		name  string
		errs  []error // of successive tools/call
		tries int
		ok    bool
	}{
		{"unsent once", []error{notSent{}}, 2, true},
		{"unsent twice", []error{notSent{}, notSent{}}, 2, false},
		{"perhaps sent", []error{errors.New("broken")}, 1, false},
		{"unsent, then perhaps sent", []error{notSent{}, errors.New("broken")}, 2, false},
	} {
		f := &fake{tools: oneTool("t")}
		tries := 0
		dial := func(o *Options, d definitionServer) dialer {
			return func(ctx context.Context, l launch, h jsonrpc.Handler) (link, error) {
				k, err := f.dial(ctx, l, h)
				k.transport = lossy{k.transport.(wire), func(r jsonrpc.Request) error {
					if r.Method != "tools/call" {
						return nil
					}
					tries++
					if tries <= len(c.errs) {
						return c.errs[tries-1]
					}
					return nil
				}}
				return k, err
			}
		}
		m := open(t.Context(), Options{Lookup: func(string) (string, bool) { return "", false }}, defs("s"), dial)
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		_, err := run(t.Context(), snap, "mcp__s__t", `{}`)
		if (err == nil) != c.ok || tries != c.tries {
			t.Errorf("%s: %v after %d tries", c.name, err, tries)
		}
		closeNow(t, m)
	}
}

// A message of ours that is too large is refused before it is sent, and closes nothing.
func TestCallTooLarge(t *testing.T) {
	f := &fake{tools: oneTool("t")}
	m := start(t, Options{}, map[string]*fake{"s": f})
	big := `{"x":"` + strings.Repeat("x", jsonrpc.MaxFrame) + `"}`
	_, err := m.Call(t.Context(), "s", "t", []byte(big))
	if e := mcpError(t, err); !strings.Contains(e.Text, "16 MiB") || f.count("tools/call") != 0 || statusOf(t, m, "s").State != Ready {
		t.Errorf("%v", err)
	}
}

// The server's own errors are its call's only: sanitized, the connection stays.
func TestServerError(t *testing.T) {
	f := &fake{tools: oneTool("t"), serve: func(p *peer, r jsonrpc.Request) {
		if r.Method == "tools/call" {
			p.fault(r, -32602, "bad \x1b[31marguments\u202e "+strings.Repeat("x", 1<<16), `{"a":1}`)
			return
		}
		p.standard(r)
	}}
	m := start(t, Options{}, map[string]*fake{"s": f})
	_, err := m.Call(t.Context(), "s", "t", nil)
	e := mcpError(t, err)
	if !strings.HasPrefix(e.Text, "error -32602: bad arguments x") || strings.ContainsAny(e.Text, "\x1b\u202e") || len(e.Text) > maxText+3 {
		t.Errorf("%.80q", e.Text)
	}
	rpc, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || rpc.Code != jsonrpc.CodeInvalidParams {
		t.Error("the cause is lost")
	}
	if st := statusOf(t, m, "s"); st.State != Ready || f.dials() != 1 {
		t.Errorf("%+v", st)
	}
}
