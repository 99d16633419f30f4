package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/sse"
)

const (
	linger    = 5 * time.Millisecond // for the regular end of a stream, so that the next call finds its connection free
	tailWait  = time.Second          // for what a server still says after the response
	tailBytes = 1 << 20

	defaultRetry   = time.Second           // before a stream is opened again, unless the server said how long
	minRetry       = 20 * time.Millisecond // "retry: 0" must not become a storm
	maxResumes     = 200                   // of one call in a row that brought no message
	maxResumeFails = 5                     // of one call in a row that were refused
	maxBackoff     = time.Minute           // between attempts to listen again
	longLife       = 30 * time.Second      // a GET stream that lived so long was no failure
)

// source bounds what a stream may still bring once its purpose is fulfilled. It is for one goroutine at a time.
type source struct {
	body io.ReadCloser
	left int64
}

func (s *source) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	n, err := s.body.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	return n, err
}

// events is one life of a stream.
type events struct {
	*sse.Reader
	src *source
	buf *[]byte
}

// read begins to read a stream where the progress of earlier ones left off.
func (t *Transport) read(body io.ReadCloser, p *progress) *events {
	e := &events{src: &source{body, math.MaxInt64}}
	e.buf, _ = t.buffers.Get().(*[]byte)
	if e.buf == nil {
		b := make([]byte, sse.BufferBytes)
		e.buf = &b
	}
	e.Reader = sse.NewReader(e.src, *e.buf, p.lastID)
	p.messages = 0
	return e
}

// release closes a stream.
func (t *Transport) release(e *events) {
	_ = e.src.body.Close()
	t.buffers.Put(e.buf)
	e.buf, e.Reader = nil, nil
}

// waiter is a call under way. A response that comes by a stream is given once.
type waiter struct {
	id    jsonrpc.ID
	got   chan jsonrpc.Response // holds one
	given atomic.Bool
	x     *exchange
}

// expect notes a call before it is sent: its answer may be faster than the headers of its own exchange.
func (t *Transport) expect(x *exchange, id jsonrpc.ID) (w *waiter, forget func()) {
	w = &waiter{id: id, got: make(chan jsonrpc.Response, 1), x: x}
	t.mu.Lock()
	t.waiting[w] = true
	t.mu.Unlock()
	return w, func() {
		t.mu.Lock()
		delete(t.waiting, w)
		t.mu.Unlock()
	}
}

// give reports whether this was the response that counts.
func (w *waiter) give(r jsonrpc.Response) bool {
	if !w.given.CompareAndSwap(false, true) {
		return false
	}
	w.got <- r
	return true
}

// elsewhere gives a response that came on the GET stream to the call that waits for it. A server must not do that except
// to resume, but some take any GET for the resumption of a stream that broke.
func (t *Transport) elsewhere(r jsonrpc.Response) {
	t.mu.Lock()
	var found *waiter
	for w := range t.waiting {
		if sameID(r.ID, w.id) {
			found = w
		}
	}
	t.mu.Unlock()
	if found != nil && found.give(r) {
		found.x.cancel(nil) // its own stream has nothing more to bring
	}
}

// await reads the stream that answers a POST until the response. It resumes the stream when it ends too early and carried
// event ids.
func (t *Transport) await(ctx context.Context, w *waiter, resp *http.Response) (jsonrpc.Response, error) {
	p := &progress{}
	for {
		e := t.read(resp.Body, p)
		err := t.consume(e, p, w)
		if w.given.Load() {
			t.finish(w.x, e, p)
			return <-w.got, nil
		}
		t.release(e)
		if err == nil {
			resp, err = t.resume(w.x, p)
		}
		if err != nil {
			defer w.x.end()
			return jsonrpc.Response{}, t.failed(ctx, w.x, err)
		}
	}
}

// finish takes what a server still says after the response, for a bounded time and for the sake of the connection, which
// can be used again once the stream has ended. Mostly it has; else a goroutine of the transport reads on.
func (t *Transport) finish(x *exchange, e *events, p *progress) {
	if e.Ended() {
		t.release(e)
		x.end()
		return
	}
	x.detach()
	e.src.left = tailBytes
	tail := time.AfterFunc(tailWait, func() { x.cancel(nil) })
	over := make(chan struct{})
	started := t.spawn(func() {
		defer close(over)
		defer x.end()
		defer tail.Stop()
		defer t.release(e)
		_ = t.consume(e, p, nil)
	})
	if !started {
		tail.Stop()
		t.release(e)
		x.end()
		return
	}
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	}
}

// progress is what is known of a stream across its interruptions.
type progress struct {
	lastID   string
	retry    time.Duration // 0: the server did not say
	messages int           // in this life of the stream
	resumes  int           // in a row without a message
}

func (p *progress) wait() time.Duration {
	if p.retry == 0 {
		return defaultRetry
	}
	return p.retry
}

// consume reads events until the stream ends, until the response of w has come (nil), or until something fails for good. w
// is nil on a stream that answers no call.
func (t *Transport) consume(s *events, p *progress, w *waiter) error {
	var id jsonrpc.ID
	if w != nil {
		id = w.id
	}
	for {
		e, err := s.Next()
		p.lastID = s.LastID()
		if s.Retry() >= 0 {
			p.retry = max(s.Retry(), minRetry)
		}
		if err != nil {
			if errors.Is(err, sse.ErrTooLarge) {
				return &Error{Text: sse.ErrTooLarge.Error()}
			}
			return nil
		}
		if len(e.Data) == 0 {
			continue
		}
		messages, bad := t.decode(e.Data, id)
		if bad != nil && !e.Tail {
			return bad
		}
		answered := false
		for _, m := range messages {
			p.messages++
			switch {
			case m.Request != nil && !e.Tail:
				t.handle(*m.Request)
			case m.Response != nil && w == nil:
				t.elsewhere(*m.Response)
			case m.Response != nil && answers(*m.Response, id):
				w.give(*m.Response)
				answered = true
			}
		}
		if answered {
			return nil
		}
	}
}

// resume opens the stream again from where it broke.
func (t *Transport) resume(x *exchange, p *progress) (*http.Response, error) {
	if !sendable(p.lastID) {
		return nil, &Error{Text: "the stream ended before the response"}
	}
	if p.messages > 0 {
		p.resumes = 0
	}
	for fails := 0; fails < maxResumeFails; {
		if p.resumes++; p.resumes > maxResumes {
			break
		}
		if err := t.pause(x.ctx, p.wait()); err != nil {
			return nil, err
		}
		resp, _, err := t.send(x.ctx, http.MethodGet, "", nil, p.lastID)
		if x.ctx.Err() != nil {
			if err == nil {
				_ = resp.Body.Close()
			}
			return nil, context.Cause(x.ctx)
		}
		if err == nil && resp.StatusCode == http.StatusOK && endpoint.Media(resp.Header) == "text/event-stream" {
			return resp, nil
		}
		fails++
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
			return nil, &Error{Status: resp.StatusCode, Text: fmt.Sprintf("the stream ended before the response, and the server does not resume it (HTTP %d)", resp.StatusCode)}
		}
	}
	return nil, &Error{Text: "the stream ended before the response, and could not be resumed"}
}

// drain reads the body that nobody needs, for the sake of the connection, within bounds.
func (t *Transport) drain(x *exchange, resp *http.Response) {
	x.detach()
	timer := time.AfterFunc(tailWait, func() { x.cancel(nil) })
	started := t.spawn(func() {
		defer x.end()
		defer timer.Stop()
		defer resp.Body.Close()
		if endpoint.Media(resp.Header) == "text/event-stream" {
			p := &progress{}
			e := t.read(resp.Body, p)
			e.src.left = tailBytes
			_ = t.consume(e, p, nil)
			t.release(e)
			return
		}
		_, _ = io.CopyN(io.Discard, resp.Body, errorBodyRead)
	})
	if !started {
		timer.Stop()
		_ = resp.Body.Close()
		x.end()
	}
}

// startListening opens the optional GET stream, once, without anybody waiting for it.
func (t *Transport) startListening() {
	t.mu.Lock()
	again := t.listening
	t.listening = true
	t.mu.Unlock()
	if !again {
		t.spawn(t.listen)
	}
}

// listen keeps the GET stream open. Any first answer but a stream means that the server has none: nothing is tried again,
// and a 401 leads to no login.
func (t *Transport) listen() {
	x := &exchange{detach: func() bool { return true }}
	x.ctx, x.cancel = context.WithCancelCause(t.ctx)
	defer x.end()
	p := &progress{}
	had, backoff := false, time.Duration(0)
	for t.ctx.Err() == nil {
		resp, _, err := t.send(x.ctx, http.MethodGet, "", nil, p.lastID)
		switch {
		case err != nil:
			var ours *Error
			if errors.As(err, &ours) {
				return // no token: the next call says so
			}
		case resp.StatusCode == http.StatusOK && endpoint.Media(resp.Header) == "text/event-stream":
			had = true
			if t.hear(resp, p) {
				backoff = 0
			}
		default:
			_ = resp.Body.Close()
			session := resp.Request.Header.Get(sessionHeader) != ""
			if had && resp.StatusCode == http.StatusNotFound && session {
				t.loseSession()
				return
			}
			if !had || resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
				return
			}
		}
		backoff = min(max(2*backoff, p.wait()), max(maxBackoff, p.wait()))
		if t.pause(x.ctx, backoff) != nil {
			return
		}
	}
}

// hear reads one life of the GET stream and reports whether it was worth having.
func (t *Transport) hear(resp *http.Response, p *progress) bool {
	born := time.Now()
	t.stream.Store(true)
	defer t.stream.Store(false)
	e := t.read(resp.Body, p)
	defer t.release(e)
	err := t.consume(e, p, nil)
	return err == nil && (p.messages > 0 || time.Since(born) >= longLife)
}
