package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManualPages: each command that is shown has a page with its flags and examples, and each flag says in a word of its
// own what it takes.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	root := newRoot(&app{in: strings.NewReader(""), out: &strings.Builder{}, err: &strings.Builder{}})
	if err := writeMan(root, dir); err != nil {
		t.Fatal(err)
	}
	pages := 0
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		pages++
		b, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
		}
		page := string(b)
		for _, want := range []string{".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s has no %s", c.CommandPath(), want)
			}
		}
		if (c.Example != "") != strings.Contains(page, ".SH EXAMPLES") || strings.ContainsAny(page, "`\x1b\t") {
			t.Errorf("%s:\n%s", c.CommandPath(), page)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			kind, text := pflag.UnquoteUsage(f)
			if kind != strings.ToUpper(kind) || (kind == "") != (f.Value.Type() == "bool") {
				t.Errorf("%s --%s takes %q", c.CommandPath(), f.Name, kind)
			}
			if !strings.Contains(page, roff("--"+f.Name)) || !strings.Contains(page, roff(text)) {
				t.Errorf("the page of %s lacks --%s", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(root)
	if files, _ := filepath.Glob(filepath.Join(dir, "*.1")); len(files) != pages {
		t.Errorf("%d pages for %d commands", len(files), pages)
	}
}
