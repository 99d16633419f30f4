//go:build unix

package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

// ready returns options whose handler passes on the params of each notification.
func ready(o Options) (Options, <-chan string) {
	ch := make(chan string, 16)
	o.Handler = func(r jsonrpc.Request) *jsonrpc.Response {
		select {
		case ch <- r.Method + string(r.Params):
		default:
		}
		return nil
	}
	return o, ch
}

// grandchildOf reads the pid that the child announces.
func grandchildOf(t *testing.T, note string) int {
	t.Helper()
	var p struct{ PID int }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(note, "ready")), &p); err != nil || p.PID == 0 {
		t.Fatalf("note %q: %v", note, err)
	}
	return p.PID
}

// TestGrandchild: a TERM-ignoring grandchild that holds the pipes delays no call, and is gone in the end: B10, W2, S12.
func TestGrandchild(t *testing.T) {
	t.Parallel()
	t.Run("closed by us", func(t *testing.T) {
		t.Parallel()
		o, notes := ready(options(t, "grandchild"))
		tr := run(t, o)
		pid := grandchildOf(t, <-notes)
		began := time.Now()
		closeNow(t, tr)
		if took := time.Since(began); took > exitPatience+time.Second {
			t.Errorf("took %s", took)
		}
		if running(pid) {
			t.Error("the grandchild lives")
		}
	})
	t.Run("child exits", func(t *testing.T) {
		t.Parallel()
		o, notes := ready(options(t, "grandchild"))
		tr := run(t, o)
		pid := grandchildOf(t, <-notes)
		began := time.Now()
		_, err := call(t, tr, 1, "exit", "")
		if exit, ok := errors.AsType[*ExitError](err); !ok || exit.Code != 7 || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if !strings.Contains(tr.Stderr(), "last words") {
			t.Errorf("stderr %q", tr.Stderr())
		}
		<-tr.Done()
		if running(pid) {
			t.Error("the grandchild lives")
		}
	})
	t.Run("no time", func(t *testing.T) {
		t.Parallel()
		o, notes := ready(options(t, "grandchild"))
		tr := run(t, o)
		pid := grandchildOf(t, <-notes)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := tr.Close(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > exitPatience {
			t.Errorf("took %s", took)
		}
		if running(pid) || running(tr.PID()) {
			t.Error("a process lives")
		}
	})
}

// TestHurry: when Close runs out of time, a child that ignores everything is killed at once.
func TestHurry(t *testing.T) {
	tr := run(t, options(t, "ignore-term"))
	if _, err := call(t, tr, 1, "echo", "{}"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := tr.Close(ctx); err != nil || time.Since(began) > time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

// parent is a process that uses this package and is then killed: it starts a child that ignores everything, tells
// its pid and waits.
func parent([]string) {
	o := Options{Command: secret.New(os.Args[0]), Args: []secret.String{secret.New(childArg), secret.New("ignore-term")}}
	tr, err := Start(context.Background(), o)
	if err != nil {
		panic(err)
	}
	if _, err := tr.Call(context.Background(), jsonrpc.Request{ID: jsonrpc.ID("1"), Method: "echo"}); err != nil {
		panic(err)
	}
	fmt.Println(tr.PID())
	pause()
}

// TestParentKilled: when we are killed without a chance, the child ends as well: R-T4, S12.
func TestParentKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("here a child that ignores the end of its stdin outlives us")
		return
	}
	cmd := exec.Command(os.Args[0], childArg, "parent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if !running(pid) {
		t.Fatal("the child does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !gone(pid, 2*time.Second) {
		t.Error("the child outlives its parent")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// gone waits until a process that is not ours to wait for has ended.
func gone(pid int, d time.Duration) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(d); time.Now().Before(until); <-tick.C {
		if !running(pid) {
			return true
		}
	}
	return false
}

// TestThreadEnds: the child does not die with the thread that asked for it. The parent-death signal of Linux is sent
// when the thread that forked ends, which a locked goroutine's thread does.
func TestThreadEnds(t *testing.T) {
	o := options(t, "serve")
	started := make(chan *Transport)
	gone := make(chan int, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		gone <- syscall.Getpid()
		tr, err := Start(context.Background(), o)
		if err != nil {
			t.Error(err)
		}
		started <- tr
	}()
	<-gone
	tr := <-started
	t.Cleanup(func() { closeNow(t, tr) })
	for i := range 50 {
		if _, err := call(t, tr, i, "echo", "{}"); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// TestEarlyExit: how a child ended is known at once, whatever way it chose: B8, W3.
func TestEarlyExit(t *testing.T) {
	for _, tt := range []struct {
		args         []string
		text, stderr string
	}{
		{[]string{"exit", "1"}, "exited with status 1", "cannot start: no licence\n"},
		{[]string{"exit", "0"}, "exited with status 0", "cannot start: no licence\n"},
		{[]string{"kill-self"}, "was ended by signal: killed", ""},
	} {
		o := options(t, tt.args[0], tt.args[1:]...)
		tr := run(t, o)
		began := time.Now()
		_, err := call(t, tr, 1, "initialize", "{}")
		exit, ok := errors.AsType[*ExitError](err)
		if !ok || !strings.HasSuffix(exit.Error(), tt.text) || !strings.Contains(exit.Error(), o.Command.Reveal()) || tr.Stderr() != tt.stderr {
			t.Errorf("%v: %v, stderr %q", tt.args, err, tr.Stderr())
		}
		if took := time.Since(began); took > statusPatience {
			t.Errorf("%v: took %s", tt.args, took)
		}
		<-tr.Done()
		if !errors.Is(tr.Err(), exit) {
			t.Errorf("%v: ended by %v", tt.args, tr.Err())
		}
	}
}

// TestClosedPipes: a child that closes one of its pipes and lives on is told apart and ended: B11.
func TestClosedPipes(t *testing.T) {
	t.Parallel()
	t.Run("stdin", func(t *testing.T) {
		t.Parallel()
		o, notes := ready(options(t, "close-stdin"))
		tr := run(t, o)
		if n := <-notes; n != "ready" {
			t.Fatal(n)
		}
		if err := tr.Notify(t.Context(), jsonrpc.Request{Method: "x"}); err != nil {
			t.Fatal(err)
		}
		if n := <-notes; n != "closed" {
			t.Fatal(n)
		}
		_, err := call(t, tr, 1, "echo", "{}")
		if err == nil || !jsonrpc.NotSent(err) || !strings.Contains(err.Error(), "the server closed its input: broken pipe") {
			t.Error(err)
		}
	})
	t.Run("stdout", func(t *testing.T) {
		t.Parallel()
		tr := run(t, options(t, "close-stdout"))
		_, err := call(t, tr, 1, "echo", "{}")
		if !errors.Is(err, errOutputClosed) {
			t.Error(err)
		}
	})
}

// TestNeverReads: a child that does not read cannot hold a caller longer than its context, nor Close: B11.
func TestNeverReads(t *testing.T) {
	o, notes := ready(options(t, "never-read"))
	tr := run(t, o)
	<-notes
	params := []byte(`"` + strings.Repeat("x", 1<<20) + `"`) // more than a pipe holds
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := tr.Call(ctx, jsonrpc.Request{ID: jsonrpc.ID("1"), Method: "x", Params: params})
	if !errors.Is(err, context.DeadlineExceeded) || jsonrpc.NotSent(err) || time.Since(began) > 2*time.Second {
		t.Fatalf("%v after %s", err, time.Since(began))
	}
	if _, err := call(t, tr, 2, "x", ""); !jsonrpc.NotSent(err) {
		t.Error(err)
	}
	late, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := tr.Close(late); err != nil {
		t.Error(err)
	}
}
