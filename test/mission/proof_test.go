//go:build unix

package mission

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The bounds that fail a test. The best of several tries counts, since other work on the machine only ever makes them worse.
const (
	startTime = 30 * time.Millisecond  // processor time of --version
	turnTime  = 300 * time.Millisecond // a turn with ten servers and one call, by the clock
	listSize  = 40 << 10               // KiB of memory of mcp list with ten servers
	tries     = 10                     // of which the best counts
)

// TestStartIsQuick: starting up takes next to nothing. R-Q1.
func TestStartIsQuick(t *testing.T) {
	p := newPlace(t, nil)
	best := time.Hour
	for range tries {
		cmd := p.command("--version")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		best = min(best, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	t.Logf("--version: %v of processor time", best)
	if best > startTime {
		t.Errorf("--version takes %v, more than %v", best, startTime)
	}
}

// TestTurnIsQuick: one turn without a terminal, ten servers started, one call, everything ended. R-Q1.
func TestTurnIsQuick(t *testing.T) {
	p := tenServers(t)
	best := time.Hour
	for range tries {
		began := time.Now()
		if out := p.run("run", "--provider", "offline", "--no-session", "--allow", "*", `call mcp__server3__search_notes {"query": "tea"}`); !strings.Contains(out, "tea") {
			t.Fatal(out)
		}
		if best = min(best, time.Since(began)); best < turnTime/3 {
			break
		}
	}
	t.Logf("a turn with ten servers: %v", best)
	if best > turnTime {
		t.Errorf("a turn with ten servers takes %v, more than %v", best, turnTime)
	}
}

// TestListIsSmall: connecting to ten servers takes little memory. R-Q1.
func TestListIsSmall(t *testing.T) {
	cmd := tenServers(t).command("mcp", "list")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok || runtime.GOOS != "linux" {
		t.Log("elsewhere the unit is another one, and is not looked at")
		return
	}
	t.Logf("mcp list with ten servers: %d KiB", usage.Maxrss)
	if usage.Maxrss > listSize {
		t.Errorf("mcp list takes %d KiB, more than %d", usage.Maxrss, listSize)
	}
}
