package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"magi-code/internal/secret"
)

const (
	callbackWait     = 5 * time.Minute // a person with a second factor needs minutes, not hours
	callbackHeaders  = 32 << 10        // bytes
	callbackRead     = 5 * time.Second
	callbackGoodbye  = time.Second // for the page to reach the browser
	maxCallbackQuery = 16 << 10    // bytes
)

//go:embed page.html
var page []byte

// redirected is what the authorization server said through the browser: a code or an error.
type redirected struct {
	code        secret.String
	iss         string
	hasIss      bool
	err, reason string
}

// callback is the listener for one redirect: loopback only, one path, one use, a fixed page.
type callback struct {
	uri   string // the redirect URI
	path  string
	host  string
	state secret.String
	got   chan redirected // receives one
	used  atomic.Bool
	srv   *http.Server
	wg    sync.WaitGroup
}

// newCallback listens before anything else happens, so that the redirect URI is true. The path is random, except for a
// client that the user registered: its redirect URI is fixed there, and only the port may vary (RFC 8252).
func newCallback(ctx context.Context, port int, fixedPath bool) (*callback, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, &Error{Text: fmt.Sprintf("port %d of 127.0.0.1 cannot be used for the answer of the browser", port), Cure: "choose another port, or none"}
	}
	c := &callback{path: "/callback", host: l.Addr().String(), state: secret.New(rand.Text()), got: make(chan redirected, 1)}
	if !fixedPath {
		c.path += "/" + rand.Text()
	}
	c.uri = "http://" + c.host + c.path
	c.srv = &http.Server{
		Handler: c, ReadHeaderTimeout: callbackRead, ReadTimeout: callbackRead, WriteTimeout: callbackRead, MaxHeaderBytes: callbackHeaders,
		ErrorLog: slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError),
	}
	c.srv.SetKeepAlivesEnabled(false)
	c.wg.Go(func() { _ = c.srv.Serve(l) })
	return c, nil
}

// close ends the listener at once; a page on its way gets a moment.
func (c *callback) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callbackGoodbye)
	defer cancel()
	if c.srv.Shutdown(ctx) != nil {
		_ = c.srv.Close()
	}
	c.wg.Wait()
}

// ServeHTTP takes the redirect. Nothing of the request is ever in the answer.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Host != c.host: // a name that someone made resolve to this machine
		http.Error(w, "unknown host", http.StatusMisdirectedRequest)
	case r.URL.Path != c.path || r.URL.RawPath != "":
		http.Error(w, "not found", http.StatusNotFound)
	case r.Method != http.MethodGet:
		h.Set("Allow", http.MethodGet)
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	default:
		switch err := c.accept(r.URL.RawQuery); {
		case errors.Is(err, errUsed):
			http.Error(w, "this login is over", http.StatusGone)
		case err != nil:
			http.Error(w, "this is not the answer to the login", http.StatusBadRequest)
		default:
			h.Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page)
		}
	}
}

var (
	errUsed    = errors.New("the login is over")
	errForeign = errors.New("this is not the answer to this login")
)

// accept takes the query of the redirect, from the browser or from a pasted URL, once. A query with another state changes
// nothing.
func (c *callback) accept(rawQuery string) error {
	q, err := url.ParseQuery(rawQuery)
	if err != nil || len(rawQuery) > maxCallbackQuery {
		return errForeign
	}
	for _, name := range []string{"state", "code", "error", "error_description", "iss"} {
		if len(q[name]) > 1 {
			return errForeign
		}
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(c.state.Reveal())) != 1 {
		return errForeign
	}
	r := redirected{code: secret.New(q.Get("code")), iss: q.Get("iss"), hasIss: q.Has("iss"), err: q.Get("error"), reason: q.Get("error_description")}
	if r.code.IsEmpty() == (r.err == "") {
		return errForeign
	}
	if !c.used.CompareAndSwap(false, true) {
		return errUsed
	}
	c.got <- r
	return nil
}

// paste takes the final URL as a person copied it from the browser.
func (c *callback) paste(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Host != c.host || u.Path != c.path {
		return errForeign
	}
	return c.accept(u.RawQuery)
}
