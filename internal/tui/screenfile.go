package tui

import (
	"os"
	"sync"
	"time"
)

const (
	frameBytes = 256                    // a write of more than that is a frame, not a query to the terminal
	frameWait  = 100 * time.Millisecond // a terminal that shows nothing by then delays the servers no longer
)

// screenFile is the terminal's output, telling when the first frame is on it. Servers start behind that: ten
// processes that start at once would take the processor from the first frame.
type screenFile struct {
	*os.File
	once  sync.Once
	drawn chan struct{}
}

func newScreenFile(f *os.File) *screenFile { return &screenFile{File: f, drawn: make(chan struct{})} }

// Write writes to the terminal.
func (s *screenFile) Write(b []byte) (int, error) {
	n, err := s.File.Write(b)
	if len(b) > frameBytes {
		s.once.Do(func() { close(s.drawn) })
	}
	return n, err
}
