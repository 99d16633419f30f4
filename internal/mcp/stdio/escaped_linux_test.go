package stdio

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestEscaped: what left the group for a session of its own is ended as long as its stdout or stderr is the child's; S12, R-T4. What
// let go of both is a daemon, what has the pipe in another place may have been handed it, and what another server left is none of
// our business.
func TestEscaped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holds string
		ends  bool
	}{{"both", true}, {"stdout", true}, {"stderr", true}, {"elsewhere", false}, {"nothing", false}} {
		t.Run(c.holds, func(t *testing.T) {
			t.Parallel()
			o, notes := ready(options(t, "grandchild", c.holds))
			tr := run(t, o)
			pid := grandchildOf(t, <-notes)
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			other, notes := ready(options(t, "grandchild", "both"))
			neighbour := run(t, other)
			beside := grandchildOf(t, <-notes)
			began := time.Now()
			closeNow(t, tr)
			if took := time.Since(began); took > exitPatience+killPatience {
				t.Errorf("took %s", took)
			}
			if running(pid) == c.ends {
				t.Errorf("running: %t", running(pid))
			}
			if !running(beside) || !running(neighbour.PID()) {
				t.Error("the neighbour was hit")
			}
		})
	}
}

// TestEscapedIsAsked: SIGTERM comes first, so that a database can write what it holds.
func TestEscapedIsAsked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "asked")
	o, notes := ready(options(t, "grandchild", "both", file))
	tr := run(t, o)
	pid := grandchildOf(t, <-notes)
	closeNow(t, tr)
	if b, err := os.ReadFile(file); err != nil || string(b) != "asked" || running(pid) {
		t.Errorf("%q %v, running: %t", b, err, running(pid))
	}
}

// TestEscapedIsYounger: a process that was there before the child cannot descend from it, whatever it writes to.
func TestEscapedIsYounger(t *testing.T) {
	t.Parallel()
	o, notes := ready(options(t, "grandchild", "both"))
	tr := run(t, o)
	grandchildOf(t, <-notes)
	left := tr.outputs
	if n := left.signal(0); n != 2 {
		t.Errorf("%d processes write to the outputs, want the child and the grandchild", n)
	}
	if left.born += 1 << 40; left.signal(0) != 0 {
		t.Error("an older process counts")
	}
	closeNow(t, tr)
}
