package cli

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// output is stdout. Commands print without looking at each result; what could not be written is remembered here, so that no command
// claims success for an answer that nobody got.
type output struct {
	*os.File
	broken func() // called once, when the reader has gone; may be nil

	mu  sync.Mutex
	err error // the first
}

// Write writes to the file.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.File.Write(b)
	if err == nil {
		return n, nil
	}
	o.mu.Lock()
	first := o.err == nil
	if first {
		o.err = err
	}
	o.mu.Unlock()
	if first && o.broken != nil && errors.Is(err, syscall.EPIPE) {
		o.broken()
	}
	return n, err
}

// WriteString is Write, past the one of the file.
func (o *output) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

// failed is the first error of a write, nil when there was none.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
