package cli

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is stamped by the release build (-ldflags "-X magi-code/internal/cli.testOnlyVersion=..." is not how:
// see buildVersion).
const version = "0.105.0-dev"

// buildVersion is the version of this binary: the stamped module version of a release, else the development version.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}

func newRoot(a *app) *cobra.Command {
	var o conversationFlags
	var prompt string
	root := &cobra.Command{
		Use:   "magi-code",
		Short: "A terminal coding agent with a careful MCP client",
		Long: `magi-code is a coding agent for the terminal. It calls its own tools and those of the MCP servers in
.mcp.json, and runs no server that you did not approve in exactly the form it stands there.

On a terminal, magi-code without a command opens Mission Control.`,
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
		return hinted(exitUsage, err, c.CommandPath()+" --help shows what it takes")
	})
	o.register(root)
	root.Flags().StringVar(&prompt, "prompt", "", "queue this prompt; it runs when all servers are ready")
	root.AddCommand(newRun(a), newMCP(a), newServe(a), newDemo(a), newDemoServer(a), newMan(a))
	return root
}

// noArgs and exactArgs are cobra's checks with our exit code and the cure.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	what := "takes no argument"
	if cmd.HasSubCommands() {
		what = "has no command"
	}
	return hinted(exitUsage, usage("%s %s %q", cmd.CommandPath(), what, args[0]), cmd.CommandPath()+" --help shows what there is")
}

func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return hinted(exitUsage, usage("%s takes %d argument(s), not %d", cmd.CommandPath(), len(names), len(args)), "usage: "+cmd.UseLine())
	}
}
