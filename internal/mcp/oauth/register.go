package oauth

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// client is who we are to an authorization server.
type client struct {
	id     string
	secret secret.String
	method string // how the token endpoint recognizes us
}

const maxClientID = 4 << 10 // bytes

// identify returns the configured client, or registers a new one for this redirect URI. A registration is never kept for a
// later login: the redirect URI of the next one has another port.
func (f *fetcher) identify(ctx context.Context, p plan, o Options, given secret.String, redirect string, scopes []string) (client, error) {
	if o.Server.ClientID != "" {
		c := client{id: o.Server.ClientID, secret: given}
		c.method = method("", p.methods, !given.IsEmpty())
		return c, nil
	}
	if p.register == nil {
		return client{}, &Error{
			Text: showIssuer(p.issuer) + " does not let clients register themselves",
			Cure: `register a client there for the redirect URI http://127.0.0.1/callback, and set its id as "client_id" in "oauth"`,
		}
	}
	ask := map[string]any{
		"client_name":                "magi-code",
		"redirect_uris":              []string{redirect},
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"response_types":             []string{"code"},
		"application_type":           "native",
		"token_endpoint_auth_method": method("", p.methods, false),
	}
	if len(scopes) > 0 {
		ask["scope"] = strings.Join(scopes, " ")
	}
	body, err := json.Marshal(ask, json.Deterministic(true))
	if err != nil {
		return client{}, &Error{Text: "the registration cannot be written as JSON"}
	}
	a, err := f.do(ctx, newRequest(http.MethodPost, p.register, "application/json", body))
	if err != nil {
		return client{}, err
	}
	return registered(a, p)
}

func registered(a answer, p plan) (client, error) {
	where := endpoint.Show(p.register)
	if a.to != "" {
		return client{}, &Error{Text: fmt.Sprintf("%s redirects to %s, and redirects are not followed", where, a.to)}
	}
	d, _ := parseDocument(a.body)
	if code := d.text("error"); code != "" {
		return client{}, &Error{Text: where + " refuses to register us: " + (&tokenError{code, d.text("error_description")}).Error()}
	}
	id := d.text("client_id")
	if a.status < 200 || a.status > 299 || id == "" || len(id) > maxClientID || untrusted.Line(id) != id {
		return client{}, &Error{
			Text: fmt.Sprintf("%s does not register us (HTTP %d)", where, a.status),
			Cure: `if the server gives out client ids in another way, set one as "client_id" in "oauth"; if it needs no login, take "oauth" out`,
		}
	}
	c := client{id: id, secret: secret.New(d.text("client_secret"))}
	c.method = method(d.text("token_endpoint_auth_method"), p.methods, !c.secret.IsEmpty())
	return c, nil
}

// method chooses how to authenticate: what the registration says, else the first of ours that the server supports. A
// server that says nothing supports client_secret_basic (RFC 8414), and public clients send no secret.
func method(said string, supported []string, hasSecret bool) string {
	if said == "client_secret_basic" && hasSecret || said == "client_secret_post" && hasSecret || said == "none" {
		return said
	}
	order := []string{"none", "client_secret_post", "client_secret_basic"}
	if hasSecret {
		order = []string{"client_secret_basic", "client_secret_post", "none"}
	}
	for _, m := range order {
		if has(supported, m) {
			return m
		}
	}
	return order[0]
}
