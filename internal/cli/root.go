package cli

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// typos is how many letters of a command may be wrong for it to be suggested.
const typos = 2

// version is the version in development: what a build says of itself when git knows no tag yet, or nothing is stamped.
const version = "0.105.0-dev"

// buildVersion is the version of this binary as Go stamped it from git (docs/release.md).
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	return stampedVersion(info.Main.Version)
}

// stampedVersion turns a module version into ours: a tag without its v; the version in development with the commit when there
// is no tag.
func stampedVersion(module string) string {
	if module == "" || module == "(devel)" {
		return version
	}
	if untagged, ok := strings.CutPrefix(module, "v0.0.0-"); ok {
		_, commit, _ := strings.Cut(untagged, "-")
		return version + "+" + strings.ReplaceAll(commit, "+", ".")
	}
	return strings.TrimPrefix(module, "v")
}

func newRoot(a *app) *cobra.Command {
	var o conversationFlags
	var prompt string
	root := &cobra.Command{
		Use:   "magi-code",
		Short: "A terminal coding agent with a careful MCP client",
		Long: `magi-code is a coding agent for the terminal. It calls its own tools and those of the MCP servers in
.mcp.json, and runs no server that you did not approve in exactly the form it stands there.

On a terminal, magi-code without a command opens Mission Control.

The model's key is in ANTHROPIC_API_KEY or OPENAI_API_KEY; --provider offline needs none. Settings, approvals and
sessions are in $MC_HOME (default ~/.magi-code).`,
		Example: `  magi-code demo                        see what it does: no key, no network, under a second
  magi-code                             open Mission Control
  magi-code run "explain this folder"   one turn without a terminal
  magi-code mcp list                    servers, their approval and whether they work`,
		Args:          noArgs,
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.missionControl(cmd.Context(), o, prompt)
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetVersionTemplate("magi-code {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = fmt.Errorf("--%s takes %s, not %q", bad.GetFlag().Name, kindOf(bad.GetFlag()), bad.GetValue())
		}
		return hinted(exitUsage, err, c.CommandPath()+" --help shows what it takes")
	})
	o.register(root)
	root.Flags().StringVar(&prompt, "prompt", "", "queue this `PROMPT`; it runs when all servers are ready")
	root.AddCommand(newRun(a), newMCP(a), newServe(a), newDemo(a), newDemoServer(a), newMan(a))
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args = noArgs // cobra takes an unknown shell for a call for help
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	return root
}

// kindOf is what a flag takes, in words.
func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return "a " + f.Value.Type()
}

// noArgs and exactArgs are cobra's checks with our exit code and the cure.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	what, hint := "takes no argument", cmd.CommandPath()+" --help shows what there is"
	if cmd.HasSubCommands() {
		what = "has no command"
		cmd.SuggestionsMinimumDistance = typos
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + cmd.CommandPath() + " " + near[0] + "? " + hint
		}
	}
	return hinted(exitUsage, usage("%s %s %q", cmd.CommandPath(), what, args[0]), hint)
}

func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return hinted(exitUsage, usage("%s takes %d argument(s), not %d", cmd.CommandPath(), len(names), len(args)), "usage: "+cmd.UseLine())
	}
}
