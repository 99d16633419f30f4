package session

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"magi-code/internal/untrusted"
)

const (
	headBytes = 64 << 10 // of a file that are read for its header and first prompt
	tailBytes = 64 << 10 // of a file that are read for its last line, when
	tailFirst = 4 << 10  // these are not enough
)

// errEnough ends a walk over lines early.
var errEnough = errors.New("enough")

// Latest returns the id of the newest session of a working folder; "" when there is none. The newest is the one that was
// written to last.
func (s *Store) Latest(dir string) (string, error) {
	infos, err := s.list(dir, 1)
	if err != nil || len(infos) == 0 {
		return "", err
	}
	return infos[0].ID, nil
}

// List returns stored sessions, the one written to last first; dir "" means of every folder. Unreadable files and sessions
// without a message are left out. Only head and tail of a file are read, and at most 5,000 files.
func (s *Store) List(dir string) ([]Info, error) { return s.list(dir, maxScanned) }

func (s *Store) list(dir string, limit int) ([]Info, error) {
	ids, err := s.names()
	if err != nil {
		return nil, err
	}
	type dated struct {
		id  string
		mod time.Time
	}
	files := make([]dated, 0, len(ids))
	for _, id := range ids {
		if st, err := os.Lstat(s.path(id)); err == nil && st.Mode().IsRegular() {
			files = append(files, dated{id, st.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b dated) int {
		if c := b.mod.Compare(a.mod); c != 0 {
			return c
		}
		return strings.Compare(b.id, a.id)
	})
	if dir != "" {
		dir = filepath.Clean(dir)
	}
	var infos []Info
	for _, f := range files[:min(len(files), maxScanned)] {
		if len(infos) == limit {
			break
		}
		if info, ok := describe(s.path(f.id), dir); ok {
			info.ID, info.Modified = f.id, f.mod
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// describe reads what a list shows of one file; false when it is of another folder, holds no message or cannot be read.
func describe(path, dir string) (Info, bool) {
	f, err := os.Open(path)
	if err != nil {
		return Info{}, false
	}
	defer func() { _ = f.Close() }()
	var info Info
	number := 0
	_ = eachLine(io.LimitReader(f, headBytes), headChunk, func(text []byte, _ int64, complete bool) error {
		number++
		e, ok := readEntry(text)
		if number == 1 {
			if checkHeader(e, ok) != nil || dir != "" && e.Dir != dir {
				return errEnough
			}
			info = Info{Dir: e.Dir, Created: e.Time, Title: untrusted.Head(untrusted.Line(e.Text), titleBytes)}
		} else {
			info.Title = title(e)
		}
		if info.Title != "" {
			return errEnough
		}
		return nil
	})
	if info.Created.IsZero() {
		return Info{}, false
	}
	info.Messages = countMessages(f)
	return info, info.Messages > 0
}

// countMessages takes the count from the last whole line, and from a walk over the file only when that line is very long.
func countMessages(f *os.File) int {
	st, err := f.Stat()
	if err != nil {
		return 0
	}
	for _, size := range []int64{tailFirst, tailBytes} {
		from := max(0, st.Size()-size)
		tail := make([]byte, st.Size()-from)
		n, err := f.ReadAt(tail, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0
		}
		tail = tail[:n]
		if from > 0 {
			_, tail, _ = bytes.Cut(tail, []byte("\n")) // the first may be half a line
		}
		if count, ok := lastCount(tail); ok {
			return count
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0
	}
	last := 0
	_ = eachLine(io.LimitReader(f, maxFileBytes), wholeChunk, func(text []byte, _ int64, _ bool) error {
		if count, ok := lineCount(text); ok {
			last = count
		}
		return nil
	})
	return last
}

func lastCount(tail []byte) (int, bool) {
	for len(tail) > 0 {
		at := bytes.LastIndexByte(tail[:len(tail)-1], '\n') + 1
		if count, ok := lineCount(bytes.TrimSuffix(tail[at:], []byte("\n"))); ok {
			return count, true
		}
		tail = tail[:at]
	}
	return 0, false
}

// lineCount reads the count at the head of a whole line without decoding the rest.
func lineCount(text []byte) (int, bool) {
	rest, ok := bytes.CutPrefix(text, []byte(`{"n":`))
	digits, _, comma := bytes.Cut(rest, []byte(","))
	if !ok || !comma || !bytes.HasSuffix(text, []byte("}")) {
		return 0, false
	}
	count, err := strconv.Atoi(string(digits))
	return count, err == nil && count >= 0
}
