package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/untrusted"
)

const (
	wellKnownResource = "/.well-known/oauth-protected-resource"
	wellKnownServer   = "/.well-known/oauth-authorization-server"
	wellKnownOpenID   = "/.well-known/openid-configuration"
	maxServers        = 4   // authorization servers of one resource that are tried
	maxScopes         = 128 // more is no request of a sane server
)

// plan is all that a login needs to know.
type plan struct {
	resource  string   // for RFC 8707
	issuer    string   // raw, as its metadata has it; "" for the endpoints of 2025-03-26 without metadata
	claimsIss bool     // the authorization response must carry iss
	authorize *url.URL // endpoints
	token     *url.URL
	register  *url.URL // nil: not advertised
	methods   []string // token_endpoint_auth_methods_supported; nil: not said
	challenge []string // scopes of the 401
	supported []string // scopes_supported of the resource
	offline   bool     // the authorization server knows offline_access
}

// misses collects what was tried in vain, for the one error at the end.
type misses []string

func (m *misses) add(err error) { *m = append(*m, err.Error()) }

// discover finds the authorization server of the MCP endpoint: challenge, protected-resource metadata, metadata of the
// authorization server, and at last what 2025-03-26 had.
func (f *fetcher) discover(ctx context.Context, o Options) (plan, error) {
	p := plan{resource: endpoint.Origin(f.server) + f.server.EscapedPath()}
	var tried misses
	params, err := f.challenge(ctx, o)
	if err != nil {
		return p, err
	}
	p.challenge = validScopes(strings.Fields(params["scope"]))
	found, err := f.protectedResource(ctx, params["resource_metadata"], &tried)
	if err != nil {
		return p, err
	}
	var issuers []string
	if found != nil {
		p.resource, p.supported = found.text("resource"), validScopes(found.list("scopes_supported"))
		issuers = found.list("authorization_servers")
	}
	if o.Server.AuthorizationServer != "" {
		issuers = []string{o.Server.AuthorizationServer}
	}
	for _, issuer := range issuers[:min(len(issuers), maxServers)] {
		meta, err := f.serverMetadata(ctx, issuer, &tried)
		if err != nil {
			return p, err
		}
		if meta != nil {
			return p, f.useMetadata(&p, meta)
		}
	}
	if len(issuers) == 0 {
		if err := f.legacy(ctx, &p, &tried); err == nil || ctx.Err() != nil {
			return p, err
		}
	}
	return p, &Error{
		Text: "no usable authorization server was found; tried " + untrusted.Head(strings.Join(tried, "; "), 4096),
		Cure: `if you know it, set "authorization_server" in "oauth"`,
	}
}

// probe is the request that a server answers with its challenge.
const probe = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"magi-code","version":"0"}}}`

// challenge asks the MCP endpoint without a token. No 401 is no error: some servers want a token for some requests only.
func (f *fetcher) challenge(ctx context.Context, o Options) (map[string]string, error) {
	a, err := f.mcp(ctx, o, http.MethodPost, []byte(probe), "")
	if err != nil {
		return nil, err
	}
	if a.to != "" {
		return nil, &Error{Text: "the server redirects to " + a.to + ", and redirects are not followed", Cure: `set "url" to that address if you trust it`}
	}
	if id := a.header.Get("Mcp-Session-Id"); id != "" && a.status < 300 {
		_, _ = f.mcp(ctx, o, http.MethodDelete, nil, id) // the session was opened for nothing
	}
	if a.status != http.StatusUnauthorized {
		return nil, nil
	}
	return endpoint.Bearer(a.header.Values("WWW-Authenticate")), nil
}

// mcp sends a request to the MCP endpoint itself, the only place where configured headers go. Of a body only the fact
// matters.
func (f *fetcher) mcp(ctx context.Context, o Options, method string, body []byte, session string) (answer, error) {
	r := newRequest(method, f.server, "application/json", body)
	for _, h := range o.Server.Headers {
		r.Header.Set(h.Name, h.Value.Reveal())
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	resp, err := f.rt.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return answer{}, &Error{Text: endpoint.Show(f.server) + ": " + endpoint.Describe(err)}
	}
	_ = resp.Body.Close() // unread: it may be a stream that never ends
	a := answer{status: resp.StatusCode, header: resp.Header}
	if endpoint.IsRedirect(a.status) {
		a.to = endpoint.Redirect(resp, f.server)
	}
	return a, nil
}

// protectedResource finds the RFC 9728 document: where the challenge says, else at the path, else at the root. A document
// that is about another resource is an attack or a grave mistake, and ends the login.
func (f *fetcher) protectedResource(ctx context.Context, named string, tried *misses) (document, error) {
	var places []*url.URL
	if named != "" {
		u, err := f.parse(named)
		switch {
		case err != nil:
			tried.add(&Error{Text: "resource_metadata of the challenge: " + err.Error()})
		case !endpoint.SameOrigin(u, f.server):
			tried.add(&Error{Text: "resource_metadata of the challenge: it points to another origin"})
		default:
			places = append(places, u)
		}
	}
	if p := strings.TrimSuffix(f.server.EscapedPath(), "/"); p != "" {
		if f.server.EscapedPath() != p { // the letter of RFC 9728 keeps this slash, many servers do not
			places = append(places, f.at(f.server, wellKnownResource+f.server.EscapedPath()))
		}
		places = append(places, f.at(f.server, wellKnownResource+p))
	}
	places = append(places, f.at(f.server, wellKnownResource))
	for i, u := range places {
		if i > 0 && u.String() == places[0].String() {
			continue
		}
		d, err := f.document(ctx, u)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			tried.add(err)
			continue
		}
		if err := f.checkResource(d.text("resource")); err != nil {
			return nil, &Error{Text: endpoint.Show(u) + " " + err.Error()}
		}
		return d, nil
	}
	return nil, nil
}

// checkResource: a resource is the endpoint, or a place above it on the same origin (a server may protect all its paths as
// one).
func (f *fetcher) checkResource(resource string) error {
	u, err := endpoint.Parse(resource)
	if resource == "" || err != nil || strings.Contains(resource, "#") {
		return errors.New("names no resource that can be used")
	}
	own, theirs := strings.TrimSuffix(f.server.EscapedPath(), "/"), strings.TrimSuffix(u.EscapedPath(), "/")
	if !endpoint.SameOrigin(u, f.server) || u.RawQuery != "" || own != theirs && !strings.HasPrefix(own, theirs+"/") {
		return fmt.Errorf("is about another resource, %s, and not about this server", endpoint.Show(u))
	}
	return nil
}

// at is another path on the origin of u.
func (f *fetcher) at(u *url.URL, path string) *url.URL {
	out := &url.URL{Scheme: u.Scheme, Host: u.Host}
	out.Path, _ = url.PathUnescape(path)
	out.RawPath = path
	return out
}

// serverMetadata finds the document of an issuer (RFC 8414, OpenID). nil without an error: none that can be used.
func (f *fetcher) serverMetadata(ctx context.Context, issuer string, tried *misses) (document, error) {
	u, err := f.parse(issuer)
	if err != nil {
		tried.add(fmt.Errorf("an authorization server that cannot be used: %w", err))
		return nil, nil
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{wellKnownServer + path, wellKnownOpenID + path}
	if path != "" {
		places = append(places, path+wellKnownOpenID)
	}
	for _, place := range places {
		d, err := f.document(ctx, f.at(u, place))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil && !sameIssuer(d.text("issuer"), issuer) {
			err = &Error{Text: endpoint.Show(f.at(u, place)) + ": it is the document of another issuer"}
		}
		if err == nil {
			return d, nil
		}
		tried.add(err)
	}
	return nil, nil
}

// sameIssuer compares as RFC 8414 wants it, to the letter, with one concession: an issuer without a path may have one
// slash more or less (all Google servers).
func sameIssuer(got, want string) bool {
	if got == want {
		return got != ""
	}
	g, w := strings.TrimSuffix(got, "/"), strings.TrimSuffix(want, "/")
	u, err := url.Parse(w)
	return g == w && g != "" && err == nil && u.Path == ""
}

// useMetadata takes the endpoints of an authorization server, after checking them.
func (f *fetcher) useMetadata(p *plan, d document) (err error) {
	p.issuer, p.claimsIss = d.text("issuer"), d.isTrue("authorization_response_iss_parameter_supported")
	if p.authorize, err = f.parse(d.text("authorization_endpoint")); err != nil {
		return &Error{Text: "the authorization endpoint of " + showIssuer(p.issuer) + " cannot be used: " + err.Error()}
	}
	if p.token, err = f.parse(d.text("token_endpoint")); err != nil {
		return &Error{Text: "the token endpoint of " + showIssuer(p.issuer) + " cannot be used: " + err.Error()}
	}
	if r := d.text("registration_endpoint"); r != "" {
		if p.register, err = f.parse(r); err != nil {
			return &Error{Text: "the registration endpoint of " + showIssuer(p.issuer) + " cannot be used: " + err.Error()}
		}
	}
	if m := d.list("code_challenge_methods_supported"); m != nil && !has(m, "S256") {
		return &Error{Text: showIssuer(p.issuer) + " does not support PKCE with S256, which every login uses"}
	}
	if g := d.list("grant_types_supported"); g != nil && !has(g, "authorization_code") {
		return &Error{Text: showIssuer(p.issuer) + " supports no authorization code, and other grants are not supported"}
	}
	p.methods = d.list("token_endpoint_auth_methods_supported")
	p.offline = has(d.list("scopes_supported"), "offline_access")
	return nil
}

func has(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func showIssuer(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return "the authorization server"
	}
	return endpoint.Show(u)
}

// legacy is what 2025-03-26 had: the MCP server is its own authorization server, with metadata at its root or with fixed
// paths. No issuer was announced before, so its origin is what must fit.
func (f *fetcher) legacy(ctx context.Context, p *plan, tried *misses) error {
	for _, place := range []string{wellKnownServer, wellKnownOpenID} {
		u := f.at(f.server, place)
		d, err := f.document(ctx, u)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			if issuer, bad := url.Parse(d.text("issuer")); bad != nil || !endpoint.SameOrigin(issuer, f.server) {
				err = &Error{Text: endpoint.Show(u) + ": it is the document of another issuer"}
			}
		}
		if err == nil {
			return f.useMetadata(p, d)
		}
		tried.add(err)
	}
	p.authorize, p.token, p.register = f.at(f.server, "/authorize"), f.at(f.server, "/token"), f.at(f.server, "/register")
	tried.add(&Error{Text: "then the fixed paths of 2025-03-26"})
	return nil
}

// validScopes keeps what RFC 6749 allows as a scope.
func validScopes(in []string) (out []string) {
	for _, s := range in[:min(len(in), maxScopes)] {
		ok := s != "" && len(s) <= 512
		for i := range len(s) {
			ok = ok && s[i] > ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\'
		}
		if ok {
			out = append(out, s)
		}
	}
	return out
}

// scopesFor chooses what to ask for: what is configured, else what the challenge names, else what the resource lists, else
// nothing; besides, what the server asked for since the last login together with what that one got.
func (p plan) scopesFor(configured []string, held record) []string {
	scopes := p.supported
	switch {
	case len(configured) > 0:
		scopes = configured
	case len(p.challenge) > 0:
		scopes = p.challenge
	}
	if len(held.wanted) > 0 {
		scopes = union(scopes, held.scopes, held.wanted)
	}
	if p.offline && len(scopes) > 0 && len(configured) == 0 {
		scopes = union(scopes, []string{"offline_access"}) // else there would be no refresh token
	}
	return union(scopes)
}
