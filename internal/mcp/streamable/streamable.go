// Package streamable is the Streamable HTTP transport: POST, GET and DELETE of one endpoint without redirects, with its
// own reader of server-sent events, and resumption.
package streamable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

const (
	replyQueue   = 32               // answers to server requests that may wait; the excess is dropped and counted
	replyTimeout = 30 * time.Second // one answer; a server that does not take it loses it
	deleteWait   = 2 * time.Second  // the DELETE at the end is a courtesy
	maxSessionID = 8 << 10          // bytes; servers refuse longer headers themselves
)

// ErrClosed is the reason of a connection that we closed.
var ErrClosed = errors.New("the connection is closed")

// Header is a configured request header with its expanded value.
type Header struct {
	Name  string
	Value secret.String
}

// Tokens is the silent OAuth source of a server; see mcp.Tokens.
type Tokens interface {
	Header(ctx context.Context) (secret.String, error)
	Rejected(ctx context.Context, header secret.String)
}

// ScopeSink is what Tokens may implement besides: it hears which scopes a 403 asked for, so that the next login asks for
// them too.
type ScopeSink interface {
	NeedScopes(ctx context.Context, scopes []string)
}

// Options describe one endpoint.
type Options struct {
	Name    string        // the server's name, for the cures in errors
	URL     secret.String // parsed and checked; checked once more here
	ShowURL string        // scheme, host, port, path
	Headers []Header
	Tokens  Tokens // nil: no oauth in the definition
	// HTTP carries the requests; nil means a transport of our own with proxies from the environment and platform TLS.
	HTTP http.RoundTripper
	// Handler gets the requests and notifications of the server, one at a time.
	Handler jsonrpc.Handler
}

// Transport is one life of the way to an endpoint. Its methods may be called concurrently.
type Transport struct {
	o       Options
	url     *url.URL
	header  http.Header // configured headers
	rt      http.RoundTripper
	own     *endpoint.Transport // nil when the round tripper was given
	scrub   *secret.Scrubber    // takes what we sent out of what the server says about it
	pause   func(ctx context.Context, d time.Duration) error
	replies chan jsonrpc.Response

	ctx      context.Context // ends with the connection, with the reason as its cause
	cancel   context.CancelCauseFunc
	handling sync.Mutex // one server message at a time
	wg       sync.WaitGroup
	once     sync.Once // Close
	closed   chan struct{}
	buffers  sync.Pool // of *[]byte, sse.BufferBytes each, for streams

	stream    atomic.Bool // a GET stream is open
	dropped   atomic.Int64
	skipped   atomic.Int64
	mu        sync.Mutex // guards what follows
	session   string
	version   string
	auth      secret.String // the Authorization value of the last request with a token
	worked    bool          // a request with the session id was answered well
	failures  int           // status 500 in a row
	listening bool
	closing   bool
	losing    bool // the server does not know the session; calls that are under way may end
	waiting   map[*waiter]bool
	calls     int // under way
	lost      int // of these, how many met the loss and wait for the others
}

// Open prepares a connection. It sends nothing: initialize is the first Call. ctx gives values only; the connection lives
// until Close, or until the server ends it.
func Open(ctx context.Context, o Options) (*Transport, error) {
	u, err := endpoint.Parse(o.URL.Reveal())
	if err != nil {
		return nil, &Error{Text: err.Error(), notSent: true}
	}
	if o.ShowURL == "" {
		o.ShowURL = endpoint.Show(u)
	}
	t := &Transport{
		o: o, url: u, rt: o.HTTP, header: http.Header{}, pause: pause, scrub: secret.NewScrubber(),
		replies: make(chan jsonrpc.Response, replyQueue), closed: make(chan struct{}), waiting: map[*waiter]bool{},
	}
	for _, h := range o.Headers {
		if !validHeader(h.Name, h.Value.Reveal()) {
			return nil, &Error{Text: fmt.Sprintf("the value of header %q cannot be sent", h.Name), notSent: true}
		}
		t.header.Add(h.Name, h.Value.Reveal())
		t.learn(h.Value)
	}
	for _, values := range u.Query() {
		for _, v := range values {
			t.scrub.Add(secret.New(v))
		}
	}
	// What net/http or the protocol decides is not configurable.
	for _, name := range []string{"Accept-Encoding", "Connection", "Content-Length", "Host", "Transfer-Encoding", "Last-Event-Id", sessionHeader, versionHeader} {
		t.header.Del(name)
	}
	if t.rt == nil {
		t.own = endpoint.NewTransport()
		t.rt = t.own
	}
	t.ctx, t.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	t.spawn(t.sendReplies)
	return t, nil
}

// learn makes a header value known to the scrubber; "Bearer x" may come back as x alone.
func (t *Transport) learn(v secret.String) {
	t.scrub.Add(v)
	if _, credential, ok := strings.Cut(v.Reveal(), " "); ok {
		t.scrub.Add(secret.New(credential))
	}
}

func validHeader(name, value string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\r\n:\x00") && !strings.ContainsAny(value, "\r\n\x00")
}

// Format writes the shown URL for every verb: what is inside holds header values.
func (t *Transport) Format(f fmt.State, _ rune) {
	if t == nil {
		_, _ = f.Write([]byte("<nil>"))
		return
	}
	_, _ = f.Write([]byte("streamable " + t.o.ShowURL))
}

// Negotiated tells the version agreed in initialize; every later request carries it.
func (t *Transport) Negotiated(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = version
}

// Done is closed when the connection has ended.
func (t *Transport) Done() <-chan struct{} { return t.ctx.Done() }

// Err says why the connection ended; nil while it lives.
func (t *Transport) Err() error { return context.Cause(t.ctx) }

// HasStream reports whether the optional GET stream is open.
func (t *Transport) HasStream() bool { return t.stream.Load() }

// Dropped is how many answers to server requests found the queue full.
func (t *Transport) Dropped() int { return int(t.dropped.Load()) }

// Skipped is how many events and bodies were no JSON-RPC messages.
func (t *Transport) Skipped() int { return int(t.skipped.Load()) }

// fail ends the connection; the first reason stays.
func (t *Transport) fail(reason error) { t.cancel(reason) }

// spawn runs f in a goroutine that Close waits for; after Close nothing starts.
func (t *Transport) spawn(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return false
	}
	t.wg.Go(f)
	return true
}

// Close ends streams, replies and calls, waits for them, and tells the server once that its session is over, for at most
// two seconds. Whatever comes of that is no error.
func (t *Transport) Close(ctx context.Context) error {
	t.once.Do(func() {
		defer close(t.closed)
		t.mu.Lock()
		t.closing = true
		t.mu.Unlock()
		var lost *SessionLostError
		gone := errors.As(t.Err(), &lost)
		t.fail(ErrClosed)
		t.wg.Wait()
		if !gone {
			t.deleteSession(ctx)
		}
		if t.own != nil {
			t.own.CloseIdleConnections()
		}
	})
	<-t.closed
	return nil
}

func (t *Transport) deleteSession(ctx context.Context) {
	if session, _ := t.state(); session == "" {
		return
	}
	// A caller in a hurry has often canceled ctx already; the courtesy has its own bound.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteWait)
	defer cancel()
	req, err := t.request(ctx, http.MethodDelete, nil, "")
	if err != nil {
		return
	}
	t.mu.Lock()
	auth := t.auth
	t.mu.Unlock()
	if !auth.IsEmpty() { // the one that worked last: a refresh now would hold the end up
		req.Header.Set("Authorization", auth.Reveal())
	}
	if resp, err := t.rt.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
	}
}

// state is what requests carry.
func (t *Transport) state() (session, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session, t.version
}

// adopt takes the session id from the answer to initialize, and from nowhere else.
func (t *Transport) adopt(h http.Header) error {
	id := h.Get(sessionHeader)
	if id == "" {
		return nil
	}
	ok := len(id) <= maxSessionID
	for i := range len(id) {
		ok = ok && id[i] > ' ' && id[i] < 0x7f
	}
	if !ok {
		return &Error{Text: "the server gave a session id that is too long or holds characters that are not visible ASCII"}
	}
	t.mu.Lock()
	t.session = id
	t.mu.Unlock()
	t.scrub.Add(secret.New(id))
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
