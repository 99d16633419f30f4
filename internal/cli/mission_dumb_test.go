package cli

import (
	"errors"
	"strings"
	"testing"
)

// TestDumbTerminal: Mission Control refuses a terminal that would show its control sequences as text, and says what to do.
func TestDumbTerminal(t *testing.T) {
	a := &app{inTTY: true, outTTY: true, lookup: func(name string) (string, bool) { return "dumb", name == "TERM" }}
	err := a.missionControl(t.Context(), conversationFlags{}, "")
	var c *coded
	if !errors.As(err, &c) || c.code != exitUsage || !strings.Contains(c.hint, "magi-code run") {
		t.Errorf("%v", err)
	}
}
