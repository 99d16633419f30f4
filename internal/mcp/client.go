package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/mcp/stdio"
)

const (
	// maxPending bounds the requests that wait for a server at once; further calls wait for their turn. No model makes
	// that many, a runaway script could.
	maxPending = 256
	// partingWait bounds the farewell, notifications/cancelled, to a server that may have stopped reading.
	partingWait = 250 * time.Millisecond
	// closeWait bounds the closing of a connection that nobody waits for: the steps of a stdio child take 4 s.
	closeWait = 6 * time.Second
)

// client speaks MCP on one connection. It is replaced, never reused, when the connection ends.
type client struct {
	link    link
	timeout time.Duration
	ids     atomic.Int64
	slots   chan struct{} // holding one is admission

	// ctx ends when we give the connection up; requests end with it and report its cause. A connection that ends by
	// itself is another matter: the transport then knows better what became of each request.
	ctx  context.Context
	drop context.CancelCauseFunc

	parting     atomic.Pointer[jsonrpc.Request] // sent before closing
	greeted     atomic.Bool                     // initialize was answered
	listChanged atomic.Bool                     // the server advertises tools.listChanged; set before greeted
	over        atomic.Bool                     // nothing that still arrives counts
	gone        chan struct{}                   // closed when the transport has been closed
}

func newClient(ctx context.Context, timeout time.Duration) *client {
	c := &client{timeout: timeout, slots: make(chan struct{}, maxPending), gone: make(chan struct{})}
	c.ctx, c.drop = context.WithCancelCause(ctx)
	return c
}

// dead reports whether no further request is possible.
func (c *client) dead() bool {
	select {
	case <-c.link.ended:
		return true
	case <-c.ctx.Done():
		return true
	default:
		return false
	}
}

// whyDead is why no further request is possible.
func (c *client) whyDead() error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if err := c.link.Err(); err != nil {
		var exit *stdio.ExitError
		if errors.As(err, &exit) { // in the words that a call under way gets
			return fmt.Errorf("connection ended: %w", err)
		}
		return err
	}
	return jsonrpc.ErrClosed
}

// request sends one request within the timeout and returns its result. Errors are *jsonrpc.Error (the server's own),
// *timeoutError, *abortedError, *siblingError, or the transport's. An error for which nothing was sent satisfies
// jsonrpc.NotSent; all others of an admitted request that its caller or the clock ended close the connection.
func (c *client) request(ctx context.Context, method string, params jsontext.Value) (jsontext.Value, error) {
	if err := c.admit(ctx); err != nil {
		return nil, err
	}
	defer func() { <-c.slots }()

	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	defer stop()
	late := &timeoutError{method: method, limit: c.timeout}
	inner, release := context.WithTimeoutCause(inner, c.timeout, late)
	defer release()

	r := jsonrpc.Request{ID: strconv.AppendInt(nil, c.ids.Add(1), 10), Method: method, Params: params}
	resp, err := c.link.Call(inner, r)
	if err == nil {
		if resp.Error != nil {
			return nil, resp.Error
		}
		return resp.Result, nil
	}
	if inner.Err() == nil && c.ctx.Err() == nil { // the latter may not have reached the former yet
		return nil, err
	}
	return nil, c.interrupted(ctx, inner, r, late, err)
}

// admit waits for a slot.
func (c *client) admit(ctx context.Context) error {
	if ctx.Err() != nil {
		return aborted(ctx)
	}
	if c.dead() {
		return &unsentError{cause: c.whyDead()}
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return aborted(ctx)
	case <-c.ctx.Done():
	case <-c.link.ended:
	}
	return &unsentError{cause: c.whyDead()}
}

// interrupted explains a request that ended with its context, and gives the connection up when the request had left.
func (c *client) interrupted(ctx, inner context.Context, r jsonrpc.Request, late *timeoutError, err error) error {
	unsent := jsonrpc.NotSent(err)
	timedOut := false
	var why error
	switch longer, ok := errors.AsType[*timeoutError](context.Cause(ctx)); {
	case ok: // a limit over several requests
		timedOut, why = true, longer
	case ctx.Err() != nil:
		why = aborted(ctx)
	case errors.Is(context.Cause(inner), late):
		late.unsent = unsent
		timedOut, why = true, late
	default: // we gave the connection up while the request was under way
		if unsent {
			return &unsentError{cause: context.Cause(c.ctx)}
		}
		return context.Cause(c.ctx)
	}
	if unsent {
		return why
	}
	if r.Method != "initialize" { // which the protocol forbids to cancel
		reason := "cancelled"
		if timedOut {
			reason = "timeout"
		}
		c.parting.CompareAndSwap(nil, &jsonrpc.Request{Method: "notifications/cancelled", Params: cancelParams(r.ID, reason)})
	}
	c.drop(&siblingError{timedOut: timedOut})
	return why
}

// cancelParams are those of notifications/cancelled; reason is ours and needs no escaping.
func cancelParams(id jsonrpc.ID, reason string) jsontext.Value {
	return jsontext.Value(`{"requestId":` + string(id) + `,"reason":"` + reason + `"}`)
}

// notify sends a notification within the timeout.
func (c *client) notify(ctx context.Context, method string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, &timeoutError{method: method, limit: c.timeout})
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	err := c.link.Notify(ctx, jsonrpc.Request{Method: method})
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// bury waits until the connection has ended by itself or by us, calls ended, closes the transport and waits for it. hurry
// ends early what closeWait would allow.
func (c *client) bury(hurry context.Context, ended func(error)) error {
	defer close(c.gone)
	select {
	case <-c.link.ended:
	case <-c.ctx.Done():
	}
	why := c.whyDead()
	c.over.Store(true)
	ended(why)
	if farewell := c.parting.Load(); farewell != nil {
		ctx, cancel := context.WithTimeout(hurry, partingWait)
		_ = c.link.Notify(ctx, *farewell) // best effort: the connection closes either way
		cancel()
	}
	ctx, cancel := context.WithTimeout(hurry, closeWait)
	defer cancel()
	err := c.link.Close(ctx)
	c.drop(why) // releases the context of a connection that ended by itself
	return err
}
