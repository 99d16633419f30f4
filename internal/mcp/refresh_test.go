package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"magi-code/internal/mcp/jsonrpc"
)

// R-L1, R-L4, X2: notifications coalesce until the next Prepare; other servers are not asked.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("a") + "," + oneTool("b"), changes: true}
		other := &fake{tools: oneTool("x"), changes: true}
		m := start(t, Options{}, map[string]*fake{"s": f, "other": other})
		first, changed := m.Prepare(t.Context(), Snapshot{})
		if changed != nil || f.count("tools/list") != 1 {
			t.Errorf("%v", changed)
		}
		f.setTools(oneTool("a") + "," + `{"name":"b","description":"new words"}` + "," + oneTool("c"))
		for range 10 {
			f.peer(1).changed()
		}
		synctest.Wait()
		if f.count("tools/list") != 1 {
			t.Error("listed outside of Prepare")
		}
		if again := m.snapshot(); toolNames(again) != toolNames(first) {
			t.Error("the catalogue changed outside of Prepare")
		}
		second, changed := m.Prepare(t.Context(), first)
		if len(changed) != 1 || fmt.Sprint(changed[0]) != "{s [mcp__s__c] [] [mcp__s__b]}" {
			t.Errorf("%v", changed)
		}
		if toolNames(second) != "mcp__other__x mcp__s__a mcp__s__b mcp__s__c" || toolNames(first) != "mcp__other__x mcp__s__a mcp__s__b" {
			t.Errorf("%s; frozen: %s", toolNames(second), toolNames(first))
		}
		if f.count("tools/list") != 2 || other.count("tools/list") != 1 {
			t.Errorf("%d and %d listings", f.count("tools/list"), other.count("tools/list"))
		}
		// R-L3: another conversation with the older snapshot hears of the same change, without a listing.
		if _, changed := m.Prepare(t.Context(), first); len(changed) != 1 || f.count("tools/list") != 2 {
			t.Errorf("the other conversation: %v", changed)
		}
		f.setTools(oneTool("c"))
		f.peer(1).changed()
		synctest.Wait()
		if _, changed = m.Prepare(t.Context(), second); fmt.Sprint(changed) != "[{s [] [mcp__s__a mcp__s__b] [mcp__s__c]}]" && fmt.Sprint(changed) != "[{s [] [mcp__s__a mcp__s__b] []}]" {
			t.Errorf("%v", changed)
		}
		// A call to a removed name still goes where it always went: the frozen set decides what is known.
		if _, err := run(t.Context(), first, "mcp__s__a", `{}`); err != nil {
			t.Error(err)
		}
		closeNow(t, m)
	})
}

// R-L4: an unchanged listing keeps the snapshot and is no change.
func TestRefreshUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("a") + "," + oneTool("b"), changes: true}
		m := start(t, Options{}, map[string]*fake{"s": f})
		first, _ := m.Prepare(t.Context(), Snapshot{})
		before := m.servers[0].listing
		f.setTools(oneTool("b") + "," + oneTool("a")) // order does not matter
		f.peer(1).changed()
		synctest.Wait()
		second, changed := m.Prepare(t.Context(), first)
		if changed != nil || m.servers[0].listing != before || f.count("tools/list") != 2 || first.Tools().Digest() != second.Tools().Digest() {
			t.Errorf("%v", changed)
		}
		closeNow(t, m)
	})
}

// R-L2: a failed refresh keeps the old tools, is stale, is retried once; then only another notification tries again.
func TestRefreshFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		f := &fake{tools: oneTool("a"), changes: true}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if r.Method == "tools/list" && broken.Load() {
				p.fault(r, -32603, "not now", "")
				return
			}
			p.standard(r)
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		prepare := func(listings int, stale bool) {
			t.Helper()
			var changed []Change
			snap, changed = m.Prepare(t.Context(), snap)
			st := statusOf(t, m, "s")
			if f.count("tools/list") != listings || st.Stale != stale || st.State != Ready || changed != nil || len(st.Tools) != 1 || toolNames(snap) != "mcp__s__a" {
				t.Errorf("%d listings, %+v, %v", f.count("tools/list"), st, changed)
			}
			if stale && (st.Err == nil || st.Err.Phase != PhaseList || !strings.Contains(st.Err.Text, "not now")) {
				t.Errorf("%v", st.Err)
			}
			if !stale && st.Err != nil {
				t.Errorf("%v", st.Err)
			}
		}
		prepare(1, false)
		broken.Store(true)
		f.peer(1).changed()
		synctest.Wait()
		prepare(2, true) // the refresh
		prepare(3, true) // the one retry
		prepare(3, true) // nothing more
		prepare(3, true)
		f.peer(1).changed()
		synctest.Wait()
		prepare(4, true)
		broken.Store(false)
		prepare(5, false) // the retry succeeds
		prepare(5, false)

		// Invalid counts as failed: duplicates.
		f.setTools(oneTool("a") + "," + oneTool("a"))
		f.peer(1).changed()
		synctest.Wait()
		if _, changed := m.Prepare(t.Context(), snap); changed != nil || !statusOf(t, m, "s").Stale || !strings.Contains(statusOf(t, m, "s").Err.Text, `"a"`) {
			t.Errorf("%v, %+v", changed, statusOf(t, m, "s"))
		}
		closeNow(t, m)
	})
}

// R-L1, R-L2: a refresh is bounded by the server's timeout, others go on beside it, and a server whose listing hangs is
// reconnected for the retry.
func TestRefreshTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("a"), changes: true}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if r.Method == "tools/list" && p.n == 1 && f.count("tools/list") > 1 {
				return
			}
			p.standard(r)
		}
		quick := &fake{tools: oneTool("q"), changes: true}
		m := start(t, Options{}, map[string]*fake{"s": f, "quick": quick})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		quick.setTools(oneTool("q2"))
		quick.peer(1).changed()
		f.peer(1).changed()
		synctest.Wait()
		began := time.Now()
		snap, changed := m.Prepare(t.Context(), snap)
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("took %s", took)
		}
		if len(changed) != 1 || changed[0].Server != "quick" || toolNames(snap) != "mcp__quick__q2 mcp__s__a" {
			t.Errorf("%v, %s", changed, toolNames(snap))
		}
		if st := statusOf(t, m, "s"); !st.Stale || len(st.Tools) != 1 {
			t.Errorf("%+v", st)
		}
		f.setTools(oneTool("a") + "," + oneTool("b"))
		if _, changed = m.Prepare(t.Context(), snap); len(changed) != 1 || statusOf(t, m, "s").Stale || f.dials() != 2 {
			t.Errorf("%v, %+v", changed, statusOf(t, m, "s"))
		}
		closeNow(t, m)
	})
}

// Two conversations prepare at once: one listing, both wait for it, both hear of it. One may leave.
func TestRefreshShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		f := &fake{tools: oneTool("a"), changes: true}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if r.Method == "tools/list" && f.count("tools/list") > 1 {
				<-gate
			}
			p.standard(r)
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		f.setTools(oneTool("b"))
		f.peer(1).changed()
		synctest.Wait()
		leaver, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 3 {
			ctx := t.Context()
			if i == 0 {
				ctx = leaver
			}
			wg.Go(func() {
				_, changed := m.Prepare(ctx, snap)
				if ctx == leaver {
					if changed != nil {
						t.Errorf("the one who left: %v", changed)
					}
				} else if len(changed) != 1 {
					t.Errorf("%v", changed)
				}
			})
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(gate)
		wg.Wait()
		if f.count("tools/list") != 2 {
			t.Errorf("%d listings", f.count("tools/list"))
		}
		closeNow(t, m)
	})
}

// A refresh that the user interrupts is no failure of the server: it is still due at the next turn.
func TestRefreshInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("a"), changes: true}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if r.Method == "tools/list" && p.n == 1 && f.count("tools/list") > 1 {
				return
			}
			p.standard(r)
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		f.setTools(oneTool("b"))
		f.peer(1).changed()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if again, changed := m.Prepare(ctx, snap); changed != nil || toolNames(again) != "mcp__s__a" {
			t.Errorf("%v", changed)
		}
		synctest.Wait()
		if st := statusOf(t, m, "s"); st.Stale {
			t.Errorf("%+v", st)
		}
		if _, changed := m.Prepare(t.Context(), snap); len(changed) != 1 {
			t.Errorf("the next turn: %v", changed)
		}
		closeNow(t, m)
	})
}

// X2: list_changed from a server that does not advertise it is counted and not followed. W4: before the handshake is over it
// means nothing.
func TestRefreshUnannounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("a")}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if r.Method == "initialize" {
				p.changed()
			}
			p.standard(r)
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		f.peer(1).changed()
		f.peer(1).changed()
		synctest.Wait()
		_, _ = m.Prepare(t.Context(), snap)
		if st := statusOf(t, m, "s"); f.count("tools/list") != 1 || st.Unannounced != 2 {
			t.Errorf("%d listings, %d unannounced", f.count("tools/list"), st.Unannounced)
		}
		closeNow(t, m)
	})
}

// W4: what was announced before the first listing is in it: the first turn need not list again.
func TestAnnouncedBeforeFirstListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("a"), changes: true}
		f.serve = func(p *peer, r jsonrpc.Request) {
			p.standard(r)
			if r.Method == "initialize" {
				for range 10 {
					p.changed()
				}
				synctest.Wait()
			}
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		_, _ = m.Prepare(t.Context(), Snapshot{})
		if n := f.count("tools/list"); n != 1 {
			t.Errorf("%d listings", n)
		}
		closeNow(t, m)
	})
}

// A change announced while the listing is read belongs to the next turn; one announced before it is covered by it.
func TestRefreshDuringListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("a"), changes: true}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if r.Method == "tools/list" && f.count("tools/list") == 2 {
				p.changed()
			}
			p.standard(r)
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		snap, _ := m.Prepare(t.Context(), Snapshot{})
		f.peer(1).changed()
		synctest.Wait()
		for want := 2; want <= 3; want++ {
			snap, _ = m.Prepare(t.Context(), snap)
			if got := f.count("tools/list"); got != want {
				t.Errorf("%d listings, want %d", got, want)
			}
		}
		_, _ = m.Prepare(t.Context(), snap)
		if got := f.count("tools/list"); got != 3 {
			t.Errorf("%d listings", got)
		}
		closeNow(t, m)
	})
}

// A server that announces changes may have changed while it was away: it is listed again at the turn after its reconnection. One
// that does not keeps its snapshot.
func TestRefreshAfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, announces := range []bool{true, false} {
			f := &fake{tools: oneTool("a"), changes: announces}
			m := start(t, Options{}, map[string]*fake{"s": f})
			snap, _ := m.Prepare(t.Context(), Snapshot{})
			f.peer(1).conn.Close()
			synctest.Wait()
			f.setTools(oneTool("b"))
			// R-L3: still in the snapshot, although nobody is connected
			if again, changed := m.Prepare(t.Context(), snap); toolNames(again) != "mcp__s__a" || changed != nil || f.dials() != 1 {
				t.Errorf("%s, %v", toolNames(again), changed)
			}
			if _, err := run(t.Context(), snap, "mcp__s__a", `{}`); err != nil || f.count("tools/list") != 1 {
				t.Errorf("%v, %d listings", err, f.count("tools/list"))
			}
			if _, changed := m.Prepare(t.Context(), snap); (len(changed) == 1) != announces {
				t.Errorf("announces %v: %v", announces, changed)
			}
			closeNow(t, m)
		}
	})
}

// A failed listing at the start is told as one, never as no tools (X3); the next call tries again.
func TestListFailedAtStart(t *testing.T) {
	f := &fake{tools: oneTool("a")}
	f.serve = func(p *peer, r jsonrpc.Request) {
		if r.Method == "tools/list" && p.n == 1 {
			p.fault(r, -32603, "warming up", "")
			return
		}
		p.standard(r)
	}
	m := start(t, Options{}, map[string]*fake{"s": f})
	if st := statusOf(t, m, "s"); st.State != Failed || st.Err.Phase != PhaseList {
		t.Errorf("%+v", st)
	}
	if r, err := m.Call(t.Context(), "s", "a", nil); err != nil || r.Plain() != "{}" {
		t.Errorf("%v", err)
	}
	snap, _ := m.Prepare(t.Context(), Snapshot{})
	if toolNames(snap) != "mcp__s__a" {
		t.Errorf("%s", toolNames(snap))
	}
}

// Status never holds what was not sanitized, and hands out copies.
func TestStatusIsAValue(t *testing.T) {
	f := &fake{tools: oneTool("a") + "," + oneTool("b.c"), stderr: "a\x1b[2Jb\n"}
	m := start(t, Options{}, map[string]*fake{"s": f})
	st := statusOf(t, m, "s")
	st.Tools[0].Name, st.Omitted[0].Name = "x", "x"
	again := statusOf(t, m, "s")
	if again.Tools[0].Name != "a" || again.Omitted[0].Name != "b.c" || again.Stderr != "ab" {
		t.Errorf("%+v", again)
	}
	if again.Err != nil {
		t.Error("an error where none is")
	}
}
