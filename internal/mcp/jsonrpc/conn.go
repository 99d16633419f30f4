package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

const (
	// replyQueue is how many answers to the peer may wait to be written: it may send no faster than it reads.
	replyQueue = 32
	// replyPatience bounds the writing of one answer: a peer that asks and does not read is not waited for.
	replyPatience = 10 * time.Second
	// writeFailurePatience is how long a failed write waits for the reader to find out why: a peer that died also
	// closed its output, and what it said last is still to be read.
	writeFailurePatience = 500 * time.Millisecond
)

// errPeerClosed is why a connection ended when nothing else is known.
var errPeerClosed = errors.New("the server closed the connection")

// Writer is the way to the peer: a pipe or a net.Conn.
type Writer interface {
	io.WriteCloser
	// SetWriteDeadline makes a blocked Write return.
	SetWriteDeadline(time.Time) error
}

// Options are what a Conn needs beside its stream.
type Options struct {
	// Handler gets what the peer sends by itself. It runs on the reader and must not block. May be nil.
	Handler Handler
	// Ended turns the reason for which reading stopped (io.EOF among them) into the one that callers are told. It runs
	// before any pending call fails, may wait a moment to find out, and may be nil.
	Ended func(error) error
	// MaxFrame bounds one message, in bytes; 0 means MaxFrame, the constant.
	MaxFrame int
}

// Stats counts what a Conn passed over.
type Stats struct {
	Skipped        int    // lines that were no messages
	Sample         string // the start of the first ones, raw
	Ignored        int    // answers that nobody waited for: late, repeated, unknown
	DroppedReplies int    // answers of ours that the peer left no room for
}

// Conn is one life of a framed duplex stream: calls overlap, their answers come in any order. It starts two
// goroutines, which Close awaits.
type Conn struct {
	r       io.ReadCloser
	w       Writer
	o       Options
	limit   int
	token   chan struct{} // holding it is the right to write
	replies chan Response
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	ended   chan struct{} // closed by end: no further call
	done    chan struct{} // closed when both goroutines have left
	wg      sync.WaitGroup

	mu sync.Mutex
	s  state // accessed in update only
}

// NewConn starts a connection over r and w, which it closes. Values of ctx are kept, its end is not heard.
func NewConn(ctx context.Context, r io.ReadCloser, w Writer, o Options) *Conn {
	c := &Conn{r: r, w: w, o: o, limit: o.MaxFrame, token: make(chan struct{}, 1), replies: make(chan Response, replyQueue),
		ended: make(chan struct{}), done: make(chan struct{})}
	if c.limit == 0 {
		c.limit = MaxFrame
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.s.pending = map[string]*call{}
	c.wg.Go(c.run)
	return c
}

// Call sends a request, whose id must be set and differ from those of all pending calls, and waits for its response.
// When ctx ends during the call it returns at once and the connection lives on: whoever wants it closed does that.
func (c *Conn) Call(ctx context.Context, r Request) (Response, error) {
	if len(r.ID) == 0 {
		return Response{}, &requestError{"a call needs an id"}
	}
	if ctx.Err() != nil {
		return Response{}, interrupted(ctx, false)
	}
	line, err := c.frame(AppendRequest(nil, r))
	if err != nil {
		return Response{}, err
	}
	p := &call{id: string(r.ID), answer: make(chan answer, 1)}
	if err := c.admit(p); err != nil {
		return Response{}, err
	}
	if err := c.write(ctx, line); err != nil {
		c.forget(p)
		return Response{}, err
	}
	select {
	case a := <-p.answer:
		return a.response, a.err
	case <-ctx.Done():
		if c.forget(p) {
			return Response{}, interrupted(ctx, true)
		}
		a := <-p.answer // it came at the same moment
		return a.response, a.err
	}
}

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, r Request) error {
	if ctx.Err() != nil {
		return interrupted(ctx, false)
	}
	r.ID = nil
	line, err := c.frame(AppendRequest(nil, r))
	if err != nil {
		return err
	}
	return c.write(ctx, line)
}

// Negotiated tells the version agreed in initialize: batches are accepted with 2025-03-26 only.
func (c *Conn) Negotiated(version string) {
	c.update(func(s *state) { s.batches = version == "2025-03-26" })
}

// Ended is closed when no further call is possible; calls pending then have failed.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Done is closed when the connection has ended and everything it started with it.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended; nil before that.
func (c *Conn) Err() error {
	var err error
	c.update(func(s *state) { err = s.end })
	return err
}

// Stats returns what was passed over so far.
func (c *Conn) Stats() Stats {
	var st Stats
	c.update(func(s *state) { st = s.stats; st.Sample = string(s.sample) })
	return st
}

// Shutdown fails pending calls with ErrClosed, refuses further ones and closes the way to the peer, but reads on, so
// that the peer can end in peace. Close must follow.
func (c *Conn) Shutdown() {
	c.end(ErrClosed)
	_ = c.w.Close()
}

// Close ends the connection and waits for its goroutines, at most until ctx ends.
func (c *Conn) Close(ctx context.Context) error {
	c.Shutdown()
	_ = c.r.Close()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close: %w", ctx.Err())
	}
}

// frame ends a line and checks its length.
func (c *Conn) frame(line []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if len(line) > c.limit {
		return nil, &TooLargeError{Limit: c.limit, ours: true}
	}
	return append(line, '\n'), nil
}

// write writes one line when its turn has come. Any error but a partial write leaves the line unsent.
func (c *Conn) write(ctx context.Context, line []byte) error {
	select {
	case c.token <- struct{}{}:
	case <-ctx.Done():
		return interrupted(ctx, false)
	case <-c.ended:
		return &EndedError{Cause: c.Err()}
	}
	if err := c.Err(); err != nil { // both were ready
		<-c.token
		return &EndedError{Cause: err}
	}
	n, err := c.writeNow(ctx, line)
	<-c.token
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && n == 0:
		return interrupted(ctx, false)
	case ctx.Err() != nil:
		c.fail(errors.New("a message was cut short by the end of its call"))
		return interrupted(ctx, true)
	}
	t := time.NewTimer(writeFailurePatience)
	defer t.Stop()
	select {
	case <-c.ended:
	case <-ctx.Done():
	case <-t.C:
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // the path is a made-up name of the pipe
	}
	c.fail(fmt.Errorf("the server closed its input: %w", err))
	return &EndedError{Cause: c.Err(), sent: n > 0}
}

// writeNow writes with the token held; the end of ctx makes it return.
func (c *Conn) writeNow(ctx context.Context, line []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.w.SetWriteDeadline(time.Unix(1, 0)) // long past
		close(fired)
	})
	n, err := c.w.Write(line)
	if !stop() {
		<-fired
		_ = c.w.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// run reads until the end, with the writer of replies beside it.
func (c *Conn) run() {
	var replies sync.WaitGroup
	replies.Go(c.sendReplies)
	err := c.read()
	if c.o.Ended != nil {
		err = c.o.Ended(err)
	} else if errors.Is(err, io.EOF) {
		err = errPeerClosed
	}
	c.fail(err)
	replies.Wait()
	close(c.done)
}

// read handles messages until the stream ends or breaks a bound.
func (c *Conn) read() error {
	f := newFrames(c.r, c.limit, c.skip)
	var d decoder
	for {
		line, owned, err := f.next()
		if err != nil {
			return err
		}
		if !owned {
			line = bytes.Clone(line)
		}
		if line[0] == '{' {
			c.message(&d, line, f.cut)
			continue
		}
		c.batch(&d, line)
	}
}

// batch handles an array: its elements one by one where the negotiated version has batches, else it is noise.
func (c *Conn) batch(d *decoder, line []byte) {
	accepted := false
	c.update(func(s *state) { accepted = s.batches })
	if !accepted {
		c.skip(line)
		return
	}
	elements, err := SplitBatch(line)
	if err != nil {
		c.skip(line)
		return
	}
	for _, e := range elements {
		c.message(d, e, false)
	}
}

// message handles one object. One that the end of the stream cut tells nothing about its call: the end itself does.
func (c *Conn) message(d *decoder, b []byte, cut bool) {
	m, err := d.decode(b)
	if err != nil {
		c.skip(b)
		if cut {
			return
		}
		if bad, ok := errors.AsType[*InvalidError](err); ok && len(bad.ID) > 0 {
			c.deliver(bad.ID, answer{err: bad})
		}
		return
	}
	if m.Response != nil {
		c.deliver(m.Response.ID, answer{response: *m.Response})
		return
	}
	if c.o.Handler == nil || c.Err() != nil {
		return
	}
	if reply := c.o.Handler(*m.Request); reply != nil && UsableID(reply.ID) {
		select {
		case c.replies <- *reply:
		default:
			c.update(func(s *state) { s.stats.DroppedReplies++ })
		}
	}
}

// sendReplies writes answers to the peer until the connection ends.
func (c *Conn) sendReplies() {
	for {
		select {
		case <-c.ended:
			return
		case r := <-c.replies:
			ctx, cancel := context.WithTimeout(c.ctx, replyPatience)
			line, err := c.frame(AppendResponse(nil, r))
			if err == nil {
				err = c.write(ctx, line)
			}
			cancel()
			if err != nil {
				c.update(func(s *state) { s.stats.DroppedReplies++ })
			}
		}
	}
}

// fail ends the connection for a reason and both ways with it.
func (c *Conn) fail(reason error) {
	c.end(reason)
	_ = c.w.Close()
	_ = c.r.Close()
}

// interrupted is the end of a call by its context.
func interrupted(ctx context.Context, sent bool) error {
	return &InterruptedError{Err: ctx.Err(), Cause: context.Cause(ctx), sent: sent}
}
