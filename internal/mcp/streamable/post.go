package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/mcp/jsonrpc"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	batchVersion  = "2025-03-26" // the one version that has batches

	maxBody        = 16 << 20        // bytes of an answer, after decompression
	errorBodyRead  = 64 << 10        // bytes of an error body: a JSON-RPC error must fit
	errorBodyShown = 2 << 10         // bytes of an error body that a person sees
	errorBodyWait  = 2 * time.Second // an error body that does not come is done without
	maxRetryAfter  = 5 * time.Second // a longer wait is the user's decision
	maxRetries     = 2               // of a request that may be repeated, after the first try
)

// Call sends a request and waits for its response. Canceling ctx aborts the exchange at once.
func (t *Transport) Call(ctx context.Context, r jsonrpc.Request) (jsonrpc.Response, error) {
	body, err := jsonrpc.AppendRequest(nil, r)
	if err != nil {
		return jsonrpc.Response{}, err
	}
	if err := t.admit(ctx); err != nil {
		return jsonrpc.Response{}, err
	}
	defer t.leave()
	for try := 0; ; try++ {
		resp, wait, err := t.call(ctx, r, body)
		var lost *SessionLostError
		if errors.As(err, &lost) && jsonrpc.NotSent(err) {
			t.loseSession()
			t.awaitSiblings(ctx)
			return resp, err
		}
		if err == nil || wait < 0 || try == maxRetries || !repeatable(r.Method) {
			return resp, err
		}
		if wait == 0 {
			wait = 250 * time.Millisecond << (2 * try)
		}
		if t.pause(ctx, wait) != nil {
			return resp, err
		}
	}
}

// repeatable: the server may see these twice without harm.
func repeatable(method string) bool {
	return method == "initialize" || method == "tools/list" || method == "ping"
}

// exchange is one request of ours: it ends with the connection, and, until detached, with its caller.
type exchange struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	detach func() bool // from the caller's context
	sent   atomic.Bool // a connection was ours, so that bytes may have left
}

func (t *Transport) begin(caller context.Context) (*exchange, error) {
	if caller.Err() != nil {
		return nil, interrupted(caller, false)
	}
	if t.ctx.Err() != nil {
		return nil, &Error{Text: t.Err().Error(), notSent: true, cause: t.Err()}
	}
	x := &exchange{}
	x.ctx, x.cancel = context.WithCancelCause(t.ctx)
	x.detach = context.AfterFunc(caller, func() { x.cancel(context.Cause(caller)) })
	if t.own == nil {
		x.sent.Store(true) // a foreign round tripper tells nothing
	} else {
		x.ctx = httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) }})
	}
	return x, nil
}

// end releases what an exchange holds.
func (x *exchange) end() {
	x.detach()
	x.cancel(nil)
}

// failed explains an exchange that broke on the way: the caller gave up, the connection ended, or the network failed,
// which ends the connection, since nobody knows what the server saw.
func (t *Transport) failed(caller context.Context, x *exchange, err error) error {
	if caller.Err() != nil {
		return interrupted(caller, x.sent.Load())
	}
	if t.ctx.Err() != nil {
		return &Error{Text: t.Err().Error(), notSent: !x.sent.Load(), cause: t.Err()}
	}
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	e := wayError(err, x.sent.Load())
	if x.ctx.Err() == nil { // else it was we who cut it short
		t.fail(e)
	}
	return e
}

// call is one try. wait < 0 means that the outcome is final; otherwise the request may be repeated after wait (0: as the
// caller likes).
func (t *Transport) call(ctx context.Context, r jsonrpc.Request, body []byte) (answer jsonrpc.Response, wait time.Duration, err error) {
	x, err := t.begin(ctx)
	if err != nil {
		return answer, -1, err
	}
	w, forget := t.expect(x, r.ID)
	defer forget()
	answer, wait, err = t.exchange(ctx, w, r, body)
	if err != nil && w.given.Load() { // the answer came on the GET stream, which cut this exchange short
		return <-w.got, -1, nil
	}
	return answer, wait, err
}

// exchange sends the request and reads the answer to it. Whoever reads it ends w.x.
func (t *Transport) exchange(ctx context.Context, w *waiter, r jsonrpc.Request, body []byte) (answer jsonrpc.Response, wait time.Duration, err error) {
	x := w.x
	resp, err := t.post(x, r.Method, body)
	if err != nil {
		defer x.end()
		return answer, -1, t.failed(ctx, x, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer x.end()
		return t.refused(ctx, x, r, resp)
	}
	t.succeeded(resp.Request)
	if r.Method == "initialize" {
		if err := t.adopt(resp.Header); err != nil {
			defer x.end()
			_ = resp.Body.Close()
			t.fail(err)
			return answer, -1, err
		}
	}
	if endpoint.Media(resp.Header) == "text/event-stream" {
		answer, err = t.await(ctx, w, resp)
		return answer, -1, err
	}
	defer x.end()
	answer, err = t.single(ctx, x, resp, r.ID)
	return answer, -1, err
}

// single reads an answer that is one JSON document.
func (t *Transport) single(ctx context.Context, x *exchange, resp *http.Response, id jsonrpc.ID) (jsonrpc.Response, error) {
	defer resp.Body.Close()
	media := endpoint.Media(resp.Header)
	if media == "text/html" {
		return jsonrpc.Response{}, webPage(resp.StatusCode)
	}
	body, err := endpoint.ReadBody(resp, maxBody)
	if errors.Is(err, endpoint.ErrTooLarge) {
		return jsonrpc.Response{}, &Error{Status: resp.StatusCode, Text: "the answer is larger than 16 MiB"}
	}
	if err != nil {
		return jsonrpc.Response{}, t.failed(ctx, x, err)
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if len(body) == 0 {
		return jsonrpc.Response{}, &Error{Status: resp.StatusCode, Text: fmt.Sprintf("the server took the request and gave no answer (HTTP %d)", resp.StatusCode)}
	}
	var found *jsonrpc.Response
	messages, bad := t.decode(body, id)
	for _, m := range messages {
		if m.Request != nil {
			t.handle(*m.Request)
		} else if m.Response != nil && found == nil && answers(*m.Response, id) {
			found = m.Response
		}
	}
	if found == nil && bad != nil {
		return jsonrpc.Response{}, bad
	}
	if found == nil {
		return jsonrpc.Response{}, &Error{
			Status: resp.StatusCode,
			Text:   fmt.Sprintf("the server answered with something that is no response to the request (%s): %s", mediaName(media), t.excerpt(body[:min(len(body), errorBodyShown)])),
		}
	}
	return *found, nil
}

func mediaName(media string) string {
	if media == "" {
		return "no content type"
	}
	return media
}

// refused handles an answer that is no success.
func (t *Transport) refused(ctx context.Context, x *exchange, r jsonrpc.Request, resp *http.Response) (answer jsonrpc.Response, wait time.Duration, err error) {
	body := t.errorBody(x, resp)
	session := resp.Request.Header.Get(sessionHeader) != ""
	ours, isError := t.errorFor(body, r.ID)
	switch status := resp.StatusCode; {
	case status == http.StatusNotFound && session && !(isError && ours.Error.Code == jsonrpc.CodeMethodNotFound):
		return answer, -1, &SessionLostError{}
	case isError && status != http.StatusUnauthorized && status != http.StatusForbidden:
		return ours, -1, nil // an error of this call in JSON-RPC, whatever the status
	}
	err = t.statusError(resp, body)
	if scopes, ok := missingScopes(resp.Header); ok && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized) {
		if sink, ok := t.o.Tokens.(ScopeSink); ok {
			sink.NeedScopes(ctx, scopes)
		}
	}
	if session && t.sessionDoubtful(resp.StatusCode) {
		t.fail(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return answer, retryAfter(resp.Header), err
	}
	return answer, -1, err
}

// retryAfter reads seconds or a date; more than we wait by ourselves is a final answer.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	d := maxRetryAfter + 1
	if n, err := strconv.Atoi(v); err == nil && n >= 0 && n < 1<<20 {
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		d = max(time.Until(at), 0)
	}
	if d > maxRetryAfter {
		return -1
	}
	return d
}

// succeeded notes that the session id, if the request had one, is good.
func (t *Transport) succeeded(r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = 0
	if r.Header.Get(sessionHeader) != "" {
		t.worked = true
	}
}

// sessionDoubtful: many servers answer 400 for a session that they forgot, some 500. A 400 to an id that worked before
// ends the connection at once, a 500 when it comes twice in a row; the failed call is not repeated.
func (t *Transport) sessionDoubtful(status int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if status == http.StatusInternalServerError {
		t.failures++
		return t.worked && t.failures > 1
	}
	return status == http.StatusBadRequest && t.worked
}

// errorBody reads the beginning of an error body, for a bounded time.
func (t *Transport) errorBody(x *exchange, resp *http.Response) []byte {
	timer := time.AfterFunc(errorBodyWait, func() { x.cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyRead))
	return body
}

// errorFor finds a JSON-RPC error that answers our request in an error body.
func (t *Transport) errorFor(body []byte, id jsonrpc.ID) (jsonrpc.Response, bool) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' || len(id) == 0 {
		return jsonrpc.Response{}, false
	}
	m, err := jsonrpc.Decode(body)
	if err != nil || m.Response == nil || m.Response.Error == nil || !sameID(m.Response.ID, id) {
		return jsonrpc.Response{}, false
	}
	return *m.Response, true
}

// Notify sends a notification. What the server says besides the status does not matter.
func (t *Transport) Notify(ctx context.Context, r jsonrpc.Request) error {
	body, err := jsonrpc.AppendRequest(nil, jsonrpc.Request{Method: r.Method, Params: r.Params})
	if err != nil {
		return err
	}
	if err := t.deliver(ctx, r.Method, body); err != nil {
		return err
	}
	if r.Method == "notifications/initialized" {
		t.startListening()
	}
	return nil
}

// deliver posts a message that gets no response.
func (t *Transport) deliver(ctx context.Context, method string, body []byte) error {
	x, err := t.begin(ctx)
	if err != nil {
		return err
	}
	resp, err := t.post(x, method, body)
	if err != nil {
		defer x.end()
		return t.failed(ctx, x, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer x.end()
		_, _, err := t.refused(ctx, x, jsonrpc.Request{Method: method}, resp)
		var lost *SessionLostError
		if errors.As(err, &lost) {
			t.loseSession()
		}
		return err
	}
	t.succeeded(resp.Request)
	if resp.Body == http.NoBody || resp.ContentLength == 0 {
		_ = resp.Body.Close()
		x.end()
		return nil
	}
	t.drain(x, resp)
	return nil
}
