//go:build unix

package stdio

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

// TestStderrFlood: a megabyte on stderr before each answer delays nothing, and its last 64 KiB are kept: B7, W8, R-T3.
func TestStderrFlood(t *testing.T) {
	tr := run(t, options(t, "stderr-flood"))
	for i := range 3 {
		if _, err := call(t, tr, i, "echo", "{}"); err != nil {
			t.Fatal(err)
		}
	}
	closeNow(t, tr)
	if got := tr.Stderr(); len(got) != tailSize || !strings.HasSuffix(got, "\rprogressEND") {
		t.Errorf("%d bytes, the last %q", len(got), got[max(0, len(got)-20):])
	}
}

// TestTail: the tail is what was written last, whatever the pieces.
func TestTail(t *testing.T) {
	var all strings.Builder
	var tl tail
	for i, n := range []int{0, 1, 10, tailSize - 12, 1, 1, 100, tailSize, tailSize + 1, 3 * tailSize, 5, tailSize / 2, tailSize / 2, 7} {
		piece := strings.Repeat(string(rune('a'+i)), n)
		all.WriteString(piece)
		if k, err := tl.Write([]byte(piece)); k != n || err != nil {
			t.Fatal(k, err)
		}
		want := all.String()
		if got := tl.String(); got != want[max(0, len(want)-tailSize):] {
			t.Fatalf("after piece %d: %d bytes", i, len(got))
		}
	}
	if cap(tl.buf) > 2*tailSize {
		t.Errorf("a buffer of %d bytes", cap(tl.buf))
	}
}

// peak runs f and returns how many bytes it allocated in all.
func peak(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLongLines: messages of any size up to the limit arrive whole: B3, W1.
func TestLongLines(t *testing.T) {
	tr := run(t, options(t, "serve"))
	for i, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 2 << 20, 10 << 20} {
		out, err := call(t, tr, i, "size", strconv.Itoa(size))
		if err != nil || len(out) != size+2 {
			t.Errorf("%d: %d bytes, %v", size, len(out), err)
		}
	}
	_, err := call(t, tr, 99, "size", strconv.Itoa(jsonrpc.MaxFrame))
	if large, ok := errors.AsType[*jsonrpc.TooLargeError](err); !ok || large.Error() != "message larger than 16 MiB" {
		t.Error(err)
	}
	<-tr.Done() // the child is ended without a Close
}

// TestJunk: junk without a newline is bounded, whether it opens like a message or not, and fails the connection
// beyond the limit: B4, S13.
func TestJunk(t *testing.T) {
	for _, tt := range []struct {
		fill    string
		size    int
		fails   bool
		ceiling uint64
	}{
		{"x", 10 << 20, false, 2 << 20},
		{"x", 100 << 20, true, 2 << 20},
		{"{", 100 << 20, true, 3 * jsonrpc.MaxFrame},
	} {
		n := peak(func() {
			tr := run(t, options(t, "junk", tt.fill, strconv.Itoa(tt.size)))
			_, err := call(t, tr, 1, "echo", "{}")
			if _, large := errors.AsType[*jsonrpc.TooLargeError](err); large != tt.fails || !large && err != nil {
				t.Errorf("%d times %s: %v", tt.size, tt.fill, err)
			}
			if count, sample := tr.Skipped(); !tt.fails && (count != 1 || !strings.HasPrefix(sample, "xxx")) {
				t.Errorf("%d skipped, %.10q", count, sample)
			}
			closeNow(t, tr)
		})
		if n > tt.ceiling {
			t.Errorf("%d times %s: %d bytes allocated, want at most %d", tt.size, tt.fill, n, tt.ceiling)
		}
	}
}

// TestDescriptors: starting and ending children leaks no descriptor, whichever way it goes: R-T4, B10.
func TestDescriptors(t *testing.T) {
	count := func() int {
		fds, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	cycle := func() {
		for _, args := range [][]string{{"serve"}, {"exit", "1"}, {"kill-self"}} {
			tr, err := Start(t.Context(), options(t, args[0], args[1:]...))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = call(t, tr, 1, "echo", "{}")
			closeNow(t, tr)
		}
		o := options(t, "serve")
		o.Dir = "/no/such"
		if _, err := Start(t.Context(), o); err == nil {
			t.Fatal("started")
		}
	}
	cycle() // the runtime opens some of its own
	before := count()
	for range 10 {
		cycle()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// BenchmarkFloor is the same life without this package: nobody can be faster.
func BenchmarkFloor(b *testing.B) {
	for b.Loop() {
		cmd := exec.Command(os.Args[0], childArg, "serve")
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}`+"\n"); err != nil {
			b.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			b.Fatal(err)
		}
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// BenchmarkStartCallClose is the life of a server that ends at once: what each costs beside its own start.
func BenchmarkStartCallClose(b *testing.B) {
	for b.Loop() {
		o := Options{Command: secret.New(os.Args[0]), Args: []secret.String{secret.New(childArg), secret.New("serve")}}
		tr, err := Start(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tr.Call(b.Context(), jsonrpc.Request{ID: jsonrpc.ID("1"), Method: "echo", Params: []byte("{}")}); err != nil {
			b.Fatal(err)
		}
		if err := tr.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
