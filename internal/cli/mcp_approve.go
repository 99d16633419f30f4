package cli

import (
	"bufio"
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/settings"
	"magi-code/internal/untrusted"
)

func newApprove(a *app) *cobra.Command {
	var fingerprint string
	c := &cobra.Command{
		Use:   "approve NAME",
		Short: "Approve a definition in exactly its present form",
		Long: `Shows the definition of NAME with its source and fingerprint and asks. Without a terminal, pass the
fingerprint that magi-code mcp get NAME shows: a definition that changed in between is refused. The approval
counts from the next start on.`,
		Example:           "  magi-code mcp approve filesystem\n  magi-code mcp approve filesystem --fingerprint 3f5c...",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.approve(cmd.Context(), args[0], fingerprint)
		},
	}
	c.Flags().StringVar(&fingerprint, "fingerprint", "", "the `HEX` digits shown by mcp get; approves without asking")
	return c
}

func (a *app) approve(ctx context.Context, name, fingerprint string) error {
	s, v, err := a.review(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case fingerprint != "":
		if subtle.ConstantTimeCompare([]byte(fingerprint), []byte(v.Fingerprint)) != 1 {
			return hinted(exitNotApproved, &mcp.Error{Server: name, Phase: mcp.PhaseApproval,
				Text: "the fingerprint is not that of the present definition, so nothing was approved"},
				"look at what changed with magi-code mcp get "+name)
		}
	case !a.inTTY || !a.outTTY:
		return hinted(exitUsage, &mcp.Error{Server: name, Phase: mcp.PhaseApproval, Text: "nobody can be asked without a terminal"},
			"look at it with magi-code mcp get "+name+", then pass its fingerprint: magi-code mcp approve "+name+" --fingerprint HEX")
	default:
		a.printView(v)
		if !a.confirm(ctx, "Approve this definition, so that magi-code may run it from the next start on?") {
			text := "not approved; nothing was changed"
			if _, err := s.approved(name); err == nil {
				text = "nothing was changed: it stays approved, until magi-code mcp revoke " + name
			}
			return silent(exitNotApproved, a.tell(text))
		}
	}
	if err := s.store.Approve(ctx, v, a.lookup); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "approved %s (%s, fingerprint %s); it counts from the next start on\n", name, untrusted.Visible(v.Server.Source), v.Fingerprint[:12])
	return nil
}

// tell prints a sentence and returns it as an error.
func (a *app) tell(text string) error {
	a.say("%s", text)
	return fmt.Errorf("%s", text)
}

// exitOnInterrupt ends the process when ctx ends, until the returned func is called: for the times when nothing of
// ours runs and stdin is read, which cannot be cancelled.
func (a *app) exitOnInterrupt(ctx context.Context) (stop func()) {
	end := context.AfterFunc(ctx, func() {
		a.say("interrupted")
		os.Exit(exitInterrupted)
	})
	return func() { end() }
}

// confirm asks a yes-or-no question on the terminal; anything but y or yes is no.
func (a *app) confirm(ctx context.Context, question string) bool {
	defer a.exitOnInterrupt(ctx)()
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(a.in, maxAnswer)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.err)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// maxAnswer bounds what is read for a yes or no, in bytes.
const maxAnswer = 1 << 10

func newRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke an approval; the server stays disabled until approved again",
		Long: `Marks NAME as revoked. It works even when the definition no longer parses or starts. A running magi-code
keeps its connections until it ends.`,
		Example:           "  magi-code mcp revoke filesystem",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.revoke(cmd.Context(), args[0])
		},
	}
}

func (a *app) revoke(ctx context.Context, name string) error {
	f, err := a.folders()
	if err != nil {
		return err
	}
	store := approval.NewStore(f.home)
	sources, err := a.revocable(f, name)
	if err != nil {
		return err
	}
	for _, source := range sources {
		if err := store.Revoke(ctx, source, name); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "revoked %s (%s); it counts from the next start on\n", name, untrusted.Visible(source))
	}
	return nil
}

// revocable are the sources for which name is to be revoked: that of the effective definition, or, when the
// files no longer hold it or no longer parse, every source of this folder for which an approval is stored.
func (a *app) revocable(f folders, name string) ([]string, error) {
	config, loadErr := definition.Load(f.home, f.cwd)
	for _, d := range config.Servers {
		if d.Name == name {
			return []string{d.Source}, nil
		}
	}
	var sources []string
	for _, file := range []struct {
		path  string
		scope definition.Scope
	}{{f.globalMCP(), definition.Global}, {f.projectMCP(), definition.Project}} {
		source, err := definition.CanonicalPath(file.path, file.scope)
		if err != nil {
			source = resolve(file.path)
		}
		record, err := settings.Raw(f.globalSettings(), "capabilities", "mcp_approvals", source, name)
		if err != nil {
			return nil, err
		}
		if record != nil {
			sources = append(sources, source)
		}
	}
	if len(sources) > 0 {
		return sources, nil
	}
	if loadErr != nil {
		return nil, loadErr
	}
	return nil, hinted(exitConfig, &mcp.Error{Server: untrusted.Head(untrusted.Line(name), 80), Phase: mcp.PhaseConfig, Text: "no such server here, and no approval of one"}, "magi-code mcp list shows what there is")
}
