package oauth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/safefile"
	"magi-code/internal/secret"
)

const (
	folder        = "mcp-tokens"
	recordVersion = 1
	maxRecord     = 256 << 10        // bytes; real ones stay below 16 KiB
	lockWait      = 45 * time.Second // for another process that refreshes
	maxName       = 64               // bytes of a server name, as in qualified tool names
)

// record is what a token file says. Its zero value is that of a server without a login.
type record struct {
	server     string // name
	serverURL  string // origin and path of the MCP endpoint
	configured string // the oauth.authorization_server of the definition
	clientConf string // the oauth.client_id of the definition

	resource   string // RFC 8707
	issuer     string // as the authorization server writes it
	tokenURL   string
	clientID   string
	authMethod string // none, client_secret_post, client_secret_basic
	client     secret.String
	access     secret.String
	refresh    secret.String
	scopes     []string  // granted
	wanted     []string  // asked for by the server since: the next login asks for them too
	obtained   time.Time // when access was given out
	refreshAt  time.Time // zero: when it is refused
	expires    time.Time // zero: not known
}

// file is the stored form, the one place where tokens are written out.
type file struct {
	Version       int       `json:"version"`
	Server        string    `json:"server"`
	ServerURL     string    `json:"server_url"`
	Configured    string    `json:"configured_authorization_server,omitempty"`
	ClientConf    string    `json:"configured_client_id,omitempty"`
	Resource      string    `json:"resource"`
	Issuer        string    `json:"issuer"`
	TokenEndpoint string    `json:"token_endpoint"`
	ClientID      string    `json:"client_id"`
	ClientSecret  string    `json:"client_secret,omitempty"`
	AuthMethod    string    `json:"token_endpoint_auth_method"`
	AccessToken   string    `json:"access_token,omitempty"`
	RefreshToken  string    `json:"refresh_token,omitempty"`
	Scopes        []string  `json:"scopes,omitempty"`
	Wanted        []string  `json:"wanted_scopes,omitempty"`
	Obtained      time.Time `json:"obtained_at"`
	RefreshAt     time.Time `json:"refresh_at,omitzero"`
	Expires       time.Time `json:"expires_at,omitzero"`
}

func (r record) state(now time.Time) State {
	switch {
	case r.access.IsEmpty():
		return NotAuthenticated
	case r.expires.IsZero() || now.Before(r.expires):
		return Authenticated
	case !r.refresh.IsEmpty():
		return Refreshable
	}
	return Expired
}

// path is the token file of a server. The name cannot leave the folder.
func path(o Options) (string, error) {
	name := o.Server.Name
	ok := name != "" && len(name) <= maxName && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	if !ok || o.Home == "" || !filepath.IsAbs(o.Home) {
		return "", &Error{Text: "a token file needs a server name of letters, digits, _ and -, and an absolute home"}
	}
	return filepath.Join(o.Home, folder, name+".json"), nil
}

// boundTo is the origin and path that a token belongs to. The query is no part of it: it may hold a secret.
func boundTo(s Server) (string, error) {
	u, err := endpoint.Parse(s.URL.Reveal())
	if err != nil {
		return "", &Error{Text: err.Error()}
	}
	return endpoint.Origin(u) + u.EscapedPath(), nil
}

// load reads the record of a server. A missing file, and one that belongs to another definition of the same name, is the
// zero record: such a token is never used.
func load(o Options) (record, error) {
	p, err := path(o)
	if err != nil {
		return record{}, err
	}
	b, err := safefile.ReadPrivate(p, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, &Error{Text: err.Error(), Cure: fmt.Sprintf("remove %s and log in again", p), cause: err}
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil || f.Version != recordVersion {
		return record{}, &Error{Text: "the token file " + p + " is damaged or of another version", Cure: `run "magi-code mcp login ` + o.Server.Name + `"`}
	}
	url, err := boundTo(o.Server)
	if err != nil {
		return record{}, err
	}
	if f.Server != o.Server.Name || f.ServerURL != url || f.Configured != o.Server.AuthorizationServer || f.ClientConf != o.Server.ClientID {
		return record{}, nil
	}
	r := record{
		server: f.Server, serverURL: f.ServerURL, configured: f.Configured, clientConf: f.ClientConf, resource: f.Resource, issuer: f.Issuer,
		tokenURL: f.TokenEndpoint, clientID: f.ClientID, authMethod: f.AuthMethod, client: secret.New(f.ClientSecret), access: secret.New(f.AccessToken),
		refresh: secret.New(f.RefreshToken), scopes: f.Scopes, wanted: f.Wanted, obtained: f.Obtained, refreshAt: f.RefreshAt, expires: f.Expires,
	}
	if !r.access.IsEmpty() && !validToken(f.AccessToken) {
		return record{}, &Error{Text: "the token file " + p + " holds a token that cannot be sent"}
	}
	o.learn(r.client, r.access, r.refresh)
	return r, nil
}

// save writes the record. The caller holds the lock.
func save(o Options, r record) error {
	p, err := path(o)
	if err != nil {
		return err
	}
	o.learn(r.client, r.access, r.refresh)
	b, err := json.Marshal(file{
		Version: recordVersion, Server: r.server, ServerURL: r.serverURL, Configured: r.configured, ClientConf: r.clientConf, Resource: r.resource,
		Issuer: r.issuer, TokenEndpoint: r.tokenURL, ClientID: r.clientID, ClientSecret: r.client.Reveal(), AuthMethod: r.authMethod,
		AccessToken: r.access.Reveal(), RefreshToken: r.refresh.Reveal(), Scopes: r.scopes, Wanted: r.wanted, Obtained: r.obtained.UTC(),
		RefreshAt: r.refreshAt.UTC(), Expires: r.expires.UTC(),
	}, jsontext.Multiline(true))
	if err != nil {
		return &Error{Text: "the tokens cannot be written as JSON"}
	}
	if len(b) >= maxRecord { // it could not be read again
		return &Error{Text: fmt.Sprintf("the authorization server gave tokens and secrets of %d KiB, which is more than is stored", len(b)>>10)}
	}
	if err := ownFile(p); err != nil {
		return err
	}
	return safefile.Write(p, append(b, '\n'), 0o600)
}

// ownFile makes sure that what is replaced is a file of ours alone: a new one keeps the mode of the old.
func ownFile(p string) error {
	info, err := os.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return &Error{Text: p + " is not a regular file", Cure: "remove it"}
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(p, 0o600)
	}
	return nil
}

// lock takes the cross-process lock of a server's token file, making the folder when there is none.
func lock(ctx context.Context, o Options) (release func(), err error) {
	p, err := path(o)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(p)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &Error{Text: dir + " is not a folder", Cure: "remove it"}
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	unlock, err := safefile.Lock(ctx, p+".lock")
	if err != nil {
		return nil, err
	}
	safefile.Sweep(p) // what a killed process left holds tokens
	return func() { _ = unlock() }, nil
}

// Logout deletes the token file; it revokes nothing at the authorization server. It reports whether there was one.
func Logout(ctx context.Context, o Options) (bool, error) {
	p, err := path(o)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(filepath.Dir(p)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	release, err := lock(ctx, o)
	if err != nil {
		return false, err
	}
	defer release()
	err = os.Remove(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// union joins scope lists, keeping the order of first mention.
func union(lists ...[]string) (out []string) {
	for _, l := range lists {
		for _, s := range l {
			if s != "" && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}
