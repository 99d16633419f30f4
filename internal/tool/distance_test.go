package tool

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"read", "read", 0}, {"raed", "read", 2}, {"read_file", "readfile", 1},
		{"kitten", "sitting", 3}, {strings.Repeat("x", 1<<20), strings.Repeat("x", maxCompared), 0},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%.20q, %.20q: %d, want %d", c.a, c.b, got, c.want)
		}
		if Distance(c.a, c.b) != Distance(c.b, c.a) {
			t.Errorf("%.20q, %.20q: not the same both ways", c.a, c.b)
		}
	}
}
