package mcp

import (
	"context"
	"slices"
	"sync"

	"magi-code/internal/tool"
)

// Change tells how a refresh changed a server's tools: advertised names.
type Change struct {
	Server                  string
	Added, Removed, Changed []string
}

// Prepare is called once before a user turn: it repeats tools/list for servers that announced a change, or whose last
// refresh failed and has its one retry left, each within its own timeouts, and returns the catalogue and what is
// different from prev, the caller's previous snapshot. Nothing differs from the zero Snapshot. Conversations that share the
// manager share refreshes too, and each hears of all changes.
func (m *Manager) Prepare(ctx context.Context, prev Snapshot) (Snapshot, []Change) {
	var wg sync.WaitGroup
	for _, s := range m.servers {
		if s.needsRefresh() {
			wg.Go(func() { s.refresh(ctx) })
		}
	}
	wg.Wait()
	now := m.snapshot()
	return now, changes(m.servers, prev, now)
}

// needsRefresh reports whether a turn must wait for this server: because its listing is due, or being renewed.
func (s *server) needsRefresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing != nil && !s.closing && (s.due || s.retry || s.renewing != nil)
}

// refresh renews the listing, together with whoever else wants that now.
func (s *server) refresh(ctx context.Context) {
	s.mu.Lock()
	if s.closing || !(s.due || s.retry || s.renewing != nil) {
		s.mu.Unlock()
		return
	}
	work := s.join(&s.renewing, s.renew)
	s.mu.Unlock()
	_ = work.wait(ctx) // what became of it is in the status
}

// renew repeats tools/list. A failure keeps the old listing, marks it stale, and leaves one retry for the next turn unless this
// was it (R-L2). A refresh that its callers gave up is no failure of the server: it stays due.
func (s *server) renew(ctx context.Context) error {
	s.mu.Lock()
	due, retry := s.due, s.retry
	s.due, s.retry = false, false
	old := s.listing
	s.mu.Unlock()
	if !due && !retry {
		return nil // another turn's refresh did it
	}
	list, err := s.relist(ctx)
	if err != nil {
		s.change(func(st *Status) {
			if ctx.Err() != nil {
				s.due = s.due || due
				s.retry = s.retry || retry
				return
			}
			st.Stale = true
			s.retry = due
			if st.State == Ready || st.Err == nil {
				st.Err = s.explain(inPhase(PhaseList, err), nil)
			}
		})
		return err
	}
	if old != nil && list.digest == old.digest { // R-L4: what is advertised keeps its identity
		list.set = old.set
		if slices.Equal(list.infos, old.infos) && slices.Equal(list.omitted, old.omitted) {
			list = old
		}
	}
	s.change(func(st *Status) {
		s.listing = list
		st.Stale = false
		if st.State == Ready {
			st.Err = nil
		}
	})
	return nil
}

// relist lists once more, on a new connection if need be.
func (s *server) relist(ctx context.Context) (*listing, error) {
	for again := true; ; again = false {
		c, err := s.connected(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.due = false // of a connection that was opened just now, and of anything said before the request
		s.mu.Unlock()
		raw, extra, err := c.listTools(ctx)
		if err == nil {
			return s.catalogue(raw, extra)
		}
		if c.dead() {
			s.lost(c, c.whyDead())
		}
		if !again || ctx.Err() != nil || !repeatable(err) {
			return nil, err
		}
	}
}

// changes compares the tools of each server in two snapshots of one manager.
func changes(servers []*server, prev, now Snapshot) []Change {
	if len(prev.parts) != len(now.parts) {
		return nil // the caller's first
	}
	var out []Change
	for i, s := range servers {
		before, after := prev.parts[i], now.parts[i]
		if before.digest == after.digest {
			continue
		}
		if c := difference(before.set.All(), after.set.All()); len(c.Added)+len(c.Removed)+len(c.Changed) > 0 {
			c.Server = s.name
			out = append(out, c)
		}
	}
	return out
}

// difference merges two ordered lists of tools.
func difference(before, after []tool.Tool) (c Change) {
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Name < after[0].Name:
			c.Removed = append(c.Removed, before[0].Name)
			before = before[1:]
		case len(before) == 0 || after[0].Name < before[0].Name:
			c.Added = append(c.Added, after[0].Name)
			after = after[1:]
		default:
			if before[0].Description != after[0].Description || string(before[0].Schema) != string(after[0].Schema) {
				c.Changed = append(c.Changed, after[0].Name)
			}
			before, after = before[1:], after[1:]
		}
	}
	return c
}
