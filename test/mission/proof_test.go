//go:build unix

package mission

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// listSize bounds the memory of mcp list with ten servers, in KiB.
const listSize = 40 << 10

// BenchmarkStart is the whole process of --version (R-Q1). Timings are reported, never asserted.
func BenchmarkStart(b *testing.B) {
	p := newPlace(b, nil)
	for b.Loop() {
		if err := p.command("--version").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTurn is one turn without a terminal: ten servers started, one call, everything ended (R-Q1).
func BenchmarkTurn(b *testing.B) {
	p := tenServers(b)
	for b.Loop() {
		if out := p.run("run", "--provider", "offline", "--no-session", "--allow", "*", `call mcp__server3__search_notes {"query": "tea"}`); !strings.Contains(out, "tea") {
			b.Fatal(out)
		}
	}
}

// TestListIsSmall: connecting to ten servers takes little memory. R-Q1.
func TestListIsSmall(t *testing.T) {
	cmd := tenServers(t).command("mcp", "list")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok || runtime.GOOS != "linux" || underRace {
		t.Log("elsewhere the unit is another one, and the race detector takes memory of its own: not looked at")
		return
	}
	t.Logf("mcp list with ten servers: %d KiB", usage.Maxrss)
	if usage.Maxrss > listSize {
		t.Errorf("mcp list takes %d KiB, more than %d", usage.Maxrss, listSize)
	}
}
