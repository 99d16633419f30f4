package mcp

import (
	"slices"
	"time"
)

// State is where a server stands. Its zero value is NotStarted.
type State int

const (
	NotStarted State = iota
	Starting         // Phase says how far
	Ready
	Failed // Err says why; the next call tries again
	Closed
)

// String returns "not started", "starting", "ready", "failed" or "closed".
func (s State) String() string {
	switch s {
	case NotStarted:
		return "not started"
	case Starting:
		return "starting"
	case Ready:
		return "ready"
	case Failed:
		return "failed"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// OmittedTool is a tool left out of the catalogue, and why. Hidden characters of its name are shown as escapes.
type OmittedTool struct{ Name, Reason string }

// ToolInfo is a tool as its server describes it, bounded and scrubbed but not sanitized, so that a display can show hidden
// characters to the person who decides; whoever prints it sanitizes it.
type ToolInfo struct{ Name, Title, Description string }

// Status is what is known of one server now. It is a value. Its texts are sanitized, scrubbed and bounded; ToolInfo says
// what holds for it.
type Status struct {
	Name           string
	Type           string // stdio or http
	State          State
	Phase          Phase // while Starting
	Since          time.Time
	Took           time.Duration // start to ready
	ServerName     string        // serverInfo
	ServerVersion  string
	Protocol       string
	Instructions   string
	Tools          []ToolInfo
	Omitted        []OmittedTool
	Stale          bool // the last refresh failed; Tools are those before it
	Skipped        int  // stdout lines that were no messages
	SkippedSample  string
	DroppedReplies int // answers to the server's own requests that went over the limit
	Unannounced    int // list_changed notifications, ignored because the server does not advertise them
	Timeout        time.Duration
	Err            *Error
	Stderr         string // tail
}

// status returns the server's status now.
func (s *server) status() Status {
	s.mu.Lock()
	st := s.st
	c, list := s.conn, s.listing
	if c == nil {
		c = s.last
	}
	s.mu.Unlock()
	if list != nil {
		st.Tools = slices.Clone(list.infos)
		st.Omitted = slices.Clone(list.omitted)
	}
	st.DroppedReplies = s.replies.droppedSoFar()
	st.Unannounced = int(s.unannounced.Load())
	if c != nil {
		n, sample := c.link.skipped()
		st.Skipped = n
		st.SkippedSample = s.line(sample, maxSample)
		st.DroppedReplies += c.link.dropped()
		if st.Err != nil && st.Err.Stderr != "" {
			st.Stderr = st.Err.Stderr
		} else {
			st.Stderr = s.stderrTail(c)
		}
	}
	return st
}

// change applies f to the status and tells OnStatus. Changes of one server are told in order.
func (s *server) change(f func(*Status)) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	f(&s.st)
	s.mu.Unlock()
	if s.o.OnStatus != nil {
		s.o.OnStatus(s.status())
	}
}
