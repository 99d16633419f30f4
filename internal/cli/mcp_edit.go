package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/settings"
	"magi-code/internal/untrusted"
)

// entry is a definition as mcp add writes it; the order of its fields is that of the file.
type entry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Timeout int               `json:"timeout,omitempty"`
	OAuth   *entryOAuth       `json:"oauth,omitempty"`
}

type entryOAuth struct {
	ClientID            string   `json:"client_id,omitempty"`
	Scopes              []string `json:"scopes,omitempty"`
	AuthorizationServer string   `json:"authorization_server,omitempty"`
}

// addFlags are the flags of mcp add.
type addFlags struct {
	global, replace, oauth bool
	url, clientID, issuer  string
	env, headers, scopes   []string
	timeout                int
}

func newAdd(a *app) *cobra.Command {
	var o addFlags
	c := &cobra.Command{
		Use:   "add NAME [flags] -- COMMAND [ARG...]",
		Short: "Add a server to .mcp.json; it stays disabled until you approve it",
		Long: `Writes a definition into the .mcp.json of the working folder, or with --global into that of $MC_HOME, and keeps
everything else in the file as it is. Values may hold ${VAR} and ${VAR:-default}; put secrets there, never into the file.`,
		Example: `  magi-code mcp add filesystem -- npx -y @modelcontextprotocol/server-filesystem .
  magi-code mcp add github --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- github-mcp-server stdio
  magi-code mcp add search --url https://mcp.example.com/mcp --header 'Authorization=Bearer ${SEARCH_TOKEN}'
  magi-code mcp add tracker --url https://mcp.example.com/mcp --oauth --scope read`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactArgs("NAME")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.add(cmd.Context(), args[0], args[1:], o)
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if _, ok := errors.AsType[*pflag.NotExistError](err); ok { // most likely the command's, as in: mcp add NAME npx -y PACKAGE
			return hinted(exitUsage, err, "flags of the server's own command stand behind --: "+c.Parent().CommandPath()+" "+c.Use)
		}
		return c.Parent().FlagErrorFunc()(c, err)
	})
	f := c.Flags()
	f.BoolVar(&o.global, "global", false, "write to $MC_HOME/.mcp.json, for all projects")
	f.BoolVar(&o.replace, "replace", false, "replace a definition of that name")
	f.StringVar(&o.url, "url", "", "`URL` of an HTTP server, instead of a command")
	f.StringArrayVar(&o.env, "env", nil, "`NAME=VALUE` for the child's environment (repeatable)")
	f.StringArrayVar(&o.headers, "header", nil, "`NAME=VALUE` sent with each request (repeatable)")
	f.IntVar(&o.timeout, "timeout", 0, "`SECONDS` per request, 1 to 300 (default 30)")
	f.BoolVar(&o.oauth, "oauth", false, "use OAuth: magi-code mcp login NAME after approval")
	f.StringVar(&o.clientID, "oauth-client-id", "", "`ID` of the registered public client (implies --oauth)")
	f.StringArrayVar(&o.scopes, "scope", nil, "an OAuth `SCOPE` to ask for (repeatable, implies --oauth)")
	f.StringVar(&o.issuer, "oauth-server", "", "`URL` of the authorization server, when it is not the one that the server names (implies --oauth)")
	return c
}

func (o addFlags) entry(command []string) (entry, error) {
	e := entry{URL: o.url, Timeout: o.timeout}
	var err error
	if e.Env, err = pairs("--env", o.env); err != nil {
		return e, err
	}
	if e.Headers, err = pairs("--header", o.headers); err != nil {
		return e, err
	}
	if o.oauth || o.clientID != "" || len(o.scopes) > 0 || o.issuer != "" {
		e.OAuth = &entryOAuth{o.clientID, o.scopes, o.issuer}
	}
	switch {
	case o.url == "" && len(command) == 0:
		return e, hinted(exitUsage, usage("mcp add needs a command or --url"), "for example: magi-code mcp add NAME -- COMMAND [ARG...]")
	case o.url != "" && len(command) > 0:
		return e, hinted(exitUsage, usage("a server has a command or --url, not both"), "leave one of them out")
	case o.url != "":
		e.Type = "http"
	default:
		e.Command, e.Args = command[0], command[1:]
	}
	return e, nil
}

func pairs(flag string, list []string) (map[string]string, error) {
	m := map[string]string{}
	for _, p := range list {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, hinted(exitUsage, usage("%s wants NAME=VALUE", flag), "for example "+flag+" 'NAME=${VARIABLE}'")
		}
		if _, twice := m[name]; twice {
			return nil, usage("%s names %q twice", flag, name)
		}
		m[name] = value
	}
	return m, nil
}

func (a *app) add(ctx context.Context, name string, command []string, o addFlags) error {
	f, err := a.folders()
	if err != nil {
		return err
	}
	e, err := o.entry(command)
	if err != nil {
		return err
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := checkEntry(name, value); err != nil {
		return err
	}
	if o.url != "" && !strings.Contains(o.url, "${") { // one with references is checked when it is expanded
		if why, hint := definition.CheckURL(o.url); why != "" {
			return hinted(exitUsage, &mcp.Error{Server: name, Phase: mcp.PhaseConfig, Text: "url: " + why}, hint)
		}
	}
	path := f.projectMCP()
	if o.global {
		path = f.globalMCP()
	}
	err = settings.Update(ctx, path, []string{"mcpServers", name}, func(old jsontext.Value) (jsontext.Value, error) {
		if old != nil && !o.replace {
			return nil, hinted(exitConfig, &mcp.Error{Server: name, Phase: mcp.PhaseConfig, Text: "it is already defined in " + path}, "pass --replace to replace its whole definition; that ends its approval")
		}
		return value, nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "added %s to %s\n", name, untrusted.Visible(path))
	a.say("it is disabled until you approve it: magi-code mcp approve %s", name)
	return nil
}

// checkEntry parses a definition on its own, so that a bad one never reaches the user's file.
func checkEntry(name string, value []byte) error {
	doc, err := json.Marshal(map[string]any{"mcpServers": map[string]json.RawMessage{name: value}})
	if err != nil {
		return err
	}
	err = definition.CheckText(doc)
	var d *definition.Error
	if errors.As(err, &d) {
		return hinted(exitUsage, &mcp.Error{Server: untrusted.Head(untrusted.Line(name), 80), Phase: mcp.PhaseConfig, Text: strings.TrimPrefix(d.Field+": "+d.Text, ": ")}, d.Hint)
	}
	return err
}

func newRemove(a *app) *cobra.Command {
	var global bool
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server from .mcp.json, with its approval",
		Long: `Removes the definition of NAME from the .mcp.json of the working folder, or with --global from that of $MC_HOME,
and forgets its approval. Stored OAuth tokens stay until magi-code mcp logout NAME.`,
		Example:           "  magi-code mcp remove filesystem\n  magi-code mcp remove search --global",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.remove(cmd.Context(), args[0], global)
		},
	}
	c.Flags().BoolVar(&global, "global", false, "remove it from $MC_HOME/.mcp.json")
	return c
}

func (a *app) remove(ctx context.Context, name string, global bool) error {
	f, err := a.folders()
	if err != nil {
		return err
	}
	path, other, flag := f.projectMCP(), f.globalMCP(), " --global"
	if global {
		path, other, flag = other, path, ""
	}
	old, err := settings.Raw(path, "mcpServers", name)
	if err != nil {
		return err
	}
	if old == nil {
		hint := "magi-code mcp list shows what there is"
		if there, _ := settings.Raw(other, "mcpServers", name); there != nil {
			hint = "it stands in " + other + ": magi-code mcp remove " + name + flag
		}
		return hinted(exitConfig, &mcp.Error{Server: untrusted.Head(untrusted.Line(name), 80), Phase: mcp.PhaseConfig, Text: "no such server in " + path}, hint)
	}
	// The approval goes first: whatever happens in between, no approval waits for a definition that comes back.
	keys := []string{"capabilities", "mcp_approvals", resolve(path), name}
	if record, err := settings.Raw(f.globalSettings(), keys...); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	} else if record != nil {
		if err := settings.Patch(ctx, f.globalSettings(), keys, nil); err != nil {
			return err
		}
	}
	if err := settings.Patch(ctx, path, []string{"mcpServers", name}, nil); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "removed %s from %s\n", name, untrusted.Visible(path))
	return nil
}
