package mcp

import (
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/jsonrpc"
)

const (
	// maxReplies is how many of its own requests a server gets answered in any replyWindow.
	maxReplies  = 32
	replyWindow = time.Second
)

// limiter lets maxReplies pass in any window of replyWindow, wherever the window begins. It outlives connections, so
// that reconnecting buys a server nothing.
type limiter struct {
	mu      sync.Mutex
	passed  [maxReplies]time.Time // a ring of the last ones
	next    int                   // the oldest
	dropped int
}

// pass reports whether a reply may go out now, and counts it either way.
func (l *limiter) pass(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if oldest := l.passed[l.next]; !oldest.IsZero() && now.Sub(oldest) < replyWindow {
		l.dropped++
		return false
	}
	l.passed[l.next] = now
	l.next = (l.next + 1) % maxReplies
	return true
}

// droppedSoFar is how many replies did not pass.
func (l *limiter) droppedSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// hear is the handler of one connection: what the server sends by itself. It never blocks.
func (s *server) hear(c *client, r jsonrpc.Request) *jsonrpc.Response {
	if len(r.ID) == 0 {
		if r.Method == "notifications/tools/list_changed" {
			s.listChanged(c)
		}
		return nil // every other notification is allowed and of no use to us
	}
	if !jsonrpc.UsableID(r.ID) || !s.replies.pass(time.Now()) {
		return nil
	}
	if r.Method == "ping" {
		return &jsonrpc.Response{ID: r.ID, Result: jsontext.Value("{}")}
	}
	return &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"}}
}

// listChanged notes that the listing is due. Any number of notifications before the next turn make one refresh. A server
// that does not advertise listChanged and still sends it (X2) is not followed: the specification gives its
// snapshot the whole run; the count shows it.
func (s *server) listChanged(c *client) {
	switch {
	case c.over.Load(), !c.greeted.Load(): // W4: before the handshake is done there is no listing to change
		return
	case !c.listChanged.Load():
		s.unannounced.Add(1)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = true
}
