package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/oauth"
	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

func newLogin(a *app) *cobra.Command {
	var noBrowser bool
	var port int
	var secretEnv string
	c := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to an HTTP server that uses OAuth",
		Long: `Shows which authorization server will be asked for which scopes, then opens the browser, and always prints the
URL. When the browser is on another machine, paste the URL that it ends at. Runs never open a browser by themselves.`,
		Example:           "  magi-code mcp login tracker\n  magi-code mcp login tracker --no-browser",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.login(cmd.Context(), args[0], noBrowser, port, secretEnv)
		},
	}
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "print the URL only")
	c.Flags().IntVar(&port, "port", 0, "`PORT` of the callback on 127.0.0.1, when the client is registered with one (default: any free one)")
	c.Flags().StringVar(&secretEnv, "client-secret-env", "", "name of the `VARIABLE` with the client's secret, when it was registered with one")
	return c
}

func newLogout(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Delete the stored tokens of a server",
		Long:  "Deletes the local token file. It revokes nothing at the authorization server.",

		Example:           "  magi-code mcp logout tracker",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logout(cmd.Context(), args[0])
		},
	}
}

func (a *app) login(ctx context.Context, name string, noBrowser bool, port int, secretEnv string) error {
	s, err := a.loadServers()
	if err != nil {
		return err
	}
	proof, err := s.approved(name)
	if err != nil {
		return err
	}
	d, _ := proof.Definition() // approved returns no zero proof
	o, err := a.oauthOptions(s.folders, d)
	if err != nil {
		return err
	}
	login := oauth.LoginOptions{
		Options: o, Port: port,
		Confirm: a.showLogin,
		ShowURL: func(url string) {
			a.say("open this URL to log in:")
			fmt.Fprintln(a.err, untrusted.Line(url)) // it holds the state of this login, which say would redact
		},
		Warn: func(text string) { a.say("warning: %s", untrusted.Line(text)) },
	}
	if secretEnv != "" {
		v, ok := a.lookup(secretEnv)
		if !ok || v == "" {
			return hinted(exitUsage, usage("the variable %s is not set", untrusted.Line(secretEnv)), "set it to the client's secret")
		}
		login.ClientSecret = secret.New(v)
		a.scrub.Add(login.ClientSecret)
	}
	if !noBrowser {
		login.Open = openBrowser
	}
	if a.inTTY {
		a.say("when the browser is on another machine, paste the URL that it ends at and press Enter")
		login.Paste = a.line
	}
	if err := oauth.Login(ctx, login); err != nil {
		return loginError(name, err)
	}
	fmt.Fprintf(a.out, "logged in to %s\n", name)
	return nil
}

// showLogin says who will be asked for what, before anything opens.
func (a *app) showLogin(_ context.Context, p oauth.Prompt) error {
	scopes := "those that the server gives by default"
	if len(p.Scopes) > 0 {
		scopes = strings.Join(p.Scopes, " ")
	}
	client := p.ClientID
	if p.Registered {
		client += " (registered just now)"
	}
	a.say("server                %s (%s)", untrusted.Line(p.Server), p.Endpoint)
	a.say("authorization server  %s", p.Issuer)
	a.say("browser goes to       %s", p.Origin)
	a.say("client                %s", client)
	a.say("scopes                %s", untrusted.Line(scopes))
	return nil
}

func loginError(name string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	hint := "try again with magi-code mcp login " + name
	var o *oauth.Error
	if errors.As(err, &o) && o.Cure != "" {
		hint = o.Cure
	}
	return hinted(exitConnect, &mcp.Error{Server: name, Phase: mcp.PhaseConnect, Text: "login: " + err.Error()}, hint)
}

func (a *app) logout(ctx context.Context, name string) error {
	s, err := a.loadServers()
	if err != nil {
		return err
	}
	e, err := s.find(name)
	if err != nil {
		return err
	}
	had, err := oauth.Logout(ctx, oauth.Options{Home: s.home, Server: oauth.Server{Name: e.Server.Name}})
	if err != nil {
		return err
	}
	if !had {
		fmt.Fprintf(a.out, "%s had no stored tokens\n", name)
		return nil
	}
	fmt.Fprintf(a.out, "logged out of %s; the tokens were deleted here and not revoked there\n", name)
	return nil
}

// oauthOptions expands an approved definition for its tokens.
func (a *app) oauthOptions(f folders, d definition.Server) (oauth.Options, error) {
	if d.Type != definition.HTTP {
		return oauth.Options{}, hinted(exitConfig, &mcp.Error{Server: d.Name, Phase: mcp.PhaseConfig, Text: "it is a program on this machine, so there is nothing to log in to"},
			"give it what it needs, such as a token, by variables in its \"env\"")
	}
	if d.OAuth == nil {
		return oauth.Options{}, hinted(exitConfig, &mcp.Error{Server: d.Name, Phase: mcp.PhaseConfig, Text: "it has no oauth settings, so there is nothing to log in to"},
			`add "oauth": {} to its definition when it uses OAuth`)
	}
	l, err := d.Expand(a.lookup)
	if err != nil {
		return oauth.Options{}, err
	}
	server := oauth.Server{Name: d.Name, URL: l.URL, ClientID: d.OAuth.ClientID, Scopes: d.OAuth.Scopes, AuthorizationServer: d.OAuth.AuthorizationServer}
	for _, h := range l.Headers {
		server.Headers = append(server.Headers, oauth.Header{Name: h.Name, Value: h.Value})
	}
	a.scrub.Add(l.Secrets()...)
	return oauth.Options{Home: f.home, Server: server, Scrub: a.scrub}, nil
}

// tokens gives the manager the silent source of a server's tokens.
func (a *app) tokens(f folders) func(approval.Approved) mcp.Tokens {
	return func(p approval.Approved) mcp.Tokens {
		d, _ := p.Definition()
		o, err := a.oauthOptions(f, d)
		if err != nil {
			return nil // the same expansion fails in the manager, which says so
		}
		return oauth.NewSource(o)
	}
}

// oauthState is where the login of an approved server stands; "" for servers without oauth, and for those that are not
// approved, whose definitions are not expanded.
func (a *app) oauthState(f folders, e approval.Entry) string {
	if _, ok := e.Approved(); !ok || e.Server.OAuth == nil {
		return ""
	}
	o, err := a.oauthOptions(f, e.Server)
	if err != nil {
		return ""
	}
	state, _ := oauth.Status(o) // Invalid says it; mcp login mends it
	return state.String()
}

// openBrowser hands the URL to the system's opener, without a shell. It does not wait for the browser.
func openBrowser(_ context.Context, url string) error {
	argv := []string{"xdg-open", url}
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open", url}
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("no browser could be opened: %w", err)
	}
	return cmd.Process.Release()
}

// maxPasted bounds a pasted line, in bytes.
const maxPasted = 64 << 10

// terminal reads lines of stdin beside everything else. A read of a terminal cannot be cancelled, so its goroutine ends
// with the process.
type terminal struct {
	once  sync.Once
	wg    sync.WaitGroup
	lines chan string
}

// line returns the next line of stdin, or an error when ctx ends or stdin does.
func (a *app) line(ctx context.Context) (string, error) {
	a.terminal.once.Do(func() {
		a.terminal.lines = make(chan string)
		a.terminal.wg.Go(func() {
			defer close(a.terminal.lines)
			lines := bufio.NewScanner(a.in)
			lines.Buffer(nil, maxPasted)
			for lines.Scan() {
				a.terminal.lines <- lines.Text()
			}
		})
	})
	select {
	case text, ok := <-a.terminal.lines:
		if !ok {
			return "", io.EOF
		}
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
