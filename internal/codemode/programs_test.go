package codemode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// TestPrograms runs scripts such as models write, each with what it must return beside it. // R-G5
func TestPrograms(t *testing.T) {
	files, err := filepath.Glob("testdata/programs/*.js")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d programs, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			expected, err := os.ReadFile(strings.TrimSuffix(file, ".js") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			value, console, err := run(t, string(source), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal([]byte(value), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(expected, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if logs := strings.Contains(string(source), "console."); logs != (console != "") {
				t.Errorf("console %q", console)
			}
		})
	}
}
