// Package stdio is the transport over a child process: it starts the child with exactly its environment, keeps the
// tail of its stderr, and ends its whole process group.
package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

const (
	// exitPatience is how long a child may take to exit after its stdin was closed, and again after SIGTERM, before
	// the next, harder step.
	exitPatience = 2 * time.Second
	// killPatience is how long the end of a killed process is waited for: only the kernel can delay it.
	killPatience = 2 * time.Second
	// drainPatience is how long output is read on after the child's exit while another process holds the pipe open:
	// what the child wrote is in the pipe already.
	drainPatience = 250 * time.Millisecond
	// statusPatience is how long a call that lost its connection waits for the exit status that explains it.
	statusPatience = 500 * time.Millisecond
)

// EnvVar is a variable of the child.
type EnvVar struct {
	Name  string
	Value secret.String
}

// Options say what to run.
type Options struct {
	Command secret.String // looked up in the child's own PATH unless it holds a separator
	Args    []secret.String
	Env     []EnvVar                    // the overlay; later names win
	Lookup  func(string) (string, bool) // our environment, for the baseline; nil: the child gets the overlay only
	Dir     string                      // the child's working directory, absolute
	Handler jsonrpc.Handler             // hears what the server sends by itself; may be nil

	// What errors call the command and the PATH that was searched, where their own texts must not be told. Empty: their own texts.
	ShownCommand, ShownPath string
}

// Transport is one life of a child process. Its methods may be called concurrently.
type Transport struct {
	conn    *jsonrpc.Conn
	cmd     *exec.Cmd
	group   group
	stdin   *os.File // our ends of the child's pipes
	stdout  *os.File
	stderr  *os.File
	shown   string // what errors call the program
	tail    tail
	drained chan struct{} // closed when stderr has been read to its end
	exited  chan struct{} // closed when the child has been reaped; status is set before
	status  error         // *ExitError, read after exited only
	closing chan struct{} // closed by the first Close
	hurry   chan struct{} // closed when a Close ran out of time: no more patience
	done    chan struct{}
	once    sync.Once
	rush    sync.Once
	writing atomic.Int32 // writes to stdin that have not returned
	outputs outputs
	readOut atomic.Int32 // how many of stdout and stderr were read to their end
	wg      sync.WaitGroup
}

// Start starts the child and the goroutines that read from it, wait for it and end it; Close must follow. An error
// is a *StartError or ctx's own; the end of ctx after that does not end the child.
func Start(ctx context.Context, o Options) (*Transport, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	cmd, err := command(o)
	if err != nil {
		return nil, o.shown(err)
	}
	t := &Transport{cmd: cmd, shown: cmp.Or(o.ShownCommand, cmd.Path), drained: make(chan struct{}), exited: make(chan struct{}), closing: make(chan struct{}),
		hurry: make(chan struct{}), done: make(chan struct{})}
	theirs, err := t.pipes()
	if err != nil {
		return nil, o.shown(&StartError{Program: cmd.Path, Reason: NoResources, Err: err})
	}
	started := make(chan error, 1)
	t.wg.Go(func() { t.own(started) })
	err = <-started
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		_ = errors.Join(t.stdin.Close(), t.stdout.Close(), t.stderr.Close())
		return nil, o.shown(explain(cmd, err))
	}
	t.outputs = outputsOf(cmd.Process.Pid, t.stdout, t.stderr)
	t.wg.Go(t.readStderr)
	t.conn = jsonrpc.NewConn(ctx, t.stdout, input{t.stdin, t}, jsonrpc.Options{Handler: o.Handler, Ended: t.reason})
	t.wg.Go(func() { t.supervise(context.WithoutCancel(ctx)) })
	return t, nil
}

// pipes makes the three pipes. They are our own instead of those of os/exec because its Wait closes them at the
// child's exit, and what was written last would be lost.
func (t *Transport) pipes() (theirs []*os.File, err error) {
	var all []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range all {
				_ = f.Close()
			}
			return nil, err
		}
		all = append(all, r, w)
	}
	t.cmd.Stdin, t.stdin = all[0], all[1]
	t.stdout, t.cmd.Stdout = all[2], all[3]
	t.stderr, t.cmd.Stderr = all[4], all[5]
	return []*os.File{all[0], all[3], all[5]}, nil
}

// own starts the child and waits for it on one thread that lives as long as the child: Linux sends the parent-death
// signal when the thread that started a child ends, and the runtime ends threads that a locked goroutine leaves.
func (t *Transport) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := t.group.start(t.cmd); err != nil {
		started <- err
		return
	}
	started <- nil
	unreaped := t.group.await(t.cmd)
	if unreaped {
		t.group.terminate() // what the leader leaves behind, while the unreaped leader keeps the group's number from reuse
	}
	_ = t.cmd.Wait() // its error says what the state says
	if !unreaped {
		t.group.terminate()
	}
	t.status = exitError(t.cmd, t.shown)
	close(t.exited)
}

// Call sends a request and waits for its response. The death of the child fails it at once with an *ExitError.
func (t *Transport) Call(ctx context.Context, r jsonrpc.Request) (jsonrpc.Response, error) {
	return t.conn.Call(ctx, r)
}

// Notify sends a notification.
func (t *Transport) Notify(ctx context.Context, r jsonrpc.Request) error {
	return t.conn.Notify(ctx, r)
}

// Negotiated tells the version agreed in initialize.
func (t *Transport) Negotiated(version string) { t.conn.Negotiated(version) }

// Done is closed when the connection has ended, with the child, its group and every goroutine. Calls fail earlier:
// as soon as the child is gone.
func (t *Transport) Done() <-chan struct{} { return t.done }

// Ended is closed as soon as no further call is possible; the child's group may still be ending.
func (t *Transport) Ended() <-chan struct{} { return t.conn.Ended() }

// Err returns why the connection ended, nil before that: an *ExitError, jsonrpc.ErrClosed, a
// *jsonrpc.TooLargeError, or another reading error.
func (t *Transport) Err() error { return t.conn.Err() }

// Stderr returns the last 64 KiB that the child wrote to stderr, raw.
func (t *Transport) Stderr() string { return t.tail.String() }

// Skipped returns how many lines of stdout were no messages, and the start of the first ones, raw.
func (t *Transport) Skipped() (int, string) {
	s := t.conn.Stats()
	return s.Skipped, s.Sample
}

// Stats returns what the connection passed over.
func (t *Transport) Stats() jsonrpc.Stats { return t.conn.Stats() }

// Program returns the path of the file that was started.
func (t *Transport) Program() string { return t.cmd.Path }

// PID returns the child's process id, which is its group's as well.
func (t *Transport) PID() int { return t.cmd.Process.Pid }

// Close ends the child: its stdin is closed, after 2 s its group gets SIGTERM, after 2 s more SIGKILL. It waits for
// the end of everything; when ctx ends first, the group is killed at once. An error means that something lives on.
func (t *Transport) Close(ctx context.Context) error {
	t.once.Do(func() { close(t.closing) })
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
	}
	t.rush.Do(func() { close(t.hurry) })
	last := time.NewTimer(2 * killPatience)
	defer last.Stop()
	select {
	case <-t.done:
		return nil
	case <-last.C:
		return fmt.Errorf("the process did not end after it was killed: %w", context.Cause(ctx))
	}
}

// input is the child's stdin as the connection writes to it. Where pipes have no deadlines (Windows) neither a
// deadline nor a Close ends a write that is blocked: the child is killed instead, and the write fails because nobody
// is left to read.
type input struct {
	*os.File
	t *Transport
}

// Write writes to the child.
func (i input) Write(b []byte) (int, error) {
	i.t.writing.Add(1)
	defer i.t.writing.Add(-1)
	return i.File.Write(b)
}

// SetWriteDeadline bounds a blocked write.
func (i input) SetWriteDeadline(at time.Time) error {
	err := i.File.SetWriteDeadline(at)
	if errors.Is(err, os.ErrNoDeadline) && !at.IsZero() && at.Before(time.Now()) {
		i.t.group.kill()
		return nil
	}
	return err
}

// Close closes the child's stdin.
func (i input) Close() error {
	if i.t.writing.Load() > 0 && errors.Is(i.File.SetWriteDeadline(time.Time{}), os.ErrNoDeadline) {
		i.t.group.kill()
	}
	return i.File.Close()
}
