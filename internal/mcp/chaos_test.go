package mcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"magi-code/internal/mcp/jsonrpc"
)

// testOnlySeeds is how many orders of events are tried.
const testOnlySeeds = 12

// A server and its callers do everything at once: calls, cancellations, deaths, silence, changes, turns. Whatever the order, every
// call returns, with its answer or with an error that says whose doing it was; the status is true in the end; nothing is
// left behind (the bubble would not end).
func TestEverythingAtOnce(t *testing.T) {
	for seed := range uint64(testOnlySeeds) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return dice.IntN(n) }
			f := &fake{tools: oneTool("a") + "," + oneTool("b"), changes: true}
			f.serve = func(p *peer, r jsonrpc.Request) {
				if r.Method == "initialize" || len(r.ID) == 0 || p.n == 1 && f.count("tools/list") == 1 && r.Method == "tools/list" {
					p.standard(r)
					return
				}
				switch roll(40) {
				case 0:
					p.conn.Close()
				case 1: // never answered
				case 2:
					p.fault(r, -32603, "no", "")
				case 3:
					p.changed()
					p.standard(r)
				default:
					time.AfterFunc(time.Duration(roll(2000))*time.Millisecond, func() { p.standard(r) })
				}
			}
			m := start(t, Options{OnStatus: func(Status) {}}, map[string]*fake{"s": f})
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					snap, _ := m.Prepare(t.Context(), Snapshot{})
					for j := range 20 {
						if roll(6) == 0 {
							snap, _ = m.Prepare(t.Context(), snap)
						}
						ctx, cancel := context.WithCancel(t.Context())
						if roll(8) == 0 {
							time.AfterFunc(time.Duration(roll(1500))*time.Millisecond, cancel)
						}
						args := fmt.Sprintf(`{"n":%d%02d1}`, i+1, j)
						r, err := run(ctx, snap, []string{"mcp__s__a", "mcp__s__b"}[roll(2)], args)
						check(t, ctx, args, r.Plain(), err)
						cancel()
						<-time.After(time.Duration(roll(500)) * time.Millisecond)
					}
				})
			}
			wg.Wait()
			<-time.After(time.Minute)
			synctest.Wait()
			s := m.servers[0]
			s.mu.Lock()
			alive := s.conn != nil && !s.conn.dead()
			s.mu.Unlock()
			if st := statusOf(t, m, "s"); (st.State == Ready) != alive || st.State == Starting || st.State != Ready && st.Err == nil {
				t.Errorf("seed %d: alive %v, %+v", seed, alive, st)
			}
			closeNow(t, m)
			f.mu.Lock()
			for _, p := range f.peers {
				if _, err := p.conn.Write([]byte("x")); err == nil {
					t.Errorf("seed %d: a connection is open", seed)
				}
			}
			f.mu.Unlock()
		})
	}
}

// check judges one call.
func check(t *testing.T, ctx context.Context, sent, got string, err error) {
	if err == nil {
		if got != sent {
			t.Errorf("sent %s, got %s", sent, got)
		}
		return
	}
	e := mcpError(t, err)
	_, refused := errors.AsType[*jsonrpc.Error](err)
	switch {
	case errors.Is(err, ErrAborted):
		if ctx.Err() == nil {
			t.Errorf("aborted without a cause: %v", e)
		}
	case errors.Is(err, ErrTimeout), errors.Is(err, ErrSibling), refused:
	default:
		if _, ended := errors.AsType[*jsonrpc.EndedError](err); !ended && e.Text != "the server closed the connection" {
			t.Errorf("nobody's doing: %v", e)
		}
	}
}
