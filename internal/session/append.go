package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"magi-code/internal/provider"
	"magi-code/internal/untrusted"
)

// titleBytes bounds the title kept in the header and shown in lists.
const titleBytes = 120

// Session is one open history. Its methods may be called concurrently.
type Session struct {
	id   string
	dir  string // the working folder
	path string
	old  []Entry // what the file held when it was opened

	mu     sync.Mutex
	file   *os.File // nil until the first Append of a new session
	size   int64    // bytes known to be whole lines
	count  int      // messages written
	torn   bool     // the file may end in half a line that could not be cut off
	synced time.Time
	closed bool
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Dir returns the working folder that the session belongs to.
func (s *Session) Dir() string { return s.dir }

// Entries returns what the file held when it was opened, the header first. A Note stands for lines that could not be read.
func (s *Session) Entries() []Entry { return append([]Entry(nil), s.old...) }

// Append writes one entry as one line and returns after the write; Time is set when zero. An entry that is larger
// than 16 MiB is stored cut. After a failed write nothing of the entry is in the file, and the next Append may succeed.
func (s *Session) Append(e Entry) error {
	if e.Kind == "" || e.Kind == Header {
		return fmt.Errorf("session: an entry of kind %q cannot be appended", e.Kind)
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("session: closed")
	}
	count := s.count
	if e.Kind == Message {
		count++
	}
	text, err := encode(count, e)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	if s.file == nil {
		err = s.create(e, text)
	} else {
		err = s.write(text)
	}
	if err != nil {
		return &WriteError{Dir: filepath.Dir(s.path), Err: err}
	}
	s.count = count
	if e.Kind == Message && time.Since(s.synced) >= syncEvery {
		s.synced = time.Now()
		if err := s.file.Sync(); err != nil {
			return &WriteError{Dir: filepath.Dir(s.path), Err: err}
		}
	}
	return nil
}

// WriteError says that a history could not be written, because its folder cannot be used or the disk is full.
type WriteError struct {
	Dir string // the folder of sessions
	Err error
}

// Error is the system's own words.
func (e *WriteError) Error() string { return "session: " + e.Err.Error() }

// Unwrap returns the error of the system.
func (e *WriteError) Unwrap() error { return e.Err }

// create makes the file with its header and the first entry. Another process can find the file only while it is empty
// (then it lets go of it at once) or when it is locked.
func (s *Session) create(first Entry, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	drop := func(err error) error {
		_ = f.Close()
		_ = os.Remove(s.path)
		return err
	}
	if err := lockFile(f, true); err != nil {
		return drop(err)
	}
	head, err := encode(0, Entry{Kind: Header, Time: first.Time, Version: formatVersion, ID: s.id, Dir: s.dir, Text: title(first)})
	if err != nil {
		return drop(err)
	}
	n, err := f.Write(append(head, text...))
	if err != nil {
		return drop(err)
	}
	s.file, s.size, s.synced = f, int64(n), time.Now()
	return nil
}

// write appends one line. What a failed write left behind is cut off again, or closed by a line break before the next.
func (s *Session) write(text []byte) error {
	if s.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := s.file.Write(text)
	if err == nil {
		s.torn = false
		s.size += int64(n)
		return nil
	}
	if n > 0 {
		s.torn = s.file.Truncate(s.size) != nil
	}
	return err
}

// Close releases the file. It may be called more than once.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.file == nil {
		return nil
	}
	if err := s.file.Close(); err != nil { // the lock goes with the descriptor
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// title is the head of a prompt, safe to show; "" for every other entry.
func title(e Entry) string {
	if e.Kind != Message || e.Message == nil || e.Message.Role != provider.User {
		return ""
	}
	for _, b := range e.Message.Blocks {
		// A prompt may be a whole pasted file: only its head is looked at.
		head := b.Text[:min(len(b.Text), 16*titleBytes)]
		if text := strings.Join(strings.Fields(untrusted.Line(head)), " "); b.Kind == provider.Text && text != "" {
			return untrusted.Head(text, titleBytes)
		}
	}
	return ""
}
