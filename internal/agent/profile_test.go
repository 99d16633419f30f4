package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodProfile = `---
name: reviewer
description: Reads a change and reports what is wrong with it.
tools: read, grep, mcp__github__*
model: small-1
---
Look at the diff first.
Report, never edit.
`

// TestLoadProfiles reads what is well formed and says what is wrong with the rest. // R-G6
func TestLoadProfiles(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"reviewer.md": goodProfile,
		"plain.md":    "---\r\ndescription: 'As short as it gets'\r\ntools: [read]\r\n# a comment\r\n\r\n---\r\nDo it.",
		"readme.txt":  "not a profile",
		"no-front.md": "Do it.",
		"open.md":     "---\ndescription: x\nDo it.",
		"unknown.md":  "---\ndescription: x\ntool: read\n---\nDo it.",
		"twice.md":    "---\ndescription: x\ndescription: y\n---\nDo it.",
		"empty.md":    "---\ndescription: x\n---\n\n",
		"nobody.md":   "---\nname: x y\ndescription: x\n---\nDo it.",
		"same.md":     "---\nname: reviewer\ndescription: x\n---\nDo it.",
		"binary.md":   "---\ndescription: \xff\n---\nDo it.",
		"large.md":    "---\ndescription: x\n---\n" + strings.Repeat("x", maxProfileFile),
		"a b.md":      "---\ndescription: x\n---\nDo it.",
		"hole.md":     "---\ndescription: x\ntools: read,,grep\n---\nDo it.",
		"silent.md":   "---\nname: silent\n---\nDo it.",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	profiles, warnings := LoadProfiles(dir)
	want := []Profile{
		{Name: "plain", Description: "As short as it gets", Tools: []string{"read"}, Instructions: "Do it."},
		{
			Name: "reviewer", Description: "Reads a change and reports what is wrong with it.", Model: "small-1",
			Tools: []string{"read", "grep", "mcp__github__*"}, Instructions: "Look at the diff first.\nReport, never edit.",
		},
	}
	if diff := cmp.Diff(want, profiles); diff != "" {
		t.Error(diff)
	}
	all := strings.Join(warnings, "\n")
	for _, w := range []string{
		`a b.md is not used: the name must be`, `binary.md is not used: it is not UTF-8`, `empty.md is not used: it has no instructions`,
		`folder.md is not used`, `hole.md is not used: line 3: tools holds an empty pattern`, `large.md is not used`,
		`no-front.md is not used: the first line must be "---"`, `nobody.md is not used: line 2: the name must be`,
		`open.md is not used: the front matter has no closing line`, `same.md is not used: the name "reviewer" is already that of reviewer.md`,
		`silent.md is not used: it needs a description`, `twice.md is not used: line 3 sets "description" again`,
		`unknown.md is not used: line 3: unknown key "tool"; known are`,
	} {
		if !strings.Contains(all, w) {
			t.Errorf("no warning %q in\n%s", w, all)
		}
	}
	if len(warnings) != 13 {
		t.Errorf("%d warnings", len(warnings))
	}
	if p, w := LoadProfiles(filepath.Join(dir, "none")); p != nil || w != nil {
		t.Errorf("a missing folder: %v, %v", p, w)
	}
}

// TestTooManyProfiles: the list is bounded and says so.
func TestTooManyProfiles(t *testing.T) {
	dir := t.TempDir()
	for i := range maxProfiles + 2 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("p%03d.md", i)), []byte("---\ndescription: x\n---\nDo it."), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p, w := LoadProfiles(dir); len(p) != maxProfiles || len(w) != 1 {
		t.Errorf("%d profiles, warnings %v", len(p), w)
	}
}

// FuzzProfile: no text makes a profile that breaks the schema or a name rule.
func FuzzProfile(f *testing.F) {
	f.Add(goodProfile)
	f.Add("---\nname: x\n---\n")
	f.Add("---\ntools: [a, \"b\"]\n---")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseProfile(text)
		if err != nil {
			return
		}
		if p.Description == "" || p.Instructions == "" || p.Name != "" && checkProfileName(p.Name) != nil {
			t.Errorf("profile %+v", p)
		}
	})
}
