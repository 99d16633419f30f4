package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
)

func newLogin(a *app) *cobra.Command {
	return &cobra.Command{Use: "login NAME", Args: exactArgs("NAME"), Hidden: true, RunE: func(*cobra.Command, []string) error {
		return fmt.Errorf("to be wired")
	}}
}

func newLogout(a *app) *cobra.Command {
	return &cobra.Command{Use: "logout NAME", Args: exactArgs("NAME"), Hidden: true, RunE: func(*cobra.Command, []string) error {
		return fmt.Errorf("to be wired")
	}}
}

func (a *app) tokens(folders) func(approval.Approved) mcp.Tokens { return nil }

func (a *app) oauthState(folders, definition.Server) string { return "" }
