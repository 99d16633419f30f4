//go:build unix

package definition

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinkedProject: a project that links to another one's file is a source of its own, so that it has none of the other's approvals;
// a link to the global file is the global file, and one within the project is followed. S2
func TestLinkedProject(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, mine, foreign := filepath.Join(root, "home"), filepath.Join(root, "mine"), filepath.Join(root, "foreign")
	text := `{"mcpServers":{"a":{"command":"node","args":["server.js"]}}}`
	approved := put(t, mine, text)
	global := put(t, home, `{"mcpServers":{"g":{"command":"c"}}}`)
	within := put(t, filepath.Join(foreign, "config"), text)
	link := filepath.Join(foreign, FileName)
	for target, want := range map[string]string{approved: link, "../mine/" + FileName: link, within: within, "config/" + FileName: within} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		c, err := Load(home, foreign)
		if err != nil || names(c.Servers) != "project:a global:g" || c.Servers[0].Source != want {
			t.Errorf("%s: %v, %v", target, c.Servers, err)
		}
		again, _, err := LoadSource(c.Servers[0].Source, Project)
		if err != nil || len(again) != 1 || again[0].Source != want {
			t.Errorf("%s, read again: %v, %v", target, again, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(global, link); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(home, foreign); err != nil || names(c.Servers) != "global:g" || c.Servers[0].Source != global {
		t.Errorf("a link to the global file: %v, %v", c.Servers, err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(global); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(home, foreign); err != nil || len(c.Warnings) != 1 {
		t.Errorf("a link to nothing: %v, %v", c.Warnings, err)
	}
}
