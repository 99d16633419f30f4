package agent

import (
	"os"
	"path/filepath"
	"testing"
)

// TestProjectFileOutside: a repository must not have a file of the user told to the model by linking to it.
func TestProjectFileOutside(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "project")
	if err := os.MkdirAll(filepath.Join(dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{filepath.Join(base, "key"), filepath.Join(dir, "docs", "agents.md")} {
		if err := os.WriteFile(f, []byte("the text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for target, used := range map[string]bool{"../key": false, filepath.Join(base, "key"): false, "docs/agents.md": true} {
		link := filepath.Join(dir, projectFile)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		text, notice := projectInstructions(dir)
		if (text == "the text") != used || (notice == "") != used {
			t.Errorf("%s: %q, %q", target, text, notice)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}
