package streamable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/untrusted"
)

// Error is a failed exchange in one sentence, sanitized and without secrets.
type Error struct {
	Text    string
	Cure    string // what to do, one sentence; may be empty
	Status  int    // of the HTTP answer; 0: there was none
	notSent bool
	cause   error
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Text }

// Hint returns the cure.
func (e *Error) Hint() string { return e.Cure }

// NotSent reports whether nothing of the request left the process.
func (e *Error) NotSent() bool { return e.notSent }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// SessionLostError says that the server does not know our session any more (404). The request was not processed.
type SessionLostError struct{}

// Error says so.
func (*SessionLostError) Error() string { return "the server no longer knows the session (HTTP 404)" }

// NotSent is true: a server that does not know the session ran nothing.
func (*SessionLostError) NotSent() bool { return true }

// interrupted is the end of an exchange by its caller's context; it unwraps to the context's error and to its cause.
func interrupted(ctx context.Context, sent bool) error {
	return &Error{Text: endpoint.Describe(ctx.Err()), notSent: !sent, cause: errors.Join(ctx.Err(), context.Cause(ctx))}
}

// wayError translates an error of the round tripper, which may hold a whole URL or header.
func wayError(err error, sent bool) error {
	e := &Error{Text: endpoint.Describe(err), notSent: !sent, cause: nil}
	switch {
	case errors.Is(err, endpoint.ErrOffLoopback):
		e.Cure = "use 127.0.0.1 or [::1], or mend the host name's entry"
	case endpoint.IsTLS(err):
		e.Cure = "if the certificate is from an authority of your own, set SSL_CERT_FILE to a file with it"
	}
	return e
}

// statusError turns an answer that is no success into an error. body is its beginning.
func (t *Transport) statusError(resp *http.Response, body []byte) error {
	e := &Error{Status: resp.StatusCode}
	code := fmt.Sprintf("HTTP %d", resp.StatusCode)
	if name := http.StatusText(resp.StatusCode); name != "" {
		code += " " + name
	}
	switch s := resp.StatusCode; {
	case endpoint.IsRedirect(s):
		to := endpoint.Redirect(resp, t.url)
		e.Text = fmt.Sprintf("the server redirects to %s (HTTP %d), and redirects are not followed", to, s)
		e.Cure = `set "url" to that address if you trust it`
		return e
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		if scopes, ok := missingScopes(resp.Header); ok {
			e.Text, e.Cure = t.scopesMissing(scopes, s)
			return e
		}
		if s == http.StatusUnauthorized {
			e.Text, e.Cure = t.unauthorized()
			return e
		}
		if t.url.Hostname() != "localhost" && endpoint.IsLoopback(t.url) {
			e.Cure = `some servers accept only the name localhost: try that as the host in "url"`
		}
	case s == http.StatusNotFound:
		e.Cure = `check the path of "url"`
	case s == http.StatusMethodNotAllowed:
		e.Cure = `check the path of "url"; a server of the older HTTP+SSE transport is not supported`
	case s == http.StatusProxyAuthRequired:
		e.Cure = "check the proxy setting of the environment"
	}
	e.Text = "the server answered " + code
	if endpoint.Media(resp.Header) == "text/html" {
		e.Text += " with a web page"
	} else if said := t.said(body); said != "" {
		e.Text += ": " + said
	}
	return e
}

// said is what an error body says: the message of a JSON-RPC error (one that is not ours: else it were the call's), or its
// beginning.
func (t *Transport) said(body []byte) string {
	if m, err := jsonrpc.Decode(body); err == nil && m.Response != nil && m.Response.Error != nil && m.Response.Error.Message != "" {
		return t.excerpt([]byte(m.Response.Error.Message))
	}
	return t.excerpt(body)
}

// excerpt is the beginning of a body, safe to show: one line, at most errorBodyShown bytes, without what we sent.
func (t *Transport) excerpt(body []byte) string {
	// Sanitizing can join what stood apart, so that our values are looked for twice.
	said := t.scrub.Text(untrusted.Line(t.scrub.Text(string(body))))
	return untrusted.Head(strings.TrimSpace(said), errorBodyShown)
}

func (t *Transport) loginCommand() string { return fmt.Sprintf("magi-code mcp login %s", t.o.Name) }

func (t *Transport) unauthorized() (text, cure string) {
	switch {
	case t.o.Tokens != nil:
		return "the server refuses the token (HTTP 401)", fmt.Sprintf("run %q", t.loginCommand())
	case t.header.Get("Authorization") != "":
		return "the server refuses the configured Authorization header (HTTP 401)", "check the value of that header"
	}
	return "the server wants authorization (HTTP 401)",
		fmt.Sprintf(`add "oauth": {} to its definition and run %q, or add an Authorization entry to "headers"`, t.loginCommand())
}

func (t *Transport) scopesMissing(scopes []string, status int) (text, cure string) {
	text = fmt.Sprintf("the token lacks a scope that the server wants (HTTP %d)", status)
	if len(scopes) > 0 {
		text = fmt.Sprintf("the token lacks the scopes that the server wants (HTTP %d): %s", status, untrusted.Head(strings.Join(scopes, " "), 1024))
	}
	if t.o.Tokens == nil {
		return text, "give the token of the Authorization header those scopes"
	}
	return text, fmt.Sprintf("run %q to allow them", t.loginCommand())
}

// missingScopes reads a 403 (or a 401) that asks for more scopes (RFC 6750), sanitized.
func missingScopes(h http.Header) ([]string, bool) {
	p := endpoint.Bearer(h.Values("WWW-Authenticate"))
	if !strings.EqualFold(p["error"], "insufficient_scope") {
		return nil, false
	}
	scopes := strings.Fields(untrusted.Line(p["scope"]))
	return scopes[:min(len(scopes), 64)], true
}

// webPage is the error for HTML where a message was due.
func webPage(status int) error {
	return &Error{
		Status: status,
		Text:   fmt.Sprintf("the server answered with a web page (HTTP %d), so this is not an MCP endpoint", status),
		Cure:   `check the path of "url"`,
	}
}
