package provider

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// Bounds of one request to a service. All of them end the request, none of them the conversation.
const (
	maxAnswer       = 64 << 20               // bytes of one streamed answer: far above any model's output limit
	maxErrorBody    = 64 << 10               // bytes of an error answer that are read; its message is at the front
	firstByteWait   = 10 * time.Minute       // until the answer's header: a local model may have to be loaded first
	idleWait        = 5 * time.Minute        // between two reads of a stream; services send pings far more often
	errorBodyWait   = 10 * time.Second       // for the body of an error answer
	finishWait      = 100 * time.Millisecond // for the end of a stream after its last event, to reuse the connection
	dialWait        = 30 * time.Second
	tlsWait         = 15 * time.Second
	idleConnections = 4                // kept open per host: one conversation and its subagents
	idleConnWait    = 90 * time.Second // how long an unused connection is kept
	maxURL          = 200              // bytes of an address shown in a message
)

var (
	errStalled  = errors.New("the service sent nothing for too long")
	errTooLarge = errors.New("the answer is larger than the limit")
	errNoAnswer = errors.New("the request was made without an answer")
	// ErrBroken means that a stream ended, or stopped making sense, before its last event.
	ErrBroken = errors.New("the stream broke off before the end of the answer")
)

// Endpoint is where an adapter sends its requests, and what its messages have to say about it.
type Endpoint struct {
	Name    string            // the provider's name
	BaseURL string            // http or https, without user, query and fragment
	Key     secret.String     // empty when the service needs none
	KeyFrom string            // the variable that holds the key, for hints; empty when there is none
	URLFrom string            // the variable or setting that holds BaseURL, for hints
	HTTP    http.RoundTripper // nil: a transport of its own
}

// Check returns an *Error when the base URL or the key cannot be used at all.
func (e Endpoint) Check() error {
	u, err := url.Parse(e.BaseURL)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return &Error{Provider: e.Name, Message: "the base URL is not an http or https address", Hint: e.urlHint("a full address such as https://host/v1")}
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return &Error{Provider: e.Name, Message: "the base URL holds a user, a query or a fragment", Hint: e.urlHint("the plain address, and keep keys in their own variable")}
	}
	for _, c := range []byte(e.Key.Reveal()) {
		if c <= ' ' || c >= 0x7f {
			return &Error{Provider: e.Name, Message: "the key holds a space, a line break or another character that no header can carry", Hint: e.keyHint()}
		}
	}
	return nil
}

// Origin is the base URL as messages show it: scheme, host and path only.
func (e Endpoint) Origin() string { return origin(e.BaseURL) }

func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the given address"
	}
	return untrusted.Head(untrusted.Line((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()), maxURL)
}

// NoKey is the error of a service that was to be asked without the key it needs.
func (e Endpoint) NoKey() *Error {
	return &Error{Provider: e.Name, Message: "no API key is set", Hint: "set " + e.KeyFrom + " to your key, or try --provider offline, which needs none"}
}

func (e Endpoint) urlHint(to string) string {
	if e.URLFrom == "" {
		return ""
	}
	return "set " + e.URLFrom + " to " + to
}

func (e Endpoint) keyHint() string {
	if e.KeyFrom == "" {
		return "this endpoint wants a key: name the variable that holds it in the settings"
	}
	return "set " + e.KeyFrom + " to a valid key"
}

// Client returns an HTTP client that follows no redirect, bounds every wait and every body, and turns each answer
// that is not an event stream into an error that Fail understands.
func (e Endpoint) Client() *http.Client {
	next := e.HTTP
	if next == nil {
		next = newTransport()
	}
	return &http.Client{
		Transport:     transport{next: next},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialWait, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: tlsWait,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     idleConnWait,
		DisableCompression:  true, // a compressed stream may be held back by whoever compresses it
	}
}

type answerKey struct{}

// Open runs send, which makes one request through a Client with the context that it gets, and returns the stream
// that came back. The caller ends it by Finish or Close.
func Open(ctx context.Context, send func(ctx context.Context) error) (*Answer, error) {
	var a *Answer
	err := send(context.WithValue(ctx, answerKey{}, &a))
	switch {
	case err != nil && a != nil:
		_ = a.Close()
		return nil, err
	case err != nil:
		return nil, err
	case a == nil:
		return nil, errNoAnswer
	}
	return a, nil
}

type transport struct{ next http.RoundTripper }

// RoundTrip sends one request. Its answer's body is an *Answer, which is also left where Open looks for it.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	a := &Answer{ctx: ctx, cancel: cancel}
	a.idle = time.AfterFunc(firstByteWait, func() { cancel(errStalled) })
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		err = a.because(err)
		a.stop()
		return nil, err
	}
	a.body, a.Header = resp.Body, resp.Header
	if resp.StatusCode/100 != 2 || !isStream(resp.Header) {
		return nil, a.failure(resp)
	}
	a.wait = idleWait
	a.idle.Reset(a.wait)
	resp.Body = a
	if slot, ok := req.Context().Value(answerKey{}).(**Answer); ok {
		*slot = a
	}
	return resp, nil
}

// isStream is lenient: only a type that certainly is something else is refused.
func isStream(h http.Header) bool {
	switch mediaType(h) {
	case "text/html", "application/json", "application/problem+json":
		return false
	}
	return true
}

func mediaType(h http.Header) string {
	m, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		m, _, _ = strings.Cut(h.Get("Content-Type"), ";")
	}
	return strings.ToLower(strings.TrimSpace(m))
}

// Answer is the body of one streamed answer. It is read by one goroutine.
type Answer struct {
	Header http.Header

	ctx    context.Context
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	idle   *time.Timer
	wait   time.Duration
	read   int64
	done   bool // the end of the body was seen
}

// Read reads the stream; it fails when nothing comes for too long or too much comes.
func (a *Answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	a.read += int64(n)
	switch {
	case err == io.EOF:
		a.done = true
	case err != nil:
		err = a.because(err)
	case a.read > maxAnswer:
		err = errTooLarge
	default:
		a.idle.Reset(a.wait)
	}
	return n, err
}

// Finish reads what follows the last event, for a moment, so that the connection can be used again.
func (a *Answer) Finish() {
	a.wait = finishWait
	a.idle.Reset(a.wait)
	buf := make([]byte, 512)
	for n := 0; !a.done && n < 8; n++ {
		if _, err := a.Read(buf); err != nil {
			break
		}
	}
	_ = a.Close()
}

// Close ends the request, whatever of its answer is still to come.
func (a *Answer) Close() error {
	if !a.done {
		a.cancel(nil)
	}
	err := a.body.Close()
	a.stop()
	return err
}

func (a *Answer) stop() {
	a.idle.Stop()
	a.cancel(nil)
}

// because tells the stall behind a cancellation that we made ourselves.
func (a *Answer) because(err error) error {
	if errors.Is(context.Cause(a.ctx), errStalled) {
		return errStalled
	}
	return err
}

func (a *Answer) failure(resp *http.Response) error {
	a.wait = errorBodyWait
	a.idle.Reset(a.wait)
	body, _ := io.ReadAll(io.LimitReader(a, maxErrorBody)) // what came before an error still tells something
	f := parseFailure(body)
	f.Status, f.media = resp.StatusCode, mediaType(resp.Header)
	f.retryAfter = retryAfter(resp.Header, time.Now())
	f.shouldRetry = resp.Header.Get("X-Should-Retry")
	if resp.StatusCode/100 == 3 {
		if to, err := resp.Location(); err == nil {
			f.location = origin(to.String())
		}
	}
	if len(body) < maxErrorBody {
		a.Finish()
	} else {
		_ = a.Close()
	}
	return f
}
