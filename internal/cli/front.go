package cli

import (
	"context"
	"fmt"
)

func (a *app) missionControl(context.Context, conversationFlags, string) error {
	return fmt.Errorf("to be wired")
}
