package agent

import (
	"sync"
	"sync/atomic"
	"time"

	"magi-code/internal/provider"
	"magi-code/internal/session"
)

// stream is the one way out of a turn: its events, its session entries and its usage, for the main run and its
// children alike. Emit is called under a lock, so that the consumer sees one order. After end, nothing comes out
// any more: a tool that outlived its turn cannot speak into the next one.
type stream struct {
	to      func(Event)
	session *session.Session

	mu    sync.Mutex // held while Emit runs, which may block
	ended atomic.Bool

	usageMu sync.Mutex
	usage   provider.Usage
}

// emit sends one event unless the turn has ended.
func (s *stream) emit(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Load() {
		return
	}
	s.send(e)
}

// end sends the last event; what comes later is dropped.
func (s *stream) end(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Swap(true) {
		return
	}
	s.send(e)
}

func (s *stream) send(e Event) {
	if s.to == nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	s.to(e)
}

// record writes one entry to the session, if there is one, and returns when it is written. Entries of a turn that has
// ended are dropped: its history was completed without them.
func (s *stream) record(e session.Entry) error {
	if s.session == nil || s.ended.Load() {
		return nil
	}
	return s.session.Append(e)
}

// spend adds to the usage of the turn.
func (s *stream) spend(u provider.Usage) {
	s.usageMu.Lock()
	defer s.usageMu.Unlock()
	s.usage = s.usage.Add(u)
}

func (s *stream) spent() provider.Usage {
	s.usageMu.Lock()
	defer s.usageMu.Unlock()
	return s.usage
}

// recordUsage writes the usage of one answer to the session.
func (s *stream) recordUsage(u provider.Usage, model string) error {
	return s.record(session.Entry{Kind: session.Usage, Usage: &u, Model: model})
}
