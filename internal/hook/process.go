package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"time"

	"magi-code/internal/procgroup"
)

const (
	stopGrace  = 2 * time.Second        // between asking a group to end and ending it
	hurryGrace = 200 * time.Millisecond // the same after an interruption: Ctrl-C is answered within a second
	leftGrace  = 200 * time.Millisecond // the same for what a finished hook left in the background
	killWait   = 2 * time.Second        // for the system to end a killed group
	drainWait  = 500 * time.Millisecond // for output that a process outside the group still holds open
)

// judge runs one hook.
func (r *Runner) judge(ctx context.Context, h Hook, document []byte) verdict {
	if len(h.Command) == 0 || h.Command[0] == "" {
		return verdict{failure: "it has no command"}
	}
	timeout := h.timeout()
	if ctx.Err() != nil {
		return verdict{interrupted: true}
	}
	cmd := exec.Command(h.Command[0], h.Command[1:]...)
	cmd.Dir, cmd.Env = r.dir, r.env
	p, err := start(cmd)
	if err != nil {
		return verdict{failure: startError(err)}
	}
	p.exchange(document)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var early verdict
	select {
	case <-p.exited:
	case <-timer.C:
		early.failure = fmt.Sprintf("it took longer than %v", timeout)
	case <-ctx.Done():
		early.interrupted = true
	}
	ended := p.finish(early)
	switch {
	case early != verdict{}:
		return early
	case !ended:
		return verdict{failure: "it could not be ended"}
	}
	return read(cmd.ProcessState.ExitCode(), cmd.ProcessState.String(), p.stdout.kept, p.stderr.kept)
}

// timeout is the time that the hook has.
func (h Hook) timeout() time.Duration {
	if h.Timeout <= 0 {
		return defaultTimeout
	}
	return min(h.Timeout, maxTimeout)
}

// startError says why a command could not be started, without its arguments.
func startError(err error) string {
	var pe *fs.PathError
	switch {
	case errors.As(err, &pe) && pe.Op == "chdir":
		return "the working folder cannot be entered"
	case errors.Is(err, exec.ErrDot):
		return "its command was found only in the current folder; name it with its path"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "its command was not found"
	case errors.Is(err, fs.ErrPermission):
		return "its command may not be executed"
	case pe != nil:
		return "it could not be started: " + pe.Err.Error()
	}
	return "it could not be started"
}

// process is a hook under way.
type process struct {
	cmd            *exec.Cmd
	group          procgroup.Group
	in, out, err   *os.File // our ends of its pipes
	stdout, stderr head
	pipes, waiter  sync.WaitGroup
	exited         chan struct{}
}

// start starts a command with pipes of ours: Wait returns when the hook itself ends, whoever else holds them.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	var ends [6]*os.File // read and write end of stdin, stdout, stderr
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, err
		}
		ends[i], ends[i+1] = r, w
		files = append(files, r, w)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends[0], ends[3], ends[5]
	p.in, p.out, p.err = ends[1], ends[2], ends[4]
	procgroup.Prepare(cmd)
	if err := cmd.Start(); err != nil {
		closeAll()
		return nil, err
	}
	for _, theirs := range []*os.File{ends[0], ends[3], ends[5]} {
		_ = theirs.Close()
	}
	g, err := procgroup.New(cmd)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		closeAll()
		return nil, err
	}
	p.group = g
	p.waiter.Go(func() {
		defer close(p.exited)
		_ = cmd.Wait()
	})
	return p, nil
}

// exchange writes the document and reads what comes. A hook need not read: the write then ends with the pipe.
func (p *process) exchange(document []byte) {
	p.pipes.Go(func() {
		_, _ = p.in.Write(document)
		_ = p.in.Close()
	})
	p.pipes.Go(func() { _, _ = io.Copy(&p.stdout, p.out) })
	p.pipes.Go(func() { _, _ = io.Copy(&p.stderr, p.err) })
}

// finish ends the group, waits for everything that was started, and reports whether the hook has ended. Each wait is
// bounded.
func (p *process) finish(early verdict) bool {
	switch {
	case early.interrupted:
		p.group.End(hurryGrace)
	case early != verdict{}:
		p.group.End(stopGrace)
	case p.group.Alive():
		p.group.End(leftGrace)
	}
	ended := procgroup.Passed(p.exited, killWait)
	if ended {
		p.waiter.Wait()
	}
	p.group.Release()
	soon := time.Now().Add(drainWait)
	_ = p.in.SetWriteDeadline(time.Now())
	_ = p.out.SetReadDeadline(soon)
	_ = p.err.SetReadDeadline(soon)
	p.pipes.Wait()
	for _, f := range []*os.File{p.in, p.out, p.err} {
		_ = f.Close()
	}
	return ended
}

// head is a writer that keeps the first maxOutput bytes of what it gets and takes everything.
type head struct{ kept []byte }

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), maxOutput-len(h.kept))]...)
	return len(p), nil
}
