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

	"magi-code/internal/procgroup"
)

const (
	stopGrace  = 2 * time.Second        // between asking a group to end and ending it
	hurryGrace = 400 * time.Millisecond // the same after an interruption: Ctrl-C is answered within a second
	leftGrace  = 500 * time.Millisecond // the same for what a finished command left in the background
	killWait   = 2 * time.Second        // for the system to end a killed group; a process that hangs in the kernel takes longer
	drainWait  = 500 * time.Millisecond // for the output of a process that left the group and still holds the pipe
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
	procgroup.Prepare(cmd)
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return outcome{}, err
	}
	g, err := procgroup.New(cmd)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return outcome{}, fmt.Errorf("process group: %w", err)
	}
	defer g.Release()

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
	case o.why == interrupted:
		g.End(hurryGrace)
	case o.why != finished:
		g.End(stopGrace)
	case g.Alive():
		o.left = true
		g.End(leftGrace)
	}
	if procgroup.Passed(exited, killWait) {
		waiter.Wait()
		o.state = cmd.ProcessState
	}
	if !procgroup.Passed(drained, drainWait) {
		_ = r.SetReadDeadline(time.Now()) // ends the reader
	}
	reader.Wait()
	return o, nil
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
