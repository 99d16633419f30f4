package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	stopGrace  = 2 * time.Second        // between asking a group to end and ending it
	leftGrace  = 500 * time.Millisecond // the same for what a finished command left in the background
	killWait   = 2 * time.Second        // for the system to end a killed group; a process that hangs in the kernel takes longer
	drainWait  = 500 * time.Millisecond // for the output of a process that left the group and still holds the pipe
	groupPoll  = 10 * time.Millisecond  // how often a group is looked at while it ends
	outputKept = 64 << 10               // bytes of output kept, half of each end
)

// ending is why a command ended.
type ending int

const (
	finished ending = iota
	timedOut
	interrupted
)

// outcome is what became of a command.
type outcome struct {
	why   ending
	state *os.ProcessState // nil when the system did not give the process back in time
	left  bool             // background processes were ended
}

// runGroup runs a command in a process group of its own, its output going to out, and returns when every process of the
// group has ended: by itself, or because it was ended at the timeout, at the end of ctx, or when the command itself was
// over. Every wait is bounded. The error is that of a command that could not be started.
func runGroup(ctx context.Context, cmd *exec.Cmd, timeout time.Duration, out io.Writer) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{why: interrupted}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = r.Close() }()
	cmd.Stdout, cmd.Stderr = w, w // one pipe of ours: output stays in order, and Wait does not wait for its last holder
	prepare(cmd)
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return outcome{}, err
	}
	g, err := newGroup(cmd)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return outcome{}, fmt.Errorf("process group: %w", err)
	}
	defer g.release()

	var reader, waiter sync.WaitGroup
	drained, exited := make(chan struct{}), make(chan struct{})
	reader.Go(func() {
		defer close(drained)
		_, _ = io.Copy(out, r)
	})
	waiter.Go(func() {
		defer close(exited)
		_ = cmd.Wait()
	})
	var o outcome
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
		o.why = timedOut
	case <-ctx.Done():
		o.why = interrupted
	}
	switch {
	case o.why != finished:
		g.end(stopGrace)
	case g.alive():
		o.left = true
		g.end(leftGrace)
	}
	if passed(exited, killWait) {
		waiter.Wait()
		o.state = cmd.ProcessState
	}
	if !passed(drained, drainWait) {
		_ = r.SetReadDeadline(time.Now()) // ends the reader
	}
	reader.Wait()
	return o, nil
}

// end asks the group to end, and ends it when the grace has passed.
func (g group) end(grace time.Duration) {
	g.terminate()
	if !g.gone(grace) {
		g.kill()
		g.gone(killWait)
	}
}

// gone waits until the group has no process, at most for the given time.
func (g group) gone(wait time.Duration) bool {
	tick := time.NewTicker(groupPoll)
	defer tick.Stop()
	for deadline := time.Now().Add(wait); g.alive(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// passed reports whether done was closed within the given time.
func passed(done <-chan struct{}, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// findShell returns bash, or sh where there is no bash.
func findShell() (path string, isBash bool, err error) {
	if path, err = exec.LookPath("bash"); err == nil {
		return path, true, nil
	}
	if path, err = exec.LookPath("sh"); err == nil {
		return path, false, nil
	}
	return "", false, errors.New("neither bash nor sh was found; commands cannot be run here")
}
