package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// chunks gives out its bytes in pieces whose sizes follow from a seed.
type chunks struct {
	b []byte
	r *rand.Rand
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := min(1+c.r.IntN(7), len(c.b), len(p))
	copy(p, c.b[:n])
	c.b = c.b[n:]
	return n, nil
}

// all reads a stream to its end.
func all(s *Reader) (out []string, end error) {
	for {
		e, err := s.Next()
		if err != nil {
			return append(out, fmt.Sprintf("last=%q retry=%v", s.lastID, s.retry)), err
		}
		out = append(out, fmt.Sprintf("id=%q name=%q data=%q tail=%v", e.ID, e.Name, e.Data, e.Tail))
	}
}

// obvious is the slow reading of the same grammar: the whole stream, line by line, as the WHATWG text has it.
func obvious(b []byte) (out []string) {
	s := strings.TrimPrefix(string(b), bom)
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	lines := strings.Split(s, "\n")
	rest := lines[len(lines)-1]
	var data []string
	name, id, last, retry := "", "", "", time.Duration(-1)
	field := func(l string) {
		f, v, found := strings.Cut(l, ":")
		if found {
			v = strings.TrimPrefix(v, " ")
		}
		switch {
		case f == "data":
			data = append(data, v)
		case f == "event":
			name = v
		case f == "id" && !strings.Contains(v, "\x00") && len(v) <= maxEventID:
			id = v
		case f == "retry" && v != "" && strings.Trim(v, "0123456789") == "":
			ms := 0
			for _, c := range v {
				ms = min(ms*10+int(c-'0'), 1<<40)
			}
			retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
		}
	}
	for _, l := range lines[:len(lines)-1] {
		if l != "" {
			field(l)
			continue
		}
		last = id
		if data != nil {
			out = append(out, fmt.Sprintf("id=%q name=%q data=%q tail=false", last, name, strings.Join(data, "\n")))
		}
		data, name = nil, ""
	}
	if rest != "" {
		field(rest)
	}
	if data != nil {
		out = append(out, fmt.Sprintf("id=%q name=%q data=%q tail=true", last, name, strings.Join(data, "\n")))
	}
	return append(out, fmt.Sprintf("last=%q retry=%v", last, retry))
}

func seeds() []string {
	return []string{
		"", "\n", "\r", "\r\n\r\n", "data: a\n\n", "data: a\r\n\r\ndata: b\r\r", "\xef\xbb\xbfdata: a\n\n", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", "\xef\xbb\xbf:c\ndata:x\n\n",
		":comment\n\n:\ndata:x\n: y\ndata:  z\n\n", "data\n\ndata\ndata\n\n", "data: a\nid: 1\nevent: message\nretry: 100\n\n", "id: 1\n\ndata: x\n\n",
		"id: a\x00b\ndata: x\n\n", "retry: 1x\nretry:\nretry: 99999999999999999999999\ndata:1\n\n", "id: 5\ndata: cut", "data: {}\n", "datax: 1\ndat\nfoo: bar\n\n",
		"event: ping\n\ndata: 1\n\n", "data: a\n\r\ndata: b\r\n\rdata: c\n\n", "\r\r\ndata:q\n\n", "\xef\xbbdata: a\n\n", "id\ndata: x\n\n", "da\xef\xbb\xbfta: x\n\n",
		strings.Repeat("longfieldname", 10) + ": x\ndata: y\n\n",
	}
}

// FuzzSSE: any chunking of any bytes reads as the obvious reader reads them. R-H6, B26.
func FuzzSSE(f *testing.F) {
	for i, s := range seeds() {
		f.Add([]byte(s), uint64(i))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		want := obvious(b)
		s := NewReader(&chunks{b, rand.New(rand.NewPCG(seed, 1))}, nil, "")
		s.buf = make([]byte, 1+seed%13)
		got, err := all(s)
		if !errors.Is(err, io.EOF) || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q:\n got %s (%v)\nwant %s", b, got, err, want)
		}
	})
}

// TestSSEBounds: what is too long ends the stream, what is dropped anyway does not. R-H6, B3.
func TestSSEBounds(t *testing.T) {
	const limit = 1000
	for _, c := range []struct {
		name, in string
		err      error
		events   int
	}{
		{"data at the limit", "data: " + strings.Repeat("x", limit) + "\n\n", io.EOF, 1},
		{"data above", "data: " + strings.Repeat("x", limit+1) + "\n\n", ErrTooLarge, 0},
		{"many lines", strings.Repeat("data: xxxxxxxxx\n", limit) + "\n", ErrTooLarge, 0},
		{"endless line", "data: " + strings.Repeat("x", 100*limit), ErrTooLarge, 0},
		{"endless id", "id: " + strings.Repeat("x", 100*limit), ErrTooLarge, 0},
		{"comment", ":" + strings.Repeat("x", 100*limit) + "\ndata: y\n\n", io.EOF, 1},
		{"unknown", "unknown" + strings.Repeat("x", 100*limit) + "\ndata: y\n\n", io.EOF, 1},
	} {
		for _, src := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
			s := NewReader(src, nil, "")
			s.limit = limit
			got, err := all(s)
			if !errors.Is(err, c.err) || len(got)-1 != c.events {
				t.Errorf("%s: %v, %d events", c.name, err, len(got)-1)
			}
			if cap(s.line)+cap(s.data) > 20*limit {
				t.Errorf("%s: kept %d bytes", c.name, cap(s.line)+cap(s.data))
			}
		}
	}
}

// TestSSEBreaks: a broken connection gives no half event, and a source that returns nothing ends.
func TestSSEBreaks(t *testing.T) {
	broken := errors.New("reset")
	got, err := all(NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)), nil, ""))
	if !errors.Is(err, broken) || len(got) != 2 {
		t.Error(got, err)
	}
	if _, err := NewReader(nothing{}, nil, "").Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func BenchmarkSSE(b *testing.B) {
	for _, size := range []int{200, 20_000, 2_000_000} {
		one := []byte("event: message\nid: 17\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"" + strings.Repeat("x", size) + "\"}\n\n")
		stream := bytes.Repeat(one, max(1, 4_000_000/size))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				s := NewReader(bytes.NewReader(stream), nil, "")
				for {
					if _, err := s.Next(); err != nil {
						break
					}
				}
			}
		})
	}
}
