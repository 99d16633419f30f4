package builtin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// applyDiff applies a unified diff strictly: every unchanged and removed line must stand where the hunk says.
func applyDiff(old, diff string) (string, error) {
	if diff == "" {
		return old, nil
	}
	lines := splitLines(old)
	var out strings.Builder
	at, written := 0, 0
	rest := splitLines(diff)
	if len(rest) < 3 || !strings.HasPrefix(rest[0], "--- ") || !strings.HasPrefix(rest[1], "+++ ") {
		return "", errors.New("no file header")
	}
	rest = rest[2:]
	for i := 0; i < len(rest); {
		var a, an, b, bn int
		head := strings.Fields(rest[i])
		if len(head) != 4 || head[0] != "@@" {
			return "", fmt.Errorf("no hunk header: %q", rest[i])
		}
		a, an = parseSpan(head[1][1:])
		b, bn = parseSpan(head[2][1:])
		if an == 0 {
			a++
		}
		if bn == 0 {
			b++
		}
		for ; at < a-1; at++ {
			out.WriteString(lines[at])
			written++
		}
		if written != b-1 {
			return "", fmt.Errorf("hunk %q begins at new line %d", rest[i], written+1)
		}
		for i++; an > 0 || bn > 0; i++ {
			kind, line := rest[i][0], rest[i][1:]
			if i+1 < len(rest) && strings.HasPrefix(rest[i+1], "\\") {
				line = strings.TrimSuffix(line, "\n")
			}
			if kind == '\\' {
				continue
			}
			if kind != '+' {
				if at >= len(lines) || lines[at] != line {
					return "", fmt.Errorf("line %d is not %q", at+1, line)
				}
				at++
				an--
			}
			if kind != '-' {
				out.WriteString(line)
				written++
				bn--
			}
		}
		if i < len(rest) && rest[i][0] == '\\' {
			i++
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String(), nil
}

func parseSpan(s string) (start, lines int) {
	first, second, two := strings.Cut(s, ",")
	start, _ = strconv.Atoi(first)
	lines = 1
	if two {
		lines, _ = strconv.Atoi(second)
	}
	return start, lines
}

func TestUnified(t *testing.T) {
	for _, tc := range []struct{ old, text, want string }{
		{"a\n", "a\n", ""},
		{"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		{"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		{"1\n2\n3\n", "1\n3\n", "@@ -1,3 +1,2 @@\n 1\n-2\n 3\n"},
	} {
		if tc.want != "" {
			tc.want = "--- a\n+++ b\n" + tc.want
		}
		wantText(t, unified("a", "b", tc.old, tc.text), tc.want)
	}
	two := unified("a", "b", strings.Repeat("x\n", 30), "y\n"+strings.Repeat("x\n", 28)+"y\n")
	if strings.Count(two, "@@ -") != 2 {
		t.Errorf("far changes share a hunk:\n%s", two)
	}
	if d := unified("a", "b", "", strings.Repeat("long line\n", 100_000)); len(d) > maxDiff+100 || !strings.Contains(d, "left out") {
		t.Errorf("%d bytes", len(d))
	}
}

// Every diff leads from the old text to the new one, and no more lines are touched than a careful person would.
func TestUnifiedRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() string {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString(strings.Repeat("x", r.IntN(4)))
			if r.IntN(12) > 0 {
				b.WriteByte('\n')
			}
		}
		return b.String()
	}
	for range 5000 {
		a, b := random(), random()
		if got, err := applyDiff(a, unified("a", "b", a, b)); err != nil || got != b {
			t.Fatalf("%q to %q: %q, %v\n%s", a, b, got, err, unified("a", "b", a, b))
		}
	}
	// One line of many changes one line of the diff, and too many changes are still right.
	lines := make([]string, 3000)
	for i := range lines {
		lines[i] = strconv.Itoa(r.IntN(1000)) + "\n"
	}
	a := strings.Join(lines, "")
	lines[1500] = "changed\n"
	b := strings.Join(lines, "")
	if d := unified("a", "b", a, b); strings.Count(d, "\n") != 11 {
		t.Error(d)
	}
	if ops := compare(splitLines(a), splitLines(strings.ToUpper(strings.Repeat("q\n", 3000)))); len(ops) != 6000 {
		t.Errorf("%d steps", len(ops))
	}
}
