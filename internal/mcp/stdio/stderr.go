package stdio

import (
	"io"
	"sync"
)

// tailSize is how much of a child's stderr is kept, in bytes: enough for a stack trace of any runtime.
const tailSize = 64 << 10

// stderrBuffer is what one read of stderr takes at most, in bytes.
const stderrBuffer = 8 << 10

// tail is a writer that keeps the last tailSize bytes. Its memory grows with what is written, up to that.
type tail struct {
	mu  sync.Mutex
	buf []byte // a ring once it is full
	at  int    // where the next byte goes, and the oldest one is
}

// Write keeps the end of b; it never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if n > tailSize {
		b = b[n-tailSize:]
	}
	if room := tailSize - len(t.buf); room > 0 {
		k := min(room, len(b))
		t.buf = append(t.buf, b[:k]...)
		b = b[k:]
	}
	for len(b) > 0 {
		k := copy(t.buf[t.at:], b)
		t.at = (t.at + k) % tailSize
		b = b[k:]
	}
	return n, nil
}

// String returns what is kept, oldest first.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[t.at:]) + string(t.buf[:t.at])
}

// onlyReader hides other methods from io.CopyBuffer, which would use a larger buffer of its own.
type onlyReader struct{ io.Reader }
