package cli

import (
	"fmt"
	"testing"

	"magi-code/internal/agent"
	"magi-code/internal/permission"
	"magi-code/internal/settings"
)

// TestPermissionsShowAnswers: /permissions lists what was allowed by an answer too, not only the rules that were there at the start. R-G3
func TestPermissionsShowAnswers(t *testing.T) {
	w := &workshop{gate: agent.NewGate(permission.Rules{}, nil), settings: settings.Settings{}}
	w.settings.Deny, w.settings.Allow = []string{"write"}, []string{"mcp__a__*"}
	c := &cockpit{w: w, o: conversationFlags{allow: []string{"edit"}}}
	w.gate.Grant("bash")
	rules, err := c.permissions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "[{write deny settings.json} {bash allow your answer} {edit allow --allow} {mcp__a__* allow settings.json}]"
	if got := fmt.Sprint(rules); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
