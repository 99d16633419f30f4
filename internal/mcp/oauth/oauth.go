// Package oauth logs in to HTTP servers and gives out their tokens: Login is interactive and belongs to the command line
// alone, Source is silent and belongs to runs.
//
// golang.org/x/oauth2 and the official SDK's oauthex are not used, for they do not hold our
// rules: their token exchange cannot send a resource with a refresh, fails on an expires_in that is not a number, takes a
// JSON answer of type text/plain for a form, and puts whole answers and URLs into its errors; oauthex.RegisterClient
// prints the answer with the client secret when it cannot read it; oauthex.GetAuthServerMeta refuses servers that do not
// list PKCE methods (all OpenID ones that are silent about it) and replaces the dialer that we hand in.
package oauth

import (
	"net/http"
	"time"

	"magi-code/internal/secret"
)

// Server is what of an HTTP server's definition concerns its tokens, expanded and checked.
type Server struct {
	Name    string
	URL     secret.String
	Headers []Header // configured headers: they go to the MCP endpoint and nowhere else
	// ClientID, Scopes and AuthorizationServer are the oauth settings; each may be empty.
	ClientID            string
	Scopes              []string
	AuthorizationServer string
}

// Header is a configured request header with its expanded value.
type Header struct {
	Name  string
	Value secret.String
}

// Options are what Login, NewSource, Status and Logout work with.
type Options struct {
	Home   string // MC_HOME; tokens are below mcp-tokens
	Server Server
	// HTTP carries the requests; nil means a transport of our own, with proxies from the environment and platform TLS.
	HTTP http.RoundTripper
	// Scrub learns every token and client secret that is read or made. May be nil.
	Scrub *secret.Scrubber
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

func (o Options) learn(values ...secret.String) {
	if o.Scrub != nil {
		o.Scrub.Add(values...)
	}
}

// State is where a server's login stands. Its zero value is NotAuthenticated.
type State int

const (
	NotAuthenticated State = iota
	Authenticated
	Expired     // and it cannot be refreshed
	Refreshable // expired, and the next run refreshes it
	Invalid     // the token file cannot be used
)

// String returns the words of the specification.
func (s State) String() string {
	switch s {
	case Authenticated:
		return "authenticated"
	case Expired:
		return "expired"
	case Refreshable:
		return "refreshable"
	case Invalid:
		return "invalid"
	}
	return "not authenticated"
}

// Status reads the token file and reports where the login stands. The error says why a file is invalid.
func Status(o Options) (State, error) {
	r, err := load(o)
	if err != nil {
		return Invalid, err
	}
	return r.state(o.now()), nil
}

// Error is a failure in one sentence, sanitized and without secrets.
type Error struct {
	Text  string
	Cure  string // what to do; may be empty
	cause error
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Text }

// Hint returns the cure.
func (e *Error) Hint() string { return e.Cure }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

func needLogin(name, text string) error {
	return &Error{Text: text, Cure: `run "magi-code mcp login ` + name + `"`}
}
