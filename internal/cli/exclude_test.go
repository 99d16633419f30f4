package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"magi-code/internal/tui"
)

// TestExclude: Mission Control writes each of the two lists by itself, takes a name out again, and leaves patterns to
// their author (R-G4).
func TestExclude(t *testing.T) {
	w := &workshop{servers: servers{folders: folders{home: t.TempDir(), cwd: t.TempDir()}}}
	w.settings.ExcludeDirect = []string{"mcp__big__*"}
	c := &cockpit{w: w}
	if err := c.exclude(t.Context(), "bash", tui.DirectList, true); err != nil {
		t.Fatal(err)
	}
	if err := c.exclude(t.Context(), "write", tui.CodeModeList, true); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.settings.ExcludeDirect, []string{"mcp__big__*", "bash"}) || !slices.Equal(w.settings.ExcludeCodeMode, []string{"write"}) {
		t.Errorf("%v %v", w.settings.ExcludeDirect, w.settings.ExcludeCodeMode)
	}
	if err := c.exclude(t.Context(), "bash", tui.DirectList, false); err != nil {
		t.Fatal(err)
	}
	if err := c.exclude(t.Context(), "mcp__big__x", tui.DirectList, false); err == nil || !strings.Contains(err.Error(), "pattern") {
		t.Errorf("a pattern was undone by a name: %v", err)
	}
	b, err := os.ReadFile(w.globalSettings())
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b); !strings.Contains(text, `"write"`) || strings.Contains(text, `"bash"`) {
		t.Error(text)
	}
}
