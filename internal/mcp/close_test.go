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

// After Close nothing starts again, and nothing is left.
func TestClosed(t *testing.T) {
	f := &fake{tools: oneTool("t")}
	m := start(t, Options{}, map[string]*fake{"s": f})
	snap, _ := m.Prepare(t.Context(), Snapshot{})
	closeNow(t, m)
	if _, err := run(t.Context(), snap, "mcp__s__t", `{}`); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if st := statusOf(t, m, "s"); st.State != Closed || st.Err != nil || f.dials() != 1 {
		t.Errorf("%+v", st)
	}
	if again, changes := m.Prepare(t.Context(), snap); toolNames(again) != toolNames(snap) || changes != nil {
		t.Error("the catalogue changed at close")
	}
}

// Close during calls and starts ends both.
func TestCloseDuringWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("t"), serve: func(p *peer, r jsonrpc.Request) {
			if r.Method != "tools/call" {
				p.standard(r)
			}
		}}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		errs := make(chan error, 3)
		for range 3 {
			go func() { _, err := run(t.Context(), snap, "mcp__s__t", `{}`); errs <- err }()
		}
		synctest.Wait()
		closeNow(t, m)
		for range 3 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("%v", err)
			}
		}
	})
}

// stubborn is a transport that takes its time to close, and says so when it is not given enough.
type stubborn struct{ wire }

func (s stubborn) Close(ctx context.Context) error {
	_ = s.wire.Close(ctx)
	select {
	case <-time.After(5 * time.Second):
		return nil
	case <-ctx.Done():
		return errors.New("something \x1b[31mlives on")
	}
}

// Close is bounded by its context, and what did not end in time is reported.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			allowed, takes time.Duration
			fails          bool
		}{{time.Minute, 5 * time.Second, false}, {2 * time.Second, 2 * time.Second, true}, {0, 0, true}} {
			f := &fake{tools: oneTool("t")}
			dial := func(*Options, definitionServer) dialer {
				return func(ctx context.Context, l launch, h jsonrpc.Handler) (link, error) {
					k, err := f.dial(ctx, l, h)
					k.transport = stubborn{k.transport.(wire)}
					return k, err
				}
			}
			m := open(t.Context(), Options{}, defs("a", "b"), dial)
			ctx, cancel := context.WithTimeout(t.Context(), c.allowed)
			began := time.Now()
			err := m.Close(ctx)
			cancel()
			if took := time.Since(began); took != c.takes || (err != nil) != c.fails {
				t.Errorf("allowed %s: took %s, %v", c.allowed, took, err)
			}
			if c.fails {
				if e := mcpError(t, err); e.Phase != PhaseClose || e.Text != "something lives on" || strings.Count(err.Error(), "lives on") != 2 {
					t.Errorf("%v", err)
				}
			}
		}
	})
}
