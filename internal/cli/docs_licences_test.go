package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// licenceMarks are words that only the text of that licence has.
var licenceMarks = map[string]string{
	"MIT":          "Permission is hereby granted, free of charge",
	"ISC":          "Permission to use, copy, modify, and distribute this software for any purpose with or without fee",
	"Apache-2.0":   "Apache License",
	"BSD-3-Clause": "may be used to endorse or promote products derived from",
}

// TestDocsLicences: docs/licences.md has every module of docs/dependencies.txt, with the licence that its own file states.
func TestDocsLicences(t *testing.T) {
	stated := map[string]string{}
	for _, p := range readPages(t) {
		for line := range strings.Lines(p.text) {
			if cells := strings.Split(line, "|"); p.name == "docs/licences.md" && len(cells) == 5 {
				stated[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
			}
		}
	}
	list, err := os.ReadFile("../../docs/dependencies.txt")
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] != "#" {
			modules = append(modules, f[0])
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}, modules...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for line := range strings.Lines(string(out)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		licence, ok := stated[module]
		if !ok {
			t.Errorf("docs/licences.md lacks %s; its licence is in %s", module, dir)
			continue
		}
		files, _ := filepath.Glob(filepath.Join(dir, "LICENSE*"))
		more, _ := filepath.Glob(filepath.Join(dir, "COPYING*"))
		var text strings.Builder
		for _, f := range append(files, more...) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(strings.Join(strings.Fields(string(b)), " "))
		}
		kind := strings.TrimSuffix(strings.Fields(licence)[0], ";")
		if mark := licenceMarks[kind]; mark == "" || !strings.Contains(text.String(), mark) {
			t.Errorf("docs/licences.md says %q of %s, which %v do not say", licence, module, files)
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("%d licences only", checked)
	}
}
