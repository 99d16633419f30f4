package mcp

import (
	"context"
	"sync"
)

// shared is work that several callers wait for. It runs once, and its context ends with the manager, or when the last
// caller has left: one caller's cancellation is not another's failure.
type shared struct {
	done   chan struct{}
	err    error // read after done
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	waiting int
}

// join takes part in the work in slot, starting it when there is none. s.mu is held; wait must follow.
func (s *server) join(slot **shared, work func(context.Context) error) *shared {
	if w := *slot; w != nil && w.enter() {
		return w
	}
	before := *slot // abandoned by its callers, perhaps not yet ended
	ctx, cancel := context.WithCancelCause(s.life)
	w := &shared{done: make(chan struct{}), cancel: cancel, waiting: 1}
	*slot = w
	s.wg.Go(func() {
		defer cancel(nil)
		if before != nil {
			<-before.done
		}
		w.err = work(ctx)
		s.mu.Lock()
		if *slot == w {
			*slot = nil
		}
		s.mu.Unlock()
		close(w.done)
	})
	return w
}

// enter counts one more caller; false when the last one has left already.
func (w *shared) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == 0 {
		return false
	}
	w.waiting++
	return true
}

// wait waits for the work, or for the caller's end.
func (w *shared) wait(ctx context.Context) error {
	select {
	case <-w.done:
	case <-ctx.Done():
		w.mu.Lock()
		w.waiting--
		last := w.waiting == 0
		w.mu.Unlock()
		if last {
			w.cancel(context.Cause(ctx))
		}
		return aborted(ctx)
	}
	w.mu.Lock()
	w.waiting--
	w.mu.Unlock()
	return w.err
}
