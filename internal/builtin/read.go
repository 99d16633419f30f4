package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"magi-code/internal/tool"
)

const (
	readDescription = "Read a file. Text comes as lines with their numbers and a tab in front, which are not part of the file; " +
		"images are shown. At most 2000 lines at once."
	readSchema = `{"type":"object","properties":{` + intentProperty + `,` +
		`"path":{"type":"string","description":"Relative to the workspace, or absolute."},` +
		`"offset":{"type":"integer","description":"First line, from 1."},` +
		`"limit":{"type":"integer","description":"Number of lines; default 2000."}},` +
		`"required":["intent","path"],"additionalProperties":false}`

	maxReadLines = 2000
	maxReadBytes = 100 << 10 // of the result
	maxReadLine  = 2000      // bytes shown of one line
	maxImage     = 5 << 20   // bytes: what model services take
	maxOffset    = 1 << 40   // a line number beyond every file
	maxScanned   = 1 << 30   // bytes of a file that are gone through, mostly on the way to offset: seconds
)

type readArgs struct {
	Path   string `json:"path"`
	Offset number `json:"offset"`
	Limit  number `json:"limit"`
}

func (t *toolset) read(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := arguments[readArgs](c)
	if err != nil {
		return failed(err)
	}
	offset, limit := a.Offset.or(1), a.Limit.or(maxReadLines)
	if err := errors.Join(within("offset", offset, 1, maxOffset), within("limit", limit, 1, maxReadLines)); err != nil {
		return failed(err)
	}
	at, err := t.o.locate(a.Path)
	if err != nil {
		return failed(err)
	}
	r, err := t.readPlace(ctx, at, a.Path, offset, limit)
	if err != nil {
		return failed(err)
	}
	return r, nil
}

func (t *toolset) readPlace(ctx context.Context, at place, path string, offset, limit int) (tool.Result, error) {
	root, err := os.OpenRoot(at.root)
	if err != nil {
		return tool.Result{}, explain(err, path)
	}
	defer func() { _ = root.Close() }()
	var in io.Reader
	f, st, err := openRegular(root, at.rel)
	switch {
	case err == nil:
		defer func() { _ = f.Close() }()
		in = &scan{ctx: ctx, in: f, left: maxScanned}
	case t.o.Files != nil && errors.Is(err, os.ErrNotExist):
		// It may be a new file that so far only the editor has.
	default:
		return tool.Result{}, explain(err, path)
	}
	if f != nil {
		head := make([]byte, sniffed)
		n, err := f.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return tool.Result{}, explain(err, path)
		}
		if mime := imageType(head[:n]); mime != "" {
			return readImage(f, st.Size(), mime, path)
		}
		if isBinary(head[:n]) {
			return tool.Result{}, fmt.Errorf("%q is a binary file of %d bytes; use bash to look into it", clip(path, maxShownPath), st.Size())
		}
	}
	if t.o.Files != nil {
		text, err := t.o.Files.ReadText(ctx, at.abs)
		if err != nil {
			return tool.Result{}, explain(err, path)
		}
		in = strings.NewReader(text)
	}
	return readLines(in, offset, limit)
}

// scan is a file that is read no longer than ctx, and no further than we have time for: one line may be as long as a disk.
type scan struct {
	ctx  context.Context
	in   io.Reader
	left int
}

var errTooFar = errors.New("only the first GiB of a file can be read; use bash to look further")

func (s *scan) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	if s.left <= 0 {
		return 0, errTooFar
	}
	n, err := s.in.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// imageType tells an image that models can see by its first bytes, whatever the file is called.
func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

func readImage(f io.Reader, size int64, mime, path string) (tool.Result, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxImage+1))
	if err != nil {
		return tool.Result{}, explain(err, path)
	}
	if len(data) > maxImage {
		return tool.Result{}, fmt.Errorf("%q is an image of %d bytes, more than the %d that can be shown", clip(path, maxShownPath), size, maxImage)
	}
	return tool.Result{Content: []tool.Content{
		{Kind: tool.Text, Text: fmt.Sprintf("[%s, %d bytes]", mime, len(data))},
		{Kind: tool.Image, MIME: mime, Data: data},
	}}, nil
}

// readLines numbers the lines from offset on. It reads no further than it has to, so the length of the file costs
// nothing but the way to offset.
func readLines(r io.Reader, offset, limit int) (tool.Result, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var text strings.Builder
	number, next := 0, 0 // next: the first line that is not shown, 0 when all are
	for {
		line, long, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errTooFar) && text.Len() > 0 {
			fmt.Fprintf(&text, "[%v]", err)
			return tool.TextResult(text.String()), nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		number++
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if number < offset {
			continue
		}
		if number >= offset+limit || text.Len()+len(line) > maxReadBytes {
			next = number
			break
		}
		text.WriteString(strconv.Itoa(number))
		text.WriteByte('\t')
		text.WriteString(strings.ToValidUTF8(string(line), "\ufffd"))
		if long > 0 {
			fmt.Fprintf(&text, " [%d more bytes in this line]", long)
		}
		text.WriteByte('\n')
	}
	switch {
	case number == 0:
		return tool.TextResult("[the file is empty]"), nil
	case number < offset && next == 0:
		return tool.Result{}, fmt.Errorf("offset %d is beyond the end: the file has %d lines", offset, number)
	case next > 0:
		fmt.Fprintf(&text, "[the file goes on: continue with offset %d]", next)
	}
	return tool.TextResult(strings.TrimSuffix(text.String(), "\n")), nil
}

// readLine returns the next line without its break, cut to maxReadLine bytes, and the number of bytes cut off. The bytes
// are valid until the next call.
func readLine(in *bufio.Reader) (line []byte, long int, err error) {
	var kept []byte
	for {
		part, err := in.ReadSlice('\n')
		more := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !more && !(errors.Is(err, io.EOF) && len(part)+len(kept) > 0) {
			return nil, 0, err
		}
		if !more {
			part = bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r"))
		}
		switch {
		case kept == nil && !more && len(part) <= maxReadLine:
			return part, 0, nil
		case kept == nil:
			kept = []byte(clip(string(part[:min(len(part), maxReadLine+4)]), maxReadLine))
			long = len(part) - len(kept)
		default:
			long += len(part)
		}
		if !more {
			return kept, long, nil
		}
	}
}
