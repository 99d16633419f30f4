package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// collect returns what frames finds in r, as text.
func collect(r io.Reader, limit int) (lines, noise []string, err error) {
	return collectBuffered(r, limit, lineBuffer)
}

// collectBuffered is collect with a buffer of its own size, so that short inputs have long lines.
func collectBuffered(r io.Reader, limit, buffer int) (lines, noise []string, err error) {
	f := newFrames(r, limit, func(b []byte) { noise = append(noise, string(b[:min(len(b), 40)])) })
	f.r = bufio.NewReaderSize(r, buffer)
	for {
		line, _, err := f.next()
		if err != nil {
			return lines, noise, err
		}
		lines = append(lines, string(line))
	}
}

// TestFrames pins how a stream is cut, whatever the pieces it comes in: B1, B5.
func TestFrames(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 3*lineBuffer) + `"}`
	for _, tt := range []struct{ name, in, lines, noise string }{
		{"lines", "{1}\n{2}\n", "{1}|{2}", ""},
		{"no newline at the end", "{1}\n{2}", "{1}|{2}", ""},
		{"CRLF, blanks, BOM", "\ufeff{1}\r\n\r\n  \n\t{2} \r\n\ufeff\n", "{1}|{2}", ""},
		{"noise", "hello\n{1}\n42\n[2]\nbye", "{1}|[2]", "hello|42|bye"},
		{"long", long + "\n{1}\n", long + "|{1}", ""},
		{"long at the end", long, long, ""},
		{"long noise", strings.Repeat("y", 2*lineBuffer) + "\n{1}\n", "{1}", strings.Repeat("y", 40)},
		{"exactly the buffer", `{"a":"` + strings.Repeat("x", lineBuffer-9) + `"}` + "\n{1}\n", `{"a":"` + strings.Repeat("x", lineBuffer-9) + `"}|{1}`, ""},
		{"nothing", "", "", ""},
	} {
		for piece, r := range map[string]io.Reader{"whole": strings.NewReader(tt.in), "bytes": iotest.OneByteReader(strings.NewReader(tt.in)), "halves": iotest.HalfReader(strings.NewReader(tt.in)), "data with EOF": iotest.DataErrReader(strings.NewReader(tt.in))} {
			lines, noise, err := collect(r, MaxFrame)
			if !errors.Is(err, io.EOF) || strings.Join(lines, "|") != tt.lines || strings.Join(noise, "|") != tt.noise {
				t.Errorf("%s in %s: %.60q, noise %.60q, %v", tt.name, piece, lines, noise, err)
			}
		}
	}
}

// TestFrameLimit: the limit holds to the byte for messages, and bounds noise that never ends as well: B3, B4, R-T2.
func TestFrameLimit(t *testing.T) {
	const limit = 1 << 20
	message := func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` }
	for _, tt := range []struct {
		name, in string
		large    bool
	}{
		{"64 KiB - 1", message(64<<10-1) + "\n", false},
		{"64 KiB", message(64<<10) + "\n", false},
		{"64 KiB + 1", message(64<<10+1) + "\n", false},
		{"at the limit", message(limit) + "\r\n", false},
		{"over the limit", message(limit+2) + "\n", true},
		{"noise at the limit", strings.Repeat("x", limit) + "\n", false},
		{"noise over the limit", strings.Repeat("x", limit+lineBuffer), true},
	} {
		_, _, err := collect(strings.NewReader(tt.in), limit)
		_, large := errors.AsType[*TooLargeError](err)
		if large != tt.large {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// endless gives the same byte for ever, after a head.
type endless struct {
	head string
	fill byte
	read int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.head)
	e.head = e.head[n:]
	for i := n; i < len(b); i++ {
		b[i] = e.fill
	}
	e.read += len(b)
	return len(b), nil
}

// TestMemory: a line without end costs no more than the limit says, noise next to nothing, and one large message is
// not kept: B4, S13.
func TestMemory(t *testing.T) {
	grown := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, tt := range []struct {
		head    string
		ceiling uint64
	}{{"", 256 << 10}, {`{"a":"`, 3 * MaxFrame}} {
		src := &endless{head: tt.head, fill: 'x'}
		var err error
		if n := grown(func() { _, _, err = collect(src, MaxFrame) }); n > tt.ceiling {
			t.Errorf("%q: %d bytes allocated, want at most %d", tt.head, n, tt.ceiling)
		}
		if _, ok := errors.AsType[*TooLargeError](err); !ok || src.read > MaxFrame+2*lineBuffer {
			t.Errorf("%q: %v after %d bytes", tt.head, err, src.read)
		}
	}
	in := bytes.NewReader([]byte(`{"a":"` + strings.Repeat("x", 10<<20) + `"}` + "\n{}\n"))
	f := newFrames(in, MaxFrame, func([]byte) {})
	for range 2 {
		if _, _, err := f.next(); err != nil {
			t.Fatal(err)
		}
	}
	in.Reset(nil)
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > 8<<20 {
		t.Errorf("%d bytes in use after a large frame", after.HeapAlloc)
	}
	runtime.KeepAlive(f)
}

// TestTooLargeEnds: a message over the limit fails the connection and every call with that reason: R-T2, B3.
func TestTooLargeEnds(t *testing.T) {
	near, far := net.Pipe()
	c := NewConn(t.Context(), near, near, Options{MaxFrame: 1 << 20})
	p := &peer{t: t, conn: far, in: nil}
	got := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), Request{ID: ID("1"), Method: "x"})
		got <- err
	}()
	if _, err := far.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	_, _ = p.conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 2<<20)))
	err := <-got
	large, ok := errors.AsType[*TooLargeError](err)
	if !ok || NotSent(err) || large.Error() != "message larger than 1 MiB" {
		t.Error(err)
	}
	<-c.Done()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// FuzzFrame: any stream, in any pieces, is cut into the same lines; none holds a line break, nothing panics.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{"{1}\n{2}", "\ufeff{}\r\n\n noise\n[", "x\x00\xff\n{\r}\n", strings.Repeat("{", 100) + "\n{}\n"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		const limit, buffer = 64, 16
		whole, n1, err1 := collectBuffered(bytes.NewReader(b), limit, buffer)
		parts, n2, err2 := collectBuffered(&chunks{b, max(1, piece%17)}, limit, buffer)
		if strings.Join(whole, "\n") != strings.Join(parts, "\n") || len(n1) != len(n2) || err1.Error() != err2.Error() {
			t.Fatalf("%q %d %v\n%q %d %v", whole, len(n1), err1, parts, len(n2), err2)
		}
		for _, l := range whole {
			if l == "" || strings.Contains(l, "\n") || !opens([]byte(l)) {
				t.Fatalf("line %q", l)
			}
		}
	})
}

// chunks gives n bytes at a time.
type chunks struct {
	b []byte
	n int
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.b[:min(c.n, len(c.b))])
	c.b = c.b[n:]
	return n, nil
}
