package provider

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"magi-code/internal/secret"
	"magi-code/internal/sse"
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

// Client returns an HTTP client for Post, which follows no redirect.
func (e Endpoint) Client() *http.Client {
	next := e.HTTP
	if next == nil {
		next = newTransport()
	}
	return &http.Client{
		Transport:     next,
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

// Post sends a JSON body and returns the event stream that comes back. Every wait and every body is bounded; an answer
// that is no event stream is an error that Fail understands. The caller ends the answer by Finish or Close.
func Post(ctx context.Context, client *http.Client, address string, header http.Header, body []byte) (*Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &Answer{ctx: ctx, cancel: cancel}
	a.idle = time.AfterFunc(firstByteWait, func() { cancel(errStalled) })
	resp, err := a.send(client, address, header, body)
	if err != nil {
		err = a.because(err)
		a.stop()
		return nil, err
	}
	a.body = resp.Body
	if resp.StatusCode/100 != 2 || !isStream(resp.Header) {
		return nil, a.failure(resp)
	}
	a.wait = idleWait
	a.idle.Reset(a.wait)
	a.events = sse.NewReader(a, nil, "")
	return a, nil
}

func (a *Answer) send(client *http.Client, address string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(a.ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "magi-code")
	return client.Do(req)
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

// Answer is one streamed answer. It is read by one goroutine.
type Answer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	idle   *time.Timer
	wait   time.Duration
	read   int64
	done   bool // the end of the body was seen
	events *sse.Reader
}

// Events gives the events of the answer that carry data, in their order; it stops at the end of the stream, or with an
// error. The data of one is valid until the next. It can be used once.
func (a *Answer) Events() iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for {
			ev, err := a.events.Next()
			if err == io.EOF {
				return
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
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
