package tui

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The screens in the documentation are the golden ones; -update writes them anew.
func TestDocumentationShowsTheScreens(t *testing.T) {
	for path, least := range map[string]int{"../../docs/mission-control.md": 4, "../../README.md": 1} {
		checkScreens(t, path, least)
	}
}

func checkScreens(t *testing.T, path string, least int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	got := regexp.MustCompile("(?s)<!-- screen: (\\S+) -->\n```text\n.*?```\n").ReplaceAllStringFunc(string(b), func(s string) string {
		n++
		name := strings.Fields(s)[2]
		g, err := os.ReadFile("testdata/golden/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		return "<!-- screen: " + name + " -->\n```text\n" + string(g) + "```\n"
	})
	if n < least {
		t.Errorf("%s: %d screens", path, n)
	}
	if got == string(b) {
		return
	}
	if !*testOnlyUpdate {
		t.Fatalf("%s shows other screens than testdata/golden (run with -update)", path)
	}
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every key of /help and every command is documented.
func TestDocumentationNamesEveryKey(t *testing.T) {
	read := func(p string) string {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ToLower(string(b))
	}
	keys, control := read("../../docs/keys.md"), read("../../docs/mission-control.md")
	short := strings.NewReplacer("+", "-", "pgup", "pageup", "pgdown", "pagedown")
	for _, k := range helpKeys() {
		if k[0] == "" || k[0] == "y s a n" {
			continue
		}
		for key := range strings.SplitSeq(k[0], ", ") {
			key = strings.Fields(short.Replace(key))[0]
			if !strings.Contains(keys, key) {
				t.Errorf("docs/keys.md does not name %q", key)
			}
		}
	}
	for _, c := range commands() {
		if !strings.Contains(control, "`"+c.name) {
			t.Errorf("docs/mission-control.md does not name %s", c.name)
		}
	}
}
