package jsonrpc

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCancel pins who is told what when a context ends: R-P6, B17.
func TestCancel(t *testing.T) {
	cause := errors.New("the user left")
	t.Run("before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			_, err := c.Call(ctx, Request{ID: ID("1"), Method: "x"})
			if !NotSent(err) || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
				t.Error(err)
			}
			if err := c.Notify(ctx, Request{Method: "x"}); !NotSent(err) {
				t.Error(err)
			}
			next := p.begin(t.Context(), c, "2")
			p.send(`{"jsonrpc":"2.0","id":2,"result":2}`)
			if got := (<-next).String(); got != "result 2 2" {
				t.Error(got)
			}
		})
	})
	t.Run("while the peer does not read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
			defer cancel()
			first, second := start(ctx, c, "1"), start(ctx, c, "2")
			for _, o := range []outcome{<-first, <-second} {
				if !NotSent(o.err) || !errors.Is(o.err, context.DeadlineExceeded) {
					t.Error(o.err)
				}
			}
			next := p.begin(t.Context(), c, "3") // the connection was left alone
			p.send(`{"jsonrpc":"2.0","id":3,"result":3}`)
			if got := (<-next).String(); got != "result 3 3" {
				t.Error(got)
			}
		})
	})
	t.Run("within a message", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
			defer cancel()
			sibling := p.begin(t.Context(), c, "1")
			call := start(ctx, c, "2")
			if _, err := p.conn.Read(make([]byte, 1)); err != nil { // the rest stays in the pipe
				t.Fatal(err)
			}
			if o := <-call; NotSent(o.err) || !errors.Is(o.err, cause) {
				t.Error(o.err)
			}
			if o := <-sibling; NotSent(o.err) || !strings.Contains(o.err.Error(), "cut short") {
				t.Error(o.err)
			}
			<-c.Done()
		})
	})
	t.Run("after it was sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			sibling := p.begin(t.Context(), c, "1")
			call := p.begin(ctx, c, "0")
			cancel(cause)
			if o := <-call; NotSent(o.err) || !errors.Is(o.err, cause) || !errors.Is(o.err, context.Canceled) {
				t.Error(o.err)
			}
			p.send(`{"jsonrpc":"2.0","id":0,"result":"late"}`, `{"jsonrpc":"2.0","id":1,"result":1}`)
			if got := (<-sibling).String(); got != "result 1 1" {
				t.Error(got)
			}
			if n := c.Stats().Ignored; n != 1 {
				t.Errorf("%d ignored", n)
			}
		})
	})
}

// TestReplyAtTheDeadline: an answer just before the end of the context counts, one just after is discarded: B17.
func TestReplyAtTheDeadline(t *testing.T) {
	for offset, want := range map[time.Duration]string{-time.Millisecond: "result 1 1", time.Millisecond: "err " + context.DeadlineExceeded.Error()} {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			call := p.begin(ctx, c, "1")
			<-time.After(time.Second + offset)
			p.send(`{"jsonrpc":"2.0","id":1,"result":1}`)
			if got := (<-call).String(); got != want {
				t.Error(offset, got)
			}
		})
	}
}

// TestStress: many callers that give up at any moment, against a peer that answers, repeats and asks: every call
// ends, and so does everything else.
func TestStress(t *testing.T) {
	near, far := net.Pipe()
	c := NewConn(t.Context(), near, near, Options{Handler: func(r Request) *Response { return &Response{ID: r.ID, Result: []byte("{}")} }})
	var peer, callers sync.WaitGroup
	peer.Go(func() {
		f := newFrames(far, MaxFrame, func([]byte) {})
		for {
			line, _, err := f.next()
			if err != nil {
				return
			}
			m, err := Decode(line)
			if err != nil || m.Request == nil {
				continue
			}
			id := string(m.Request.ID)
			if _, err := far.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n" + strings.Repeat(`{"jsonrpc":"2.0","id":`+id+`,"result":`+id+`}`+"\n", 2))); err != nil {
				return
			}
		}
	})
	var answered, gaveUp atomic.Int64
	for i := range 20 {
		callers.Go(func() {
			for j := range 50 {
				id := strconv.Itoa(i*1000 + j)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(j%10)*200*time.Microsecond)
				r, err := c.Call(ctx, Request{ID: ID(id), Method: "x"})
				cancel()
				if err == nil && string(r.Result) == id {
					answered.Add(1)
				} else if err != nil {
					gaveUp.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if n := answered.Load() + gaveUp.Load(); n != 1000 {
		t.Errorf("%d calls ended rightly", n)
	}
	_ = far.Close()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	peer.Wait()
}
