package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// soon is within which a call that was interrupted has to end, on a busy machine too; what these calls would take is minutes.
const soon = 10 * time.Second

// A call ends with its context however long a line is or a match would take. // R-G2
func TestInterrupted(t *testing.T) {
	o := workspace(t, map[string]string{
		"line":       strings.Repeat("a", maxSearched-1),
		"lines/many": strings.Repeat(strings.Repeat("a", 400)+"\n", 10_000),
	})
	sparse, err := os.Create(filepath.Join(o.Dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sparse.WriteString(strings.Repeat("x", sniffed+1)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sparse.Truncate(64<<30), sparse.Close()); err != nil {
		t.Fatal(err)
	}
	const costly = "(?:a?){1000}(?:a?){1000}b"
	for _, tc := range []struct {
		tool string
		args args
	}{
		{"read", args{"path": "sparse"}},
		{"grep", args{"path": "line", "pattern": costly}},
		{"grep", args{"path": "lines/many", "pattern": costly}},
		{"grep", args{"path": "lines", "pattern": costly}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		r := callContext(ctx, t, o, tc.tool, tc.args)
		if took := time.Since(began); took > soon || !r.IsError || !strings.Contains(r.Plain(), "deadline") {
			t.Errorf("%s %v: after %v: %.200s", tc.tool, tc.args, took, r.Plain())
		}
		cancel()
	}
}

// No context has to end for these to end. // R-G2
func TestCostIsBounded(t *testing.T) {
	o := workspace(t, map[string]string{"same": strings.Repeat("a\n", 250_000)})
	began := time.Now()
	bad(t, o, "grep", args{"pattern": strings.Repeat("(?:.?){1000}", 300)}, "repetitions are too large", "900001 steps")
	bad(t, o, "edit", args{"path": "same", "old": strings.Repeat("a \n", 125_000) + "b", "new": "x"}, "does not occur")
	if took := time.Since(began); took > soon {
		t.Errorf("took %v", took)
	}
	in := func(text string, left int) *scan {
		return &scan{ctx: t.Context(), in: strings.NewReader(text), left: left}
	}
	r, err := readLines(in("one\ntwo\nthree", 8), 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, r.Plain(), "1\tone\n2\ttwo\n[only the first GiB of a file can be read; use bash to look further]")
	if _, err := readLines(in("one\ntwo\nthree", 8), 3, 10); !errors.Is(err, errTooFar) {
		t.Errorf("behind the end of the scan: %v", err)
	}
}

// Lines that are matched as a stream of characters match like others. // R-G2
func TestGrepLongLines(t *testing.T) {
	line := strings.Repeat("é\xff-", 40_000) + "needle" + strings.Repeat("y", 40_000)
	o := workspace(t, map[string]string{"f": "x\n" + line + "\nz\n"})
	for _, pattern := range []string{"n[e]{1,900}dle", "needle", "n.*y$"} {
		text := good(t, o, "grep", args{"pattern": pattern})
		if !strings.HasPrefix(text, "f:2:...") || !strings.Contains(text, "needleyyy") || strings.Count(text, "\n") > 0 {
			t.Errorf("%s: %.300s", pattern, text)
		}
	}
	wantText(t, good(t, o, "grep", args{"pattern": "n[e]{1,900}dles"}), "[nothing matches]")
}
