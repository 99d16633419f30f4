package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// suffix ends the name of every session file.
const suffix = ".jsonl"

// Store is the folder of sessions ($MC_HOME/sessions).
type Store struct{ dir string }

// NewStore uses dir, which is made on the first write (0700; files 0600).
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Create starts a new session for a working folder. Nothing is written until the first Append.
func (s *Store) Create(dir string) (*Session, error) {
	var random [3]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	id := time.Now().UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random[:])
	return &Session{id: id, dir: filepath.Clean(dir), path: s.path(id)}, nil
}

// Open opens a stored session for appending and holds it: a second process gets an error that wraps ErrInUse and says
// who holds it where the system tells. A torn last line is cut off. id may be a unique prefix.
func (s *Store) Open(ctx context.Context, id string) (*Session, error) {
	full, err := s.resolve(id)
	if err != nil {
		return nil, err
	}
	open, err := openFile(ctx, full, s.path(full))
	if err != nil {
		return nil, fmt.Errorf("session %q: %w", full, err)
	}
	return open, nil
}

func openFile(ctx context.Context, id, path string) (_ *Session, err error) {
	// A FIFO or a device must not hold us up, so the kind is looked at before and, against a swap, after opening.
	if st, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if err := holdFile(ctx, f); err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if st.Size() > maxFileBytes {
		return nil, fmt.Errorf("the file has %d bytes, and at most %d can be resumed", st.Size(), int64(maxFileBytes))
	}
	c, err := parse(ctx, io.LimitReader(f, maxFileBytes))
	if err != nil {
		return nil, err
	}
	open := &Session{id: id, dir: c.header.Dir, path: path, old: c.entries, file: f, size: c.whole, count: c.count, synced: time.Now()}
	switch {
	case c.unclosed:
		open.torn = true // a whole entry: the next line only has to begin on its own
	case st.Size() > c.whole:
		open.torn = f.Truncate(c.whole) != nil
	}
	return open, nil
}

// A program that a holder was just starting when it was killed keeps the lock until it runs: for milliseconds, and longer on a
// busy machine. So a session in use is looked at again for a while.
const (
	holdPatience = 300 * time.Millisecond
	holdPoll     = 10 * time.Millisecond
)

// holdFile takes the lock of a file unless somebody holds it for long.
func holdFile(ctx context.Context, f *os.File) error {
	for until := time.Now().Add(holdPatience); ; {
		err := lockFile(f, false)
		if !errors.Is(err, ErrInUse) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(holdPoll):
		}
	}
}

// resolve turns an id or a unique prefix into an id.
func (s *Store) resolve(id string) (string, error) {
	if !validID(id) {
		return "", fmt.Errorf("session %+q: %w: an id has only letters, digits and -", id, ErrNotFound)
	}
	if _, err := os.Lstat(s.path(id)); err == nil {
		return id, nil
	}
	names, err := s.names()
	if err != nil {
		return "", err
	}
	var found []string
	for _, n := range names {
		if strings.HasPrefix(n, id) {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("session %q: %w", id, ErrNotFound)
	case 1:
		return found[0], nil
	}
	const shown = 3 // enough to see where they differ
	return "", fmt.Errorf("session %q: %d sessions begin with it, such as %s", id, len(found), strings.Join(found[:min(shown, len(found))], ", "))
}

// names returns the ids of all session files, in the order of their names.
func (s *Store) names() ([]string, error) {
	files, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	var ids []string
	for _, f := range files {
		if id, ok := strings.CutSuffix(f.Name(), suffix); ok && f.Type().IsRegular() && validID(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, id+suffix) }

// validID reports whether an id can be part of a file name without leading anywhere else.
func validID(id string) bool {
	const maxID = 128 // far more than we make
	if id == "" || len(id) > maxID {
		return false
	}
	for _, r := range id {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-') {
			return false
		}
	}
	return true
}
