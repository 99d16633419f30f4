package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// contents is what a session file holds.
type contents struct {
	header   Entry
	entries  []Entry // header first, notes in the place of unreadable lines
	count    int     // messages
	whole    int64   // bytes up to the end of the last line that is to stay
	unclosed bool    // the last line that is to stay lacks its line break
}

// parse reads the lines of a session. It fails when the first line is no header that we understand.
func parse(ctx context.Context, r io.Reader) (contents, error) {
	var c contents
	number, bad := 0, 0 // bad: first line of the present run of unreadable lines, or 0
	closeRun := func(last int) {
		if bad == 0 {
			return
		}
		text := fmt.Sprintf("line %d of the session could not be read and was left out", bad)
		if last > bad {
			text = fmt.Sprintf("lines %d to %d of the session could not be read and were left out", bad, last)
		}
		c.entries = append(c.entries, Entry{Kind: Note, Text: text, IsError: true})
		bad = 0
	}
	err := eachLine(r, wholeChunk, func(text []byte, end int64, complete bool) error {
		number++
		if err := ctx.Err(); err != nil {
			return err
		}
		e, ok := readEntry(text)
		if number == 1 {
			if err := checkHeader(e, ok); err != nil {
				return err
			}
			c.header = e
		}
		if !ok && !complete {
			number--
			return nil // torn: it is cut off
		}
		c.whole, c.unclosed = end, !complete
		if len(bytes.TrimSpace(text)) == 0 && text != nil {
			return nil // an editor left a blank line
		}
		if !ok {
			if bad == 0 {
				bad = number
			}
			return nil
		}
		closeRun(number - 1)
		if known(e.Kind) {
			c.entries = append(c.entries, e)
		}
		if e.Kind == Message {
			c.count++
		}
		return nil
	})
	if err != nil {
		return contents{}, err
	}
	if number == 0 {
		return contents{}, errors.New("the file holds no session")
	}
	closeRun(number)
	return c, nil
}

func readEntry(text []byte) (Entry, bool) {
	if text == nil {
		return Entry{}, false
	}
	l, err := decode(text)
	if err != nil || l.Kind == "" || l.Kind == Message && l.Message == nil {
		return Entry{}, false
	}
	return l.Entry, true
}

func checkHeader(e Entry, ok bool) error {
	if !ok || e.Kind != Header {
		return errors.New("the file does not begin with the header of a session")
	}
	if e.Version > formatVersion {
		return fmt.Errorf("the session was written by a newer magi-code (format %d, this one reads %d)", e.Version, formatVersion)
	}
	if e.Version < 1 {
		return errors.New("the header of the session names no format")
	}
	return nil
}

func known(k EntryKind) bool {
	switch k {
	case Header, Message, Call, Result, Note, Usage:
		return true
	}
	return false // of a newer version
}

// Bytes that are read at once: so that most lines fit and are not copied, and for a look at the head of a file.
const (
	wholeChunk = 64 << 10
	headChunk  = 4 << 10
)

// eachLine calls fn with every line (without its break), the offset of its end, and whether it had a break: only the
// last can lack it. A line longer than maxLineBytes is given as nil. The bytes are valid until fn returns.
func eachLine(r io.Reader, chunk int, fn func(text []byte, end int64, complete bool) error) error {
	in := bufio.NewReaderSize(r, chunk)
	var long []byte
	var end int64
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
		end += int64(len(part))
		if errors.Is(err, bufio.ErrBufferFull) {
			if tooLong = tooLong || len(long)+len(part) > maxLineBytes; tooLong {
				long = long[:0]
			} else {
				long = append(long, part...)
			}
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		complete := err == nil
		text := part
		if len(long) > 0 {
			long = append(long, part...)
			text = long
		}
		if !complete && len(text) == 0 && !tooLong {
			return nil
		}
		text = bytes.TrimSuffix(text, []byte("\n"))
		if tooLong || len(text) > maxLineBytes {
			text = nil
		}
		if err := fn(text, end, complete); err != nil {
			return err
		}
		if !complete {
			return nil
		}
		long, tooLong = long[:0], false
	}
}
