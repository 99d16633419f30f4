package untrusted

import (
	"fmt"
	"unicode/utf8"
)

// Cut returns s cut to at most limit bytes on rune boundaries with head and tail kept and the cut
// stated between them ("... 1234 bytes omitted ..."), and the number of bytes left out (0 when s fits).
// A limit too small for that statement yields the statement alone.
func Cut(s string, limit int) (string, int) {
	if len(s) <= max(limit, 0) {
		return s, 0
	}
	room := max(limit-len(omitted(len(s))), 0)
	head := boundaryBefore(s, (room+1)/2)
	tail := boundaryAfter(s, len(s)-room/2)
	n := tail - head
	return s[:head] + omitted(n) + s[tail:], n
}

// omitted states a cut of n bytes.
func omitted(n int) string { return fmt.Sprintf("... %d bytes omitted ...", n) }

// Head returns at most limit bytes of s, on a rune boundary, with "..." appended when it cut.
func Head(s string, limit int) string {
	if len(s) <= max(limit, 0) {
		return s
	}
	return s[:boundaryBefore(s, max(limit, 0))] + "..."
}

// boundaryBefore returns the last rune boundary of s at or before i.
func boundaryBefore(s string, i int) int {
	for back := 0; back < utf8.UTFMax && i > 0 && i < len(s); back++ {
		if utf8.RuneStart(s[i]) {
			return i
		}
		i--
	}
	return i
}

// boundaryAfter returns the first rune boundary of s at or after i.
func boundaryAfter(s string, i int) int {
	for fwd := 0; fwd < utf8.UTFMax && i < len(s); fwd++ {
		if utf8.RuneStart(s[i]) {
			return i
		}
		i++
	}
	return i
}
