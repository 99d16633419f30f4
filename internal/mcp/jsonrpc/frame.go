package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineBuffer is what one read takes at most, in bytes: a pipe's own capacity. Longer lines are gathered beside it.
const lineBuffer = 64 << 10

// byteOrderMark is what some runtimes write before their first line.
const byteOrderMark = "\ufeff"

// frames cuts a stream into lines that may hold a message. Everything else is noise: it is reported and never kept,
// however long it is. What stands before a message on the same line makes it noise as well: most such lines are logs
// that quote messages, even our own.
type frames struct {
	r     *bufio.Reader
	limit int               // of one line, noise too
	noise func(head []byte) // hears of every line that is none, blank ones left out
	cut   bool              // the last line ended with the stream, not with a newline
}

func newFrames(r io.Reader, limit int, noise func([]byte)) *frames {
	return &frames{r: bufio.NewReaderSize(r, lineBuffer), limit: limit, noise: noise}
}

// next returns the next line that opens like JSON, without white space around it. The bytes are the caller's own if
// owned, else valid until the next call only. The last line counts even without its newline.
func (f *frames) next() (line []byte, owned bool, err error) {
	for {
		chunk, err := f.r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			line, err = f.long(chunk)
			owned = true
		case err != nil && len(chunk) == 0:
			return nil, false, err
		default: // complete, or the rest before the end, which the next read will tell
			f.cut = err != nil
			line, owned, err = trim(chunk), false, nil
			if len(line) > 0 && !opens(line) {
				f.noise(line)
				line = nil
			}
		}
		if err != nil || len(line) > 0 {
			return line, owned, err
		}
	}
}

// long reads on from head, the start of a line that does not fit into the buffer.
func (f *frames) long(head []byte) ([]byte, error) {
	keep := opens(trim(head))
	size := len(head)
	var line []byte
	if keep {
		line = append(make([]byte, 0, 4*lineBuffer), head...)
	} else {
		f.noise(head)
	}
	for {
		chunk, err := f.r.ReadSlice('\n')
		size += len(chunk)
		if size > f.limit+len("\r\n") {
			return nil, &TooLargeError{Limit: f.limit}
		}
		if keep {
			line = grow(line, len(chunk), f.limit)
			line = append(line, chunk...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) { // complete, or the rest before the end
			f.cut = err != nil
			return trim(line), nil
		}
	}
}

// grow makes room for n more bytes by doubling: the runtime's own steps are smaller for long slices and would copy a
// frame of 16 MiB a score of times.
func grow(b []byte, n, limit int) []byte {
	if len(b)+n <= cap(b) {
		return b
	}
	return append(make([]byte, 0, max(min(2*cap(b), limit+lineBuffer), len(b)+n)), b...)
}

// trim removes a byte order mark and white space.
func trim(b []byte) []byte {
	return bytes.Trim(bytes.TrimPrefix(b, []byte(byteOrderMark)), space)
}

// opens reports whether a trimmed line starts an object or an array.
func opens(b []byte) bool { return len(b) > 0 && (b[0] == '{' || b[0] == '[') }
