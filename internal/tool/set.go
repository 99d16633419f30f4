package tool

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"magi-code/internal/untrusted"
)

// Set is an ordered (by name) immutable collection of tools. The zero Set is empty.
type Set struct{ tools []Tool }

// NewSet sorts the tools by name. A name that occurs twice is an error that names it.
func NewSet(tools ...Tool) (Set, error) { return newSet(slices.Clone(tools)) }

// Merge returns one set of the tools of several. A name that occurs twice is an error that names it. Sets whose
// names do not interleave, as those of several servers, are merged without sorting.
func Merge(sets ...Set) (Set, error) {
	full := make([]Set, 0, len(sets))
	total := 0
	for _, s := range sets {
		if len(s.tools) > 0 {
			full = append(full, s)
			total += len(s.tools)
		}
	}
	slices.SortStableFunc(full, func(a, b Set) int { return byName(a.tools[0], b.tools[0]) })
	tools := make([]Tool, 0, total)
	for _, s := range full {
		tools = append(tools, s.tools...)
	}
	return newSet(tools)
}

// newSet makes a set of a slice that nobody else holds.
func newSet(tools []Tool) (Set, error) {
	for sorted := false; ; sorted = true {
		ordered := true
		for i := 1; i < len(tools) && ordered; i++ {
			switch c := byName(tools[i-1], tools[i]); {
			case c == 0:
				return Set{}, fmt.Errorf("tool name %q occurs twice", untrusted.Line(tools[i].Name))
			case c > 0:
				ordered = false
			}
		}
		if ordered || sorted {
			return Set{tools: tools}, nil
		}
		slices.SortStableFunc(tools, byName)
	}
}

// byName orders tools by their names' bytes.
func byName(a, b Tool) int { return cmp.Compare(a.Name, b.Name) }

// Get returns the tool of that name.
func (s Set) Get(name string) (Tool, bool) {
	i, ok := slices.BinarySearchFunc(s.tools, name, func(t Tool, n string) int { return cmp.Compare(t.Name, n) })
	if !ok {
		return Tool{}, false
	}
	return s.tools[i], true
}

// All returns a copy of the tools in order.
func (s Set) All() []Tool { return slices.Clone(s.tools) }

// Len is the number of tools.
func (s Set) Len() int { return len(s.tools) }

// Filter returns the set of those for which keep is true.
func (s Set) Filter(keep func(Tool) bool) Set {
	kept := make([]Tool, 0, len(s.tools))
	for _, t := range s.tools {
		if keep(t) {
			kept = append(kept, t)
		}
	}
	return Set{tools: kept}
}

// Digest is a hex SHA-256 over name, description and schema of every tool in order: equal exactly when
// what is advertised is equal. It is part of the prompt-cache key.
func (s Set) Digest() string {
	h := sha256.New()
	var buf []byte
	field := func(n int) { buf = binary.AppendUvarint(buf, uint64(n)) }
	for _, t := range s.tools {
		// The lengths before the parts make the encoding unambiguous: no two lists of tools share one.
		buf = buf[:0]
		field(len(t.Name))
		buf = append(buf, t.Name...)
		field(len(t.Description))
		buf = append(buf, t.Description...)
		field(len(t.Schema))
		buf = append(buf, t.Schema...)
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}
