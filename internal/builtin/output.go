package builtin

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// ends is a writer that keeps the beginning and the end of what it gets, so that endless output takes the same memory
// as a little. It may be read while it is written to.
type ends struct {
	half int // bytes kept of each end

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	at    int    // where the ring's next byte goes
	total int64
}

// newEnds keeps at most limit bytes.
func newEnds(limit int) *ends { return &ends{half: limit / 2} }

// Write takes everything.
func (e *ends) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(p)
	e.total += int64(n)
	take := min(len(p), e.half-len(e.head))
	e.head = append(e.head, p[:take]...)
	p = p[take:]
	if len(p) > e.half {
		p = p[len(p)-e.half:]
		e.tail, e.at = e.tail[:0], 0
	}
	grow := min(len(p), e.half-len(e.tail))
	e.tail = append(e.tail, p[:grow]...)
	for p = p[grow:]; len(p) > 0; {
		c := copy(e.tail[e.at:], p)
		e.at = (e.at + c) % e.half
		p = p[c:]
	}
	return n, nil
}

// String returns what was kept as valid UTF-8, with what is missing stated between the ends.
func (e *ends) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	tail := append(append(make([]byte, 0, len(e.tail)), e.tail[e.at:]...), e.tail[:e.at]...)
	missing := e.total - int64(len(e.head)) - int64(len(tail))
	if missing == 0 {
		return strings.ToValidUTF8(string(e.head)+string(tail), "\ufffd")
	}
	head := e.head
	// Whole lines are easier to understand, unless there is only one.
	if i := bytes.LastIndexByte(head, '\n'); i > len(head)/2 {
		missing += int64(len(head) - i - 1)
		head = head[:i+1]
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		missing += int64(i + 1)
		tail = tail[i+1:]
	}
	text := fmt.Sprintf("%s\n... %d bytes of output omitted ...\n%s", bytes.TrimSuffix(head, []byte("\n")), missing, tail)
	return strings.ToValidUTF8(text, "\ufffd")
}
