package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// servers are the definitions of both files with what the user allowed.
type servers struct {
	folders
	config  definition.Config
	store   *approval.Store
	entries []approval.Entry
}

// loadServers reads both .mcp.json and the approvals. Any structural error ends it.
func (a *app) loadServers() (servers, error) {
	f, err := a.folders()
	if err != nil {
		return servers{}, err
	}
	return loadServers(f)
}

func loadServers(f folders) (servers, error) {
	config, err := definition.Load(f.home, f.cwd)
	if err != nil {
		return servers{}, err
	}
	store := approval.NewStore(f.home)
	entries, err := store.Check(config.Servers)
	if err != nil {
		return servers{}, hinted(exitConfig, err, "")
	}
	return servers{f, config, store, entries}, nil
}

// find returns the entry of that name, or an error that says which names there are.
func (s servers) find(name string) (approval.Entry, error) {
	var names []string
	for _, e := range s.entries {
		if e.Server.Name == name {
			return e, nil
		}
		names = append(names, e.Server.Name)
	}
	hint := "add it: magi-code mcp add " + name + " -- COMMAND [ARG...]"
	if len(names) > 0 {
		hint = "configured here: " + strings.Join(names, ", ")
	}
	return approval.Entry{}, hinted(exitConfig, &mcp.Error{
		Server: untrusted.Head(untrusted.Line(name), 80), Phase: mcp.PhaseConfig,
		Text: "no such server in " + s.globalMCP() + " or " + s.projectMCP(),
	}, hint)
}

// approved returns the proof for a server, or the error that says how to approve it.
func (s servers) approved(name string) (approval.Approved, error) {
	e, err := s.find(name)
	if err != nil {
		return approval.Approved{}, err
	}
	if p, ok := e.Approved(); ok {
		return p, nil
	}
	return approval.Approved{}, notApproved(e)
}

func notApproved(e approval.Entry) error {
	text := map[approval.State]string{
		approval.NeverApproved:   "it was never approved",
		approval.Revoked:         "its approval was revoked",
		approval.Changed:         "its definition changed since it was approved",
		approval.RenewalRequired: "its approval must be renewed: it is unbound, of an unsupported version, or the key is gone",
		approval.Invalid:         "its approval record is malformed",
	}[e.State]
	return &mcp.Error{Server: e.Server.Name, Phase: mcp.PhaseApproval, Text: text,
		Hint: "look at it with magi-code mcp get " + e.Server.Name + ", then approve it with magi-code mcp approve " + e.Server.Name}
}

// proofs are those of all approved servers.
func (s servers) proofs() (all []approval.Approved) {
	for _, e := range s.entries {
		if p, ok := e.Approved(); ok {
			all = append(all, p)
		}
	}
	return all
}

// undecided says which servers do not start because nobody decided about their present form; a revoked one was decided about.
func (s servers) undecided() string {
	const shown = 5 // enough to see what is meant; the list shows the others
	var names []string
	for _, e := range s.entries {
		if e.State != approval.IsApproved && e.State != approval.Revoked {
			names = append(names, fmt.Sprintf("%s (%s)", e.Server.Name, e.State))
		}
	}
	if len(names) == 0 {
		return ""
	}
	if more := len(names) - shown; more > 0 {
		names = append(names[:shown], fmt.Sprintf("%d more", more))
	}
	return "not started, because you did not approve them in this form: " + strings.Join(names, ", ") + "; magi-code mcp list shows all"
}

// closeWait bounds the end of all servers; the transports' own bounds (2 s + 2 s) lie below it.
const closeWait = 6 * time.Second

// hurriedClose bounds it after an interruption, so that Ctrl-C is answered within a second.
const hurriedClose = 400 * time.Millisecond

// managerOptions are what every start of servers has in common.
func (a *app) managerOptions(f folders, proofs []approval.Approved) mcp.Options {
	for _, variable := range keyVariables() { // a local server may find them in /proc, and say them
		if v, ok := a.lookup(variable); ok {
			a.scrub.Add(secret.New(v))
		}
	}
	return mcp.Options{
		Servers: proofs, Lookup: a.lookup, Dir: f.cwd, Version: buildVersion(), Scrub: a.scrub,
		Tokens: a.tokens(f),
	}
}

// closeManager ends all servers, hurriedly once ctx has ended, be it only meanwhile.
func closeManager(ctx context.Context, m *mcp.Manager) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(hurriedClose, cancel) })
	defer stop()
	_ = m.Close(end) // what did not end by itself was killed; there is nothing left to do about it
}

// warn prints what was ignored in the files.
func (a *app) warn(ws []definition.Warning) {
	for _, w := range ws {
		where := w.Source
		if w.Server != "" {
			where += fmt.Sprintf(": server %q", w.Server)
		}
		if w.Field != "" {
			where += ": " + w.Field
		}
		a.say("warning: %s", untrusted.Line(where+": "+w.Text))
	}
}

// completeServers completes the names of configured servers.
func (a *app) completeServers(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	s, err := a.loadServers()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, e := range s.entries {
		names = append(names, cobra.CompletionWithDesc(e.Server.Name, string(e.Server.Type)+", "+e.State.String()))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
