//go:build campaign && linux

package campaign

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// heapSlack is how many bytes more than before may be in use: caches of the runtime and of net/http, which do not grow.
const heapSlack = 4 << 20

// size is what the process holds.
type size struct {
	goroutines, descriptors int
	children                []int
	heap                    uint64 // bytes in use after a collection
}

func (s size) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, children %v, %d KiB", s.goroutines, s.descriptors, s.children, s.heap>>10)
}

// measure looks at the process now.
func measure(t *testing.T) size {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return size{runtime.NumGoroutine(), len(fds), children(t), heap()}
}

// heap is HeapInuse when everything that can be freed is free.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// children are the child processes, zombies among them.
func children(t *testing.T) (out []int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if pid, _ := strconv.Atoi(filepath.Base(d)); parent(pid) == os.Getpid() {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// parent is the parent of a process; 0 when there is no such process.
func parent(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), ") ") // state ppid ...
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(fields[1])
	return n
}

// checkSize fails when the process does not become as small as it was.
func checkSize(t *testing.T, before size) (after size) {
	t.Helper()
	quiet := eventually(func() bool {
		after = measure(t)
		return after.goroutines <= before.goroutines && after.descriptors <= before.descriptors &&
			slices.Equal(after.children, before.children) && after.heap <= before.heap+heapSlack
	})
	if quiet {
		return after
	}
	t.Errorf("before: %v; after: %v", before, after)
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, f := range fds {
		target, _ := os.Readlink(f)
		t.Logf("descriptor %s: %s", filepath.Base(f), target)
	}
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	t.Log(b.String())
	return after
}
