package agent

import (
	"fmt"
	"strings"

	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// ceiling is what a run may use at most. It is fixed before the run starts; under only ever removes rights, so a child
// never holds more than its parent. The zero ceiling is that of the main run: it removes nothing.
type ceiling struct {
	inspect bool       // read-only built-ins alone
	within  [][]string // a tool must match a pattern of every list
}

// under returns the ceiling of a child: everything that c forbids, and more.
func (c ceiling) under(inspect bool, lists ...[]string) ceiling {
	child := ceiling{inspect: c.inspect || inspect}
	child.within = append(child.within, c.within...)
	for _, l := range lists {
		if len(l) > 0 {
			child.within = append(child.within, append([]string(nil), l...))
		}
	}
	return child
}

// permits reports whether a tool stays below the ceiling.
func (c ceiling) permits(t tool.Tool) bool {
	if c.inspect && (t.Origin != tool.Builtin || !t.ReadOnly) {
		return false
	}
	for _, patterns := range c.within {
		if firstMatch(patterns, t.Name) == "" {
			return false
		}
	}
	return true
}

// maxDescribed is the size in bytes of a ceiling in words: patterns first, names as far as they fit.
const maxDescribed = 4 << 10

// describe is the ceiling in words, with the tools that it leaves, for the session.
func (c ceiling) describe(k kit) string {
	text := "mode full"
	if c.inspect {
		text = "mode inspect"
	}
	for _, patterns := range c.within {
		text += "; within " + strings.Join(patterns, ", ")
	}
	var names []string
	for _, t := range k.all.All() {
		_, direct := k.direct.Get(t.Name)
		_, script := k.script.Get(t.Name)
		if direct || script {
			names = append(names, t.Name)
		}
	}
	text += fmt.Sprintf("; %d tools: %s", len(names), strings.Join(names, ", "))
	return untrusted.Head(text, maxDescribed)
}
