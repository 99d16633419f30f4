package builtin

import (
	"fmt"
	"strings"
)

const (
	diffContext = 3        // unchanged lines around a change
	maxEdits    = 1000     // differing lines looked for; beyond, the whole middle counts as replaced (4 MB of work space)
	maxDiff     = 64 << 10 // bytes of a diff
)

// op is one step from the old lines to the new.
type op struct {
	kind byte // ' ', '-', '+'
	line string
}

// unified returns the unified diff of two texts, "" when they are equal. A long one is cut at a line, and says so.
func unified(oldName, newName, old, text string) string {
	if old == text {
		return ""
	}
	ops := compare(splitLines(old), splitLines(text))
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", oldName, newName)
	a, b := 1, 1 // line numbers at ops[i]
	for i := 0; i < len(ops); {
		if ops[i].kind == ' ' {
			i, a, b = i+1, a+1, b+1
			continue
		}
		from := max(0, i-diffContext)
		to := hunkEnd(ops, i)
		oldLines, newLines := 0, 0
		for _, o := range ops[from:to] {
			if o.kind != '+' {
				oldLines++
			}
			if o.kind != '-' {
				newLines++
			}
		}
		oldStart, newStart := a-(i-from), b-(i-from)
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(oldStart, oldLines), span(newStart, newLines))
		for _, o := range ops[from:to] {
			if out.Len()+len(o.line) > maxDiff {
				out.WriteString("... the rest of the diff is left out ...\n")
				return out.String()
			}
			out.WriteByte(o.kind)
			out.WriteString(o.line)
			if !strings.HasSuffix(o.line, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
		i, a, b = to, oldStart+oldLines, newStart+newLines
	}
	return out.String()
}

// hunkEnd returns where the hunk ends whose first change is ops[i]: changes that are close share one.
func hunkEnd(ops []op, i int) int {
	last := i
	for j := i; j < len(ops) && j-last <= 2*diffContext; j++ {
		if ops[j].kind != ' ' {
			last = j
		}
	}
	return min(len(ops), last+1+diffContext)
}

func span(start, lines int) string {
	if lines == 0 {
		return fmt.Sprintf("%d,0", start-1)
	}
	if lines == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, lines)
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// compare finds a short way from a to b.
func compare(a, b []string) []op {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	ops := make([]op, 0, len(a)+len(b)-head-tail)
	keep := func(lines []string) {
		for _, l := range lines {
			ops = append(ops, op{' ', l})
		}
	}
	keep(a[:head])
	ops = append(ops, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	keep(a[len(a)-tail:])
	return ops
}

// middle is Myers' greedy algorithm, given up when the texts have too little in common.
func middle(a, b []string) []op {
	n, m := len(a), len(b)
	var trace [][]int32 // per number of edits: how far each diagonal got
	limit := min(n+m, maxEdits)
	v := make([]int32, 2*limit+3)
	mid := limit + 1
	for d := 0; d <= limit; d++ {
		trace = append(trace, append([]int32(nil), v[mid-d-1:mid+d+2]...))
		for k := -d; k <= d; k += 2 {
			x := v[mid+k-1] + 1
			if k == -d || k != d && v[mid+k-1] < v[mid+k+1] {
				x = v[mid+k+1]
			}
			if d == 0 {
				x = 0
			}
			y := x - int32(k)
			for int(x) < n && int(y) < m && a[x] == b[y] {
				x, y = x+1, y+1
			}
			v[mid+k] = x
			if int(x) >= n && int(y) >= m {
				return backtrack(trace, a, b)
			}
		}
	}
	ops := make([]op, 0, n+m)
	for _, l := range a {
		ops = append(ops, op{'-', l})
	}
	for _, l := range b {
		ops = append(ops, op{'+', l})
	}
	return ops
}

// backtrack follows the way that middle found from its end to its beginning.
func backtrack(trace [][]int32, a, b []string) []op {
	x, y := len(a), len(b)
	var reversed []op
	for d := len(trace) - 1; d > 0; d-- {
		v := trace[d] // v[d+1+k] is diagonal k
		k := x - y
		from := k - 1
		if k == -d || k != d && v[d+k] < v[d+k+2] {
			from = k + 1
		}
		px := int(v[d+1+from])
		py := px - from
		for x > px && y > py {
			x, y = x-1, y-1
			reversed = append(reversed, op{' ', a[x]})
		}
		if x > px {
			x--
			reversed = append(reversed, op{'-', a[x]})
		} else if y > py {
			y--
			reversed = append(reversed, op{'+', b[y]})
		}
	}
	for x > 0 {
		x--
		reversed = append(reversed, op{' ', a[x]})
	}
	ops := make([]op, 0, len(reversed))
	for i := len(reversed) - 1; i >= 0; i-- {
		ops = append(ops, reversed[i])
	}
	return ops
}
