package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/untrusted"
)

func newGet(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "get NAME",
		Short: "Show one definition as you would approve it, with its fingerprint",
		Long: `Shows the current definition of NAME, unexpanded and with literal secrets masked, its approval state, and the
fingerprint that binds an approval to exactly this definition, file and name.`,
		Example:           "  magi-code mcp get filesystem\n  magi-code mcp approve filesystem --fingerprint \"$(magi-code mcp get filesystem --json | jq -r .fingerprint)\"",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.get(cmd.Context(), args[0], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) get(ctx context.Context, name string, asJSON bool) error {
	s, v, err := a.review(ctx, name)
	if err != nil {
		return err
	}
	d := v.Server
	if !asJSON {
		a.printView(v)
		for _, sh := range s.config.Shadowed {
			if sh.Name == name {
				a.say("note: it replaces the whole definition of that name in %s", untrusted.Line(sh.Source))
			}
		}
		return nil
	}
	lines := []map[string]string{}
	for _, l := range d.Redacted() {
		m := map[string]string{"label": untrusted.Line(l.Label), "value": untrusted.Line(l.Value)}
		if l.Flag != "" {
			m["flag"] = l.Flag
		}
		lines = append(lines, m)
	}
	return a.printJSON(map[string]any{
		"name": d.Name, "type": d.Type, "source": d.Source, "scope": d.Scope,
		"approval": v.State.String(), "enabled": v.State == approval.IsApproved,
		"fingerprint": v.Fingerprint, "definition": lines,
	})
}

// review loads the servers and the view of one of them.
func (a *app) review(ctx context.Context, name string) (servers, approval.View, error) {
	s, err := a.loadServers()
	if err != nil {
		return s, approval.View{}, err
	}
	e, err := s.find(name)
	if err != nil {
		return s, approval.View{}, err
	}
	v, err := s.store.Review(ctx, e.Server)
	if err != nil {
		return s, approval.View{}, hinted(exitConfig, err, "")
	}
	return s, v, nil
}

// printView prints what a person needs to decide: all of it is ours or made visible.
func (a *app) printView(v approval.View) {
	d := v.Server
	fmt.Fprintf(a.out, "server       %s\n", d.Name)
	fmt.Fprintf(a.out, "source       %s (%s)\n", untrusted.Visible(d.Source), d.Scope)
	fmt.Fprintf(a.out, "approval     %s\n", v.State)
	a.printDefinition(d)
	fmt.Fprintf(a.out, "fingerprint  %s\n", v.Fingerprint)
}

func (a *app) printDefinition(d definition.Server) {
	for _, l := range d.Redacted() {
		flag := ""
		if l.Flag != "" {
			flag = "   <- " + l.Flag
		}
		fmt.Fprintf(a.out, "  %-10s %s%s\n", untrusted.Line(l.Label), untrusted.Line(l.Value), flag)
	}
}
