package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) missionControl(context.Context, conversationFlags, string) error {
	return fmt.Errorf("to be wired")
}

func newServe(a *app) *cobra.Command {
	return &cobra.Command{Use: "serve", Hidden: true, RunE: func(*cobra.Command, []string) error { return fmt.Errorf("to be wired") }}
}
