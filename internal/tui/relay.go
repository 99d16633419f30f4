package tui

import (
	"context"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
)

const (
	frame         = 16 * time.Millisecond // events that come faster are shown together
	maxPending    = 1024                  // messages that wait for the screen before their senders do
	maxPendingLen = 1 << 20               // bytes of streamed text that wait
)

// batchMsg is everything that happened since the last one, in order.
type batchMsg []tea.Msg

// relay carries events to the program in order, many in one message. A slow screen slows the senders down; a
// screen that is gone takes everything and keeps nothing.
type relay struct {
	mu     sync.Mutex
	cond   *sync.Cond
	queue  []tea.Msg
	text   int // bytes of deltas in queue
	status map[string]mcp.Status
	closed bool
	ids    int
	done   chan struct{}
}

func newRelay() *relay {
	r := &relay{status: map[string]mcp.Status{}, done: make(chan struct{})}
	r.cond = sync.NewCond(&r.mu)
	return r
}

// push adds a message, waiting while too many wait already.
func (r *relay) push(msg tea.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && (len(r.queue) >= maxPending || r.text >= maxPendingLen) {
		r.cond.Wait()
	}
	if r.closed {
		return
	}
	if e, ok := msg.(eventMsg); ok && isDelta(e.Kind) {
		r.text += len(e.Text)
		if r.merge(e) {
			return
		}
	}
	r.queue = append(r.queue, msg)
	r.cond.Broadcast()
}

func isDelta(k agent.EventKind) bool { return k == agent.EventText || k == agent.EventThinking }

// merge joins a delta with the one before it.
func (r *relay) merge(e eventMsg) bool {
	if len(r.queue) == 0 {
		return false
	}
	last, ok := r.queue[len(r.queue)-1].(eventMsg)
	if !ok || last.Kind != e.Kind || last.gen != e.gen || !slices.Equal(last.Path, e.Path) || len(last.Text) > 4<<10 {
		return false
	}
	last.Text += e.Text
	r.queue[len(r.queue)-1] = last
	return true
}

// setStatus keeps the newest status of a server; it never blocks.
func (r *relay) setStatus(s mcp.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.status[s.Name] = s
		r.cond.Broadcast()
	}
}

func (r *relay) take() (batchMsg, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && len(r.queue) == 0 && len(r.status) == 0 {
		r.cond.Wait()
	}
	if r.closed {
		return nil, false
	}
	var batch batchMsg
	for _, s := range r.status {
		batch = append(batch, statusMsg(s))
	}
	clear(r.status)
	batch = append(batch, r.queue...)
	r.queue, r.text = nil, 0
	r.cond.Broadcast()
	return batch, true
}

// run sends batches until close, at most one a frame.
func (r *relay) run(ctx context.Context, send func(tea.Msg)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		batch, ok := r.take()
		if !ok {
			return
		}
		send(batch)
		timer.Reset(frame)
		select {
		case <-timer.C:
		case <-r.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (r *relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.done)
		r.cond.Broadcast()
	}
}

// nextID gives every question a number of its own.
func (r *relay) nextID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	return r.ids
}
