package codemode

import (
	"os"
	"regexp"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// TestDocs runs the examples of docs/code-mode.md.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/code-mode.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []any{[]any{"a.txt", "b.txt"}, []any{"Ada: 10.5", "Bo: 4", "Ada: 1"}, "worked"}
	examples := regexp.MustCompile("(?s)```js\n(.*?)```").FindAllSubmatch(text, -1)
	if len(examples) != len(want) {
		t.Fatalf("%d examples", len(examples))
	}
	for i, e := range examples {
		value, _, err := run(t, string(e[1]), Limits{})
		if err != nil {
			t.Fatalf("example %d: %v", i+1, err)
		}
		var got any
		if err := json.Unmarshal([]byte(value), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("example %d: %s", i+1, diff)
		}
	}
}
