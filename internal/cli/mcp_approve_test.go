package cli

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"magi-code/internal/secret"
)

// TestApproveAnswers: on a terminal the definition is shown and asked about, and what is said afterwards is what happened (R-A10).
func TestApproveAnswers(t *testing.T) {
	home := t.TempDir()
	writeFile(t, filepath.Join(home, ".mcp.json"), `{"mcpServers": {"notes": {"command": "notes-server"}}}`)
	steps := []struct {
		answer string
		code   int
		said   string
	}{
		{"n\n", exitNotApproved, "not approved; nothing was changed"},
		{"", exitNotApproved, "not approved; nothing was changed"},
		{"y\n", exitOK, "\napproved notes ("},
		{"n\n", exitNotApproved, "nothing was changed: it stays approved, until magi-code mcp revoke notes"},
		{"yes\n", exitOK, "\napproved notes ("},
	}
	for _, s := range steps {
		var out, told bytes.Buffer
		a := &app{
			in: strings.NewReader(s.answer), out: &out, err: &told, inTTY: true, outTTY: true, scrub: secret.NewScrubber(),
			lookup: func(name string) (string, bool) { return home, name == "MC_HOME" },
		}
		err := a.approve(t.Context(), "notes", "")
		code := exitOK
		if c, ok := errors.AsType[*coded](err); ok {
			code = c.code
		} else if err != nil {
			t.Fatal(err)
		}
		if code != s.code || !strings.Contains(told.String()+out.String(), s.said) {
			t.Errorf("answer %q: exit code %d\n%s%s", s.answer, code, out.String(), told.String())
		}
		if !strings.Contains(out.String(), "notes-server") {
			t.Errorf("answer %q: the definition was not shown: %s", s.answer, out.String())
		}
	}
}
