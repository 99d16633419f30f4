// The driver of the official conformance suite: one run of our real client, approval and login code against the server
// that the suite started, whose URL is the last argument. Its "browser" is an HTTP client. It knows the scenarios no better
// than a user would: it approves the server, logs in when a run says so, and calls every tool with arguments that fit its
// schema.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/oauth"
	"magi-code/internal/secret"
	"magi-code/internal/tool"
)

const (
	serverName = "conformance"
	// maxLogins is what a patient person does: once because a run says so, once more because of further scopes.
	maxLogins = 2
	limit     = 50 * time.Second // the suite gives up after 60
	// thinking is what a model does before its first call; the optional GET stream is open by then.
	thinking = 500 * time.Millisecond
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := run(ctx, os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		var hinted interface{ Hint() string }
		if errors.As(err, &hinted) && hinted.Hint() != "" {
			fmt.Fprintln(os.Stderr, "hint:", hinted.Hint())
		}
		os.Exit(1)
	}
}

// given is what the suite hands over beside the URL.
type given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

func run(ctx context.Context, url string) error {
	home, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	var g given
	if c := os.Getenv("MCP_CONFORMANCE_CONTEXT"); c != "" {
		if err := json.Unmarshal([]byte(c), &g); err != nil {
			return err
		}
	}
	// What a person reads in the server's manual.
	wantsToken := strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/")
	approved, err := approve(ctx, home, url, wantsToken, g)
	if err != nil {
		return err
	}
	u := user{home: home, approved: approved, secret: secret.New(g.ClientSecret)}
	for logins := 0; ; logins++ {
		err := u.session(ctx)
		if err == nil || !wantsToken || logins == maxLogins {
			return err
		}
		fmt.Fprintln(os.Stderr, "run:", err)
		if err := u.login(ctx); err != nil {
			return err
		}
	}
}

// approve writes a definition and approves it as magi-code mcp approve does.
func approve(ctx context.Context, home, url string, withOAuth bool, g given) (approval.Approved, error) {
	entry := map[string]any{"type": "http", "url": url}
	if withOAuth {
		o := map[string]any{}
		if g.ClientID != "" {
			o["client_id"] = g.ClientID
		}
		entry["oauth"] = o
	}
	b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{serverName: entry}})
	if err != nil {
		return approval.Approved{}, err
	}
	if err := os.WriteFile(filepath.Join(home, ".mcp.json"), b, 0o600); err != nil {
		return approval.Approved{}, err
	}
	cfg, err := definition.Load(home, filepath.Join(home, "nowhere"))
	if err != nil {
		return approval.Approved{}, err
	}
	store := approval.NewStore(home)
	view, err := store.Review(ctx, cfg.Servers[0])
	if err != nil {
		return approval.Approved{}, err
	}
	if err := store.Approve(ctx, view, os.LookupEnv); err != nil {
		return approval.Approved{}, err
	}
	entries, err := store.Check(cfg.Servers)
	if err != nil {
		return approval.Approved{}, err
	}
	a, ok := entries[0].Approved()
	if !ok {
		return a, errors.New("not approved")
	}
	return a, nil
}

// user is a person with one approved server.
type user struct {
	home     string
	approved approval.Approved
	secret   secret.String
}

// oauthOptions are those that the command line makes of a definition.
func (u user) oauthOptions() (oauth.Options, error) {
	d, _ := u.approved.Definition()
	l, err := d.Expand(os.LookupEnv)
	if err != nil {
		return oauth.Options{}, err
	}
	s := oauth.Server{Name: l.Name, URL: l.URL}
	if l.OAuth != nil {
		s.ClientID, s.Scopes, s.AuthorizationServer = l.OAuth.ClientID, l.OAuth.Scopes, l.OAuth.AuthorizationServer
	}
	return oauth.Options{Home: u.home, Server: s}, nil
}

// session starts the server, calls every tool, and ends.
func (u user) session(ctx context.Context) (err error) {
	o := mcp.Options{
		Servers: []approval.Approved{u.approved}, Lookup: os.LookupEnv, Version: "conformance", Scrub: secret.NewScrubber(),
		Tokens: func(approval.Approved) mcp.Tokens {
			if o, err := u.oauthOptions(); err == nil {
				return oauth.NewSource(o)
			}
			return nil
		},
	}
	m, err := mcp.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close(context.WithoutCancel(ctx))) }()
	if f := m.Failures(); len(f) > 0 {
		return f[0]
	}
	select {
	case <-time.After(thinking):
	case <-ctx.Done():
		return ctx.Err()
	}
	snapshot, _ := m.Prepare(ctx, mcp.Snapshot{})
	for _, t := range snapshot.Tools().All() {
		args, err := arguments(t)
		if err != nil {
			return err
		}
		r, err := m.Call(ctx, t.Server, t.Remote, args)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", t.Name, r.Plain())
	}
	return nil
}

// login is magi-code mcp login with a browser that consents at once.
func (u user) login(ctx context.Context) error {
	o, err := u.oauthOptions()
	if err != nil {
		return err
	}
	return oauth.Login(ctx, oauth.LoginOptions{
		Options: o, ClientSecret: u.secret, Open: browse,
		Warn: func(s string) { fmt.Fprintln(os.Stderr, "login:", s) },
	})
}

func browse(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{}).Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// arguments fills the required fields of a tool's schema.
func arguments(t tool.Tool) (jsontext.Value, error) {
	type schema struct {
		Properties map[string]struct {
			Type jsontext.Value `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	var outer struct {
		Properties struct {
			Arguments schema `json:"arguments"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(t.Schema, &outer); err != nil {
		return nil, err
	}
	args := map[string]any{}
	for name, p := range outer.Properties.Arguments.Properties {
		if !slices.Contains(outer.Properties.Arguments.Required, name) {
			continue
		}
		switch string(p.Type) {
		case `"number"`, `"integer"`:
			args[name] = 5
		case `"boolean"`:
			args[name] = true
		case `"array"`:
			args[name] = []string{}
		case `"object"`:
			args[name] = map[string]any{}
		default:
			args[name] = "text"
		}
	}
	return json.Marshal(args)
}
