package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// LoginOptions are Options with the hands and eyes of a person, given by the command line.
type LoginOptions struct {
	Options
	// ClientSecret belongs to the configured client id, where the authorization server gave one out. Usually empty.
	ClientSecret secret.String
	// Port of the callback on 127.0.0.1; 0 is any free one.
	Port int
	// Confirm shows who will be asked for what, before anything opens; an error ends the login. May be nil.
	Confirm func(ctx context.Context, p Prompt) error
	// ShowURL prints the URL to open, as one line. It is always called.
	ShowURL func(url string)
	// Open opens the browser; nil for --no-browser. An error is no end: the URL was printed.
	Open func(ctx context.Context, url string) error
	// Paste reads a line in which a person gives back the final URL, when the browser is on another machine. It returns
	// when ctx ends, and is called again after a line that was no answer. nil: nothing can be pasted.
	Paste func(ctx context.Context) (string, error)
	wait  time.Duration // for the browser; 0 is callbackWait
	// Warn shows one sentence about something that went wrong without ending the login. May be nil.
	Warn func(text string)
}

// Prompt is what a person should see before they go to the browser. All of it is safe to print.
type Prompt struct {
	Server     string
	Endpoint   string // where the token will be sent: origin and path
	Issuer     string // the authorization server
	Origin     string // where the browser goes
	ClientID   string
	Registered bool     // the client was registered just now
	Scopes     []string // nil: whatever the server gives by default
}

// errTimeout ends a login that nobody finished.
var errTimeout = errors.New("no answer came from the browser within 5 minutes")

// Login gets tokens through the browser and stores them. Tokens of an earlier login stay until the new ones are there.
func Login(ctx context.Context, o LoginOptions) error {
	bound, err := boundTo(o.Server)
	if err != nil {
		return err
	}
	if _, err := path(o.Options); err != nil {
		return err
	}
	f, err := newFetcher(o.Options)
	if err != nil {
		return err
	}
	defer f.close()
	p, err := f.discover(ctx, o.Options)
	if err != nil {
		return err
	}
	cb, err := newCallback(ctx, o.Port, o.Server.ClientID != "")
	if err != nil {
		return err
	}
	defer cb.close(ctx)
	held, _ := load(o.Options) // a file that cannot be used is replaced
	if held.issuer != p.issuer {
		held = record{} // another authorization server: nothing of it counts
	}
	scopes := p.scopesFor(o.Server.Scopes, held)
	c, err := f.identify(ctx, p, o.Options, o.ClientSecret, cb.uri, scopes)
	if err != nil {
		return err
	}
	verifier := newVerifier()
	o.learn(c.secret, verifier, cb.state)
	if err := o.confirm(ctx, p, c, bound, scopes); err != nil {
		return err
	}
	got, err := o.ask(ctx, cb, authorizeURL(p, c, cb, verifier, scopes))
	if err != nil {
		return err
	}
	o.learn(got.code)
	if err := p.checkAnswer(got); err != nil {
		return err
	}
	r := record{
		server: o.Server.Name, serverURL: bound, configured: o.Server.AuthorizationServer, clientConf: o.Server.ClientID, resource: p.resource,
		issuer: p.issuer, tokenURL: p.token.String(), clientID: c.id, authMethod: c.method, client: c.secret, scopes: scopes,
	}
	r, err = f.requestToken(ctx, r, url.Values{
		"grant_type": {"authorization_code"}, "code": {got.code.Reveal()}, "redirect_uri": {cb.uri}, "code_verifier": {verifier.Reveal()},
	}, o.now, got.code, verifier)
	if err != nil {
		return &Error{Text: "the login failed at the token endpoint: " + err.Error(), cause: err}
	}
	release, err := lock(ctx, o.Options)
	if err != nil {
		return err
	}
	defer release()
	return save(o.Options, r)
}

func (o LoginOptions) confirm(ctx context.Context, p plan, c client, bound string, scopes []string) error {
	if o.Confirm == nil {
		return nil
	}
	issuer := p.issuer
	if issuer == "" {
		issuer = endpoint.Origin(p.authorize)
	}
	return o.Confirm(ctx, Prompt{
		Server: o.Server.Name, Endpoint: untrusted.Line(bound), Issuer: showIssuer(issuer), Origin: untrusted.Line(endpoint.Origin(p.authorize)),
		ClientID: untrusted.Line(c.id), Registered: o.Server.ClientID == "", Scopes: scopes,
	})
}

// authorizeURL is built anew from the parsed endpoint: whatever its metadata held, this is one https (or loopback) URL
// without a character that a shell or a terminal could take for something else.
func authorizeURL(p plan, c client, cb *callback, verifier secret.String, scopes []string) string {
	u := *p.authorize
	q := u.Query()
	q.Set("response_type", "code")
	q.Set("client_id", c.id)
	q.Set("redirect_uri", cb.uri)
	q.Set("state", cb.state.Reveal())
	q.Set("code_challenge", challenge(verifier))
	q.Set("code_challenge_method", "S256")
	q.Set("resource", p.resource)
	if q.Del("scope"); len(scopes) > 0 {
		q.Set("scope", strings.Join(scopes, " "))
	}
	u.RawQuery = q.Encode()
	u.RawPath = ""
	return strings.NewReplacer("'", "%27", "`", "%60", "$", "%24", "(", "%28", ")", "%29", ";", "%3B", "!", "%21", "*", "%2A").Replace(u.String())
}

// ask sends the person to the browser and waits for the answer, from the listener or from the clipboard.
func (o LoginOptions) ask(ctx context.Context, cb *callback, url string) (redirected, error) {
	wait := o.wait
	if wait == 0 {
		wait = callbackWait
	}
	waiting, cancel := context.WithTimeoutCause(ctx, wait, errTimeout)
	var pasting sync.WaitGroup
	defer pasting.Wait()
	defer cancel()
	if o.ShowURL != nil {
		o.ShowURL(url)
	}
	if o.Paste != nil {
		pasting.Go(func() { o.readPasted(waiting, cb) })
	}
	if o.Open != nil {
		if err := o.Open(waiting, url); err != nil && waiting.Err() == nil {
			o.warn("the browser did not open; open the URL yourself")
		}
	}
	select {
	case r := <-cb.got:
		return r, nil
	case <-waiting.Done():
		err := context.Cause(waiting)
		if errors.Is(err, errTimeout) {
			return redirected{}, &Error{Text: errTimeout.Error(), Cure: "run the command again"}
		}
		return redirected{}, err
	}
}

func (o LoginOptions) readPasted(ctx context.Context, cb *callback) {
	for ctx.Err() == nil {
		line, err := o.Paste(ctx)
		if err != nil {
			return
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		err = cb.paste(line)
		if err == nil || errors.Is(err, errUsed) {
			return
		}
		o.warn("that is not the final URL of this login: it begins with " + cb.uri + "?")
	}
}

func (o LoginOptions) warn(text string) {
	if o.Warn != nil {
		o.Warn(text)
	}
}

// checkAnswer holds the answer against RFC 9207 before a code goes anywhere, and turns an error into ours.
func (p plan) checkAnswer(r redirected) error {
	legacy := p.issuer == "" && sameOrigin(r.iss, p.authorize) // 2025-03-26 without metadata
	switch {
	case r.hasIss && r.iss != p.issuer && !legacy:
		return &Error{Text: "the answer came from another authorization server than was asked; nothing was sent to it"}
	case !r.hasIss && p.claimsIss:
		return &Error{Text: "the answer does not say which authorization server it is from, though that one promised to; nothing was sent to it"}
	case r.err != "":
		e := &tokenError{r.err, r.reason}
		return &Error{Text: fmt.Sprintf("the login was refused: %v", e), cause: e}
	}
	return nil
}

func sameOrigin(raw string, u *url.URL) bool {
	other, err := url.Parse(raw)
	return err == nil && endpoint.Origin(other) == endpoint.Origin(u)
}
