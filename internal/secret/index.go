package secret

import (
	"cmp"
	"slices"
)

// span is a range of bytes to be replaced.
type span struct{ from, to int }

// index finds all needles in one pass. It looks at the last two bytes of a window as long
// as the shortest needle and skips ahead by what no needle can start within (Wu and Manber's
// method), so that long harmless texts cost little.
type index struct {
	window  int // length of the shortest needle, at most maxWindow
	longest int
	shift   []uint8             // by two bytes: how far the window may move
	at      map[uint16][]string // by two bytes at the window's end: needles, longest first
}

// maxWindow keeps shifts within a byte.
const maxWindow = 200

// newIndex builds the index of needles, of which each has MinScrubbed bytes or more.
func newIndex(needles []string) *index {
	if len(needles) == 0 {
		return nil
	}
	ix := &index{window: maxWindow, at: map[uint16][]string{}}
	for _, n := range needles {
		ix.window = min(ix.window, len(n))
		ix.longest = max(ix.longest, len(n))
	}
	ix.shift = make([]uint8, 1<<16)
	for i := range ix.shift {
		ix.shift[i] = uint8(ix.window - 1)
	}
	slices.SortFunc(needles, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	for _, n := range slices.Compact(needles) {
		for end := 1; end < ix.window; end++ {
			key := pairAt(n, end)
			ix.shift[key] = min(ix.shift[key], uint8(ix.window-1-end))
		}
		key := pairAt(n, ix.window-1)
		ix.at[key] = append(ix.at[key], n)
	}
	return ix
}

// pairAt is the two bytes that end at position end.
func pairAt[T string | []byte](t T, end int) uint16 {
	return uint16(t[end-1])<<8 | uint16(t[end])
}

// find returns where needles stand in t, in order; overlapping and touching ones are joined.
func find[T string | []byte](ix *index, t T) []span {
	if ix == nil {
		return nil
	}
	var found []span
	for end := ix.window - 1; end < len(t); {
		key := pairAt(t, end)
		if s := int(ix.shift[key]); s > 0 {
			end += s
			continue
		}
		start := end - ix.window + 1
		for _, n := range ix.at[key] {
			if len(t)-start >= len(n) && string(t[start:start+len(n)]) == n {
				found = join(found, span{start, start + len(n)})
				break
			}
		}
		end++
	}
	return found
}

// join appends next, which starts where the last span of found starts or later.
func join(found []span, next span) []span {
	if n := len(found); n > 0 && next.from <= found[n-1].to {
		found[n-1].to = max(found[n-1].to, next.to)
		return found
	}
	return append(found, next)
}
