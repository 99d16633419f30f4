package oauth

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

const (
	maxToken   = 32 << 10               // bytes of one token; it must fit into a header
	maxExpires = 10 * 365 * 24 * 3600.0 // seconds; more is as good as for ever
)

// tokenAnswer is what a token endpoint says, whatever form it takes.
type tokenAnswer struct {
	access, refresh secret.String
	kind            string // token_type
	scopes          []string
	lifetime        time.Duration // 0: not known
	code, reason    string        // error, error_description
}

// tokenError is an error member in an answer.
type tokenError struct{ code, reason string }

func (e *tokenError) Error() string {
	text := fmt.Sprintf("the authorization server answers %q", untrusted.Head(untrusted.Line(e.code), 100))
	if e.reason != "" {
		text += ": " + untrusted.Head(untrusted.Line(e.reason), 500)
	}
	return text
}

// parseToken reads a JSON or form-encoded answer, whatever its type says.
func parseToken(body []byte) (tokenAnswer, bool) {
	body = bytes.TrimSpace(body)
	if d, ok := parseDocument(body); ok {
		t := tokenAnswer{
			access: secret.New(d.text("access_token")), refresh: secret.New(d.text("refresh_token")), kind: d.text("token_type"),
			scopes: strings.Fields(d.text("scope")), code: d.text("error"), reason: d.text("error_description"),
		}
		if v := d["expires_in"]; v.Kind() == '0' {
			t.lifetime = lifetime(string(v))
		} else {
			t.lifetime = lifetime(d.text("expires_in"))
		}
		if v := d["scope"]; v.Kind() == '[' {
			t.scopes = d.list("scope")
		}
		if v, found := d["error"]; found && t.code == "" && v.Kind() != 'n' && v.Kind() != 'f' {
			t.code = "error"
			var inner document
			if json.Unmarshal(v, &inner) == nil && inner.text("message") != "" {
				t.reason = inner.text("message")
			}
		}
		return t, true
	}
	if len(body) == 0 || body[0] == '{' || body[0] == '<' || bytes.IndexByte(body, '=') < 0 {
		return tokenAnswer{}, false
	}
	q, err := url.ParseQuery(string(body))
	if err != nil || !q.Has("access_token") && !q.Has("error") {
		return tokenAnswer{}, false
	}
	return tokenAnswer{
		access: secret.New(q.Get("access_token")), refresh: secret.New(q.Get("refresh_token")), kind: q.Get("token_type"),
		scopes: strings.Fields(q.Get("scope")), lifetime: lifetime(q.Get("expires_in")), code: q.Get("error"), reason: q.Get("error_description"),
	}, true
}

// lifetime reads expires_in. What is no positive number of seconds is not known: such a token is used until it is refused.
func lifetime(s string) time.Duration {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) || f <= 0 {
		return 0
	}
	return time.Duration(min(f, maxExpires)) * time.Second
}

// validToken reports whether a token can stand in a header: visible ASCII, bounded.
func validToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// requestToken posts to the token endpoint of r and returns r with the new token. hide are further secrets of the request.
func (f *fetcher) requestToken(ctx context.Context, r record, form url.Values, now func() time.Time, hide ...secret.String) (record, error) {
	u, err := f.parse(r.tokenURL)
	if err != nil {
		return r, &Error{Text: "the token endpoint cannot be used: " + err.Error()}
	}
	if r.resource != "" {
		form.Set("resource", r.resource)
	}
	if r.authMethod != "client_secret_basic" {
		form.Set("client_id", r.clientID)
	}
	if r.authMethod == "client_secret_post" {
		form.Set("client_secret", r.client.Reveal())
	}
	req := newRequest(http.MethodPost, u, "application/x-www-form-urlencoded", []byte(form.Encode()))
	if r.authMethod == "client_secret_basic" {
		req.Header.Set("Authorization", basic(r.clientID, r.client))
	}
	started := now()
	a, err := f.do(ctx, req)
	if err != nil {
		return r, err
	}
	if a.to != "" {
		return r, &Error{Text: fmt.Sprintf("the token endpoint redirects to %s, and redirects are not followed", a.to)}
	}
	t, ok := parseToken(a.body)
	scrub := secret.NewScrubber(append(hide, r.client, r.access, r.refresh, t.access, t.refresh)...)
	switch {
	case ok && t.code != "":
		return r, &tokenError{code: scrub.Text(t.code), reason: scrub.Text(t.reason)}
	case a.status < 200 || a.status > 299:
		return r, &Error{Text: fmt.Sprintf("the token endpoint %s answers HTTP %d", endpoint.Show(u), a.status)}
	case !ok || !validToken(t.access.Reveal()):
		return r, &Error{Text: fmt.Sprintf("the token endpoint %s gave no usable access token", endpoint.Show(u))}
	case t.kind != "" && !strings.EqualFold(t.kind, "bearer"):
		return r, &Error{Text: fmt.Sprintf("the token endpoint gave a token of type %q, and only Bearer is supported", untrusted.Head(untrusted.Line(t.kind), 40))}
	}
	r.access, r.obtained = t.access, started
	if !t.refresh.IsEmpty() && len(t.refresh.Reveal()) <= maxToken {
		r.refresh = t.refresh // a refresh that is silent about it keeps the old one
	}
	if len(t.scopes) > 0 {
		r.scopes = validScopes(t.scopes) // a later login may ask for them again, and show them
	}
	r.expires, r.refreshAt = time.Time{}, time.Time{}
	if t.lifetime > 0 {
		r.expires = started.Add(t.lifetime)
		r.refreshAt = r.expires.Add(-min(30*time.Second, t.lifetime/5)) // before it fails, but never all the time
	}
	return r, nil
}
