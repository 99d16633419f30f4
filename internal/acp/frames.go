package acp

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxFrame bounds one message from the editor, in bytes; it lies below the library's own limit, which ends the connection.
const maxFrame = 8 << 20

// Answers to what never reaches the library: it drops such lines without a word.
const (
	parseError    = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: a line is not one JSON object"}}` + "\n"
	tooLargeError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: a message is longer than 8 MiB"}}` + "\n"
)

// frames passes whole, valid messages on and answers the others, so that a bad line costs its sender that line only.
type frames struct {
	in      *bufio.Reader
	reply   io.Writer
	pending []byte // the rest of the line that is being passed on
}

func newFrames(in io.Reader, reply io.Writer) *frames {
	return &frames{in: bufio.NewReaderSize(in, 64<<10), reply: reply}
}

// Read gives the next bytes of the stream of valid lines.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.pending) == 0 {
		line, err := f.line()
		if err != nil {
			return 0, err
		}
		f.pending = line
	}
	n := copy(p, f.pending)
	f.pending = f.pending[n:]
	return n, nil
}

// line returns the next valid line with its end, or nil for one that was answered or is blank.
func (f *frames) line() ([]byte, error) {
	var line []byte
	tooLarge := false
	for {
		part, err := f.in.ReadSlice('\n')
		if len(line)+len(part) > maxFrame {
			tooLarge, line = true, nil
		}
		if !tooLarge {
			line = append(line, part...)
		}
		if err == nil || errors.Is(err, io.EOF) && (len(line) > 0 || tooLarge) {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	trimmed := jsontext.Value(bytes.TrimSpace(line))
	switch {
	case tooLarge:
		_, err := io.WriteString(f.reply, tooLargeError)
		return nil, err
	case len(trimmed) == 0:
		return nil, nil
	case trimmed.Kind() != '{' || !trimmed.IsValid():
		_, err := io.WriteString(f.reply, parseError)
		return nil, err
	}
	return append(bytes.Clone(trimmed), '\n'), nil
}
