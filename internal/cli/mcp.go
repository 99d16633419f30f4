package cli

import (
	"github.com/spf13/cobra"

	"magi-code/internal/mcp/definition"
	"magi-code/internal/untrusted"
)

func newMCP(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp",
		Short: "List, test, approve and edit MCP servers",
		Long: `Servers are defined in .mcp.json: in $MC_HOME (default ~/.magi-code) for all your projects, in the
working folder for this one. Every server is disabled until you approve its definition, and again when the
definition changes.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newList(a), newTest(a), newGet(a), newAdd(a), newRemove(a), newApprove(a), newRevoke(a), newCall(a), newLogin(a), newLogout(a))
	return c
}

// printJSON writes one indented document.
func (a *app) printJSON(v any) error {
	e := newEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// transportText is how a list names the way to a server: "stdio", or "http" and the address without query.
func transportText(s definition.Server) string {
	if s.Type == definition.HTTP {
		return "http " + untrusted.Line(s.DisplayURL())
	}
	return string(s.Type)
}
