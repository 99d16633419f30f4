package stdio

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"magi-code/internal/mcp/jsonrpc"
)

// groupPoll is the first pause between two looks at a group whose leader is gone; it doubles up to sixteen times
// that. No system tells of the end of a group.
const groupPoll = 2 * time.Millisecond

// supervise waits for the end, whoever brings it about, and takes everything down.
func (t *Transport) supervise(ctx context.Context) {
	select {
	case <-t.closing:
		t.conn.Shutdown() // closes stdin
	case <-t.exited:
	case <-t.conn.Ended():
	}
	_ = input{t.stdin, t}.Close()
	t.endLeader()
	t.boundReads()
	t.endGroup()
	t.finish(ctx)
	t.endEscaped()
	close(t.done)
}

// wait waits for ch, at most d, and not at all once there is a hurry.
func (t *Transport) wait(ch <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ch:
		return true
	case <-timer.C:
	case <-t.hurry:
	}
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// endLeader ends the child itself, harder with each step.
func (t *Transport) endLeader() {
	if t.wait(t.exited, exitPatience) {
		return
	}
	t.group.terminate()
	if t.wait(t.exited, exitPatience) {
		return
	}
	t.group.kill()
	last := time.NewTimer(killPatience)
	defer last.Stop()
	select {
	case <-t.exited:
	case <-last.C: // stuck in the kernel: its pipes are closed all the same
	}
}

// endGroup ends what the child left behind. It got SIGTERM when the child was reaped.
func (t *Transport) endGroup() {
	pause, until := groupPoll, time.Now().Add(exitPatience)
	for t.group.alive() && time.Now().Before(until) {
		if t.wait(nil, pause); t.hurried() {
			break
		}
		pause = min(2*pause, 16*groupPoll)
	}
	if !t.group.alive() {
		t.group.release()
		return
	}
	t.group.kill()
	pause, until = groupPoll, time.Now().Add(killPatience)
	for t.group.alive() && time.Now().Before(until) {
		timer := time.NewTimer(pause)
		<-timer.C
		pause = min(2*pause, 16*groupPoll)
	}
	t.group.release()
}

// endEscaped ends what left the group by a session of its own and still has the child's stdout or stderr as its own: asked first,
// then killed. What let go of both is a daemon that nobody can tell from a stranger's.
func (t *Transport) endEscaped() {
	if t.readOut.Load() == 2 || t.outputs.signal(syscall.SIGTERM) == 0 {
		return // where both were read to their end nobody has them
	}
	pause, until := groupPoll, time.Now().Add(exitPatience)
	for t.outputs.signal(0) > 0 && time.Now().Before(until) {
		if t.wait(nil, pause); t.hurried() {
			break
		}
		pause = min(2*pause, 16*groupPoll)
	}
	pause, until = groupPoll, time.Now().Add(killPatience)
	for t.outputs.signal(syscall.SIGKILL) > 0 && time.Now().Before(until) {
		timer := time.NewTimer(pause)
		<-timer.C
		pause = min(2*pause, 16*groupPoll)
	}
}

// hurried reports whether a Close ran out of time.
func (t *Transport) hurried() bool {
	select {
	case <-t.hurry:
		return true
	default:
		return false
	}
}

// boundReads ends the readers a moment after the child's exit, though other processes may hold its pipes open. Where
// pipes have no deadlines the readers end with the group.
func (t *Transport) boundReads() {
	at := time.Now().Add(drainPatience)
	_ = t.stdout.SetReadDeadline(at)
	_ = t.stderr.SetReadDeadline(at)
}

// finish waits for the readers, which end with the last writer of their pipe, or with their patience.
func (t *Transport) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience+2*drainPatience)
	defer cancel()
	select {
	case <-t.conn.Done():
	case <-ctx.Done():
	}
	_ = t.conn.Close(ctx)
	select {
	case <-t.drained:
	case <-ctx.Done():
	}
	_ = t.stderr.Close()
}

// readStderr reads stderr to its end, whatever comes: a child that cannot write it would stand still.
func (t *Transport) readStderr() {
	defer close(t.drained)
	if _, err := io.CopyBuffer(&t.tail, onlyReader{t.stderr}, make([]byte, stderrBuffer)); err == nil {
		t.readOut.Add(1)
	}
}

// reason turns the end of reading into what callers are told: how the child ended, once that is known.
func (t *Transport) reason(err error) error {
	if errors.Is(err, io.EOF) {
		t.readOut.Add(1)
	}
	if _, ok := errors.AsType[*jsonrpc.TooLargeError](err); ok {
		return err
	}
	patience := time.NewTimer(statusPatience)
	defer patience.Stop()
	select {
	case <-t.exited:
		t.wait(t.drained, 2*drainPatience) // what it said on stderr belongs to the explanation
		return t.status
	case <-patience.C:
	}
	if errors.Is(err, io.EOF) {
		return errOutputClosed
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errStuck
	}
	return err
}
