// Package sse reads server-sent events, as remote MCP servers and the services of models send them, in bounded memory.
package sse

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"time"
)

const (
	// MaxEvent is how many bytes the data of one event, and one line, may have: the frame bound of stdio.
	MaxEvent = 16 << 20
	// BufferBytes is how many bytes are read at once.
	BufferBytes = 32 << 10

	maxEventID = 4 << 10        // bytes; an id goes back in a header
	maxRetry   = 24 * time.Hour // a larger retry value is nonsense
)

// ErrTooLarge means that an event is larger than MaxEvent.
var ErrTooLarge = errors.New("an event of the stream is larger than 16 MiB")

// Event is one server-sent event that carries data.
type Event struct {
	ID   string // the last event id in force
	Name string // empty, or "message", when the stream names none
	Data []byte // valid until the next call of Next
	Tail bool   // the stream ended without the blank line that ends an event
}

// Reader reads server-sent events as WHATWG defines them, from any chunking of the bytes: LF, CRLF and CR end lines, one
// BOM is skipped, comments and unknown fields are dropped without being kept.
// It is for one goroutine. (https://html.spec.whatwg.org/multipage/server-sent-events.html)
type Reader struct {
	src      io.Reader
	limit    int
	buf      []byte // buf[r:w] is unread
	r, w     int
	err      error  // of src, reported when the buffer is used up
	line     []byte // the part of a line that earlier buffers held
	started  bool   // the first line is over, so that no BOM follows
	afterCR  bool   // a LF that comes now belongs to the CR before it
	dropping bool   // in a comment or an unknown field: nothing of the line is kept

	data      []byte
	hasData   bool
	name      string
	pendingID string // id field seen; it counts from the end of its event

	lastID string        // the last event id
	retry  time.Duration // the last retry field; negative: none
}

// NewReader reads src through buf, which must not be empty; nil means one of BufferBytes. After lastID an earlier stream
// broke off; it stands until the server sends another.
func NewReader(src io.Reader, buf []byte, lastID string) *Reader {
	if buf == nil {
		buf = make([]byte, BufferBytes)
	}
	return &Reader{src: src, limit: MaxEvent, buf: buf, retry: -1, lastID: lastID, pendingID: lastID}
}

// LastID is the id of the last event that ended, for the Last-Event-ID header.
func (s *Reader) LastID() string { return s.lastID }

// Retry is how long the server wants a client to wait before it connects again; negative when it did not say.
func (s *Reader) Retry() time.Duration { return s.retry }

// Next returns the next event. At the end of the stream an event that was not finished is returned with Tail set: it is
// up to the caller whether that is a complete message.
func (s *Reader) Next() (Event, error) {
	s.data, s.hasData, s.name = s.data[:0], false, ""
	if cap(s.data) > 1<<20 {
		s.data = nil // one giant event must not hold its memory for the life of the stream
	}
	for {
		line, ok, err := s.readLine()
		if err != nil {
			return s.atEnd(line, err)
		}
		if !ok {
			continue // a dropped line
		}
		if len(line) == 0 {
			s.lastID = s.pendingID
			if s.hasData {
				return Event{ID: s.lastID, Name: s.name, Data: s.data[:len(s.data)-1]}, nil
			}
			s.name = ""
			continue
		}
		if err := s.field(line); err != nil {
			return Event{}, err
		}
	}
}

// Ended reports whether nothing more will come, as far as that is known without waiting.
func (s *Reader) Ended() bool { return s.r == s.w && s.err != nil }

// atEnd gives out what an unfinished event holds, once.
func (s *Reader) atEnd(line []byte, err error) (Event, error) {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Event{}, err
	}
	if len(line) > 0 {
		if err := s.field(line); err != nil {
			return Event{}, err
		}
	}
	if !s.hasData {
		return Event{}, err
	}
	s.line = nil
	return Event{ID: s.lastID, Name: s.name, Data: s.data[:len(s.data)-1], Tail: true}, nil
}

// field takes one line that is not blank.
func (s *Reader) field(line []byte) error {
	name, value, found := bytes.Cut(line, []byte{':'})
	if found && len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if len(s.data)+len(value) > s.limit {
			return ErrTooLarge
		}
		s.data = append(append(s.data, value...), '\n')
		s.hasData = true
	case "event":
		if s.name = "message"; string(value) != s.name { // nearly always equal, and then nothing is allocated
			s.name = string(value)
		}
	case "id":
		if bytes.IndexByte(value, 0) < 0 && len(value) <= maxEventID && string(value) != s.pendingID {
			s.pendingID = string(value)
		}
	case "retry":
		s.setRetry(value)
	}
	return nil
}

func (s *Reader) setRetry(digits []byte) {
	var ms int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return
		}
		ms = min(ms*10+int64(c-'0'), math.MaxInt64/20)
	}
	if len(digits) > 0 {
		s.retry = time.Duration(min(ms, maxRetry.Milliseconds())) * time.Millisecond
	}
}

// readLine returns a line without its end, valid until the next call; ok is false for a line that was dropped. With an
// error it returns the rest that no line end follows.
func (s *Reader) readLine() (line []byte, ok bool, err error) {
	s.line = s.line[:0]
	for {
		if s.r == s.w {
			if err := s.fill(); err != nil {
				rest := s.line
				if s.dropping {
					rest = nil
				}
				return s.withoutBOM(rest), false, err
			}
		}
		if s.afterCR {
			s.afterCR = false
			if s.buf[s.r] == '\n' {
				s.r++
				continue
			}
		}
		chunk := s.buf[s.r:s.w]
		end := lineEnd(chunk)
		if end < 0 {
			s.r = s.w
			if err := s.keep(chunk); err != nil {
				return nil, false, err
			}
			continue
		}
		s.r += end + 1
		s.afterCR = chunk[end] == '\r'
		if s.dropping {
			s.dropping = false
			s.started = true
			return nil, false, nil
		}
		line = chunk[:end]
		if len(s.line) > 0 {
			if err := s.keep(line); err != nil {
				return nil, false, err
			}
			line = s.line
		}
		line = s.withoutBOM(line)
		s.started = true
		if s.dropping { // the last piece told that the line is a comment
			s.dropping = false
			return nil, false, nil
		}
		return line, true, nil
	}
}

// keep appends a piece of a line that goes on, or starts to drop it when it can be no field that counts.
func (s *Reader) keep(piece []byte) error {
	if s.dropping {
		return nil
	}
	if len(s.line) == 0 && !worthKeeping(s.withoutBOM(piece)) {
		s.dropping = true
		return nil
	}
	if len(s.line)+len(piece) > s.limit+len("data: ")+len(bom) {
		return ErrTooLarge
	}
	s.line = append(s.line, piece...)
	if !worthKeeping(s.withoutBOM(s.line)) {
		s.dropping, s.line = true, s.line[:0]
	}
	return nil
}

const bom = "\xef\xbb\xbf"

func (s *Reader) withoutBOM(line []byte) []byte {
	if s.started {
		return line
	}
	return bytes.TrimPrefix(line, []byte(bom))
}

// worthKeeping reports whether a line that starts so may become a field of ours.
func worthKeeping(start []byte) bool {
	name, _, found := bytes.Cut(start[:min(len(start), 8)], []byte{':'})
	for _, f := range []string{"data", "event", "id", "retry", bom} {
		if found && string(name) == f || !found && strings.HasPrefix(f, string(name)) {
			return true
		}
	}
	return false
}

// lineEnd is the index of the first LF or CR, or -1.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// maxEmptyReads is how often a source may return nothing without an error.
const maxEmptyReads = 100

func (s *Reader) fill() error {
	if s.err != nil {
		return s.err
	}
	s.r, s.w = 0, 0
	for range maxEmptyReads {
		n, err := s.src.Read(s.buf)
		s.w, s.err = n, err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
