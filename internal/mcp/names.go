package mcp

import (
	"strconv"
	"strings"

	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

const (
	// namePrefix begins the advertised name of every MCP tool.
	namePrefix = "mcp__"
	// nameSeparator stands between server and tool, and in neither of them.
	nameSeparator = "__"
	// maxName bounds an advertised name in bytes; providers take no more.
	maxName = 64
	// maxShownName bounds in bytes a foreign name that we repeat.
	maxShownName = 100
)

// advertised is the name under which a model sees a tool.
func advertised(server, tool string) string { return namePrefix + server + nameSeparator + tool }

// nameProblem says why a tool cannot be advertised under its name, or "". The server's name was checked with its definition.
func nameProblem(server, tool string) string {
	switch {
	case tool == "":
		return "it has no name"
	case !isPlain(tool):
		return "its name has characters other than letters, digits, _ and -"
	case strings.Contains(tool, nameSeparator):
		return "its name contains __"
	}
	if n := len(advertised(server, tool)); n > maxName {
		return "its full name " + advertised(server, untrusted.Head(tool, maxShownName)) + " has " + strconv.Itoa(n) +
			" bytes, more than the 64 that providers take"
	}
	return ""
}

// isPlain reports whether s consists of ASCII letters, digits, _ and -.
func isPlain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// shownName is a foreign name in a sentence: every hidden character visible, bounded.
func shownName(name string) string { return untrusted.Head(untrusted.Visible(name), maxShownName) }

// closeMatches returns up to three of names that a person may have meant by want, best first.
func closeMatches(want string, names []string) []string {
	type match struct {
		name string
		far  int
	}
	var best []match
	w := strings.ToLower(want)
	for _, n := range names {
		l := strings.ToLower(n)
		far := tool.Distance(w, l)
		if strings.Contains(l, w) || strings.Contains(w, l) {
			far = min(far, 1)
		}
		if far > max(len(w)/3, 1) {
			continue
		}
		at := len(best)
		for at > 0 && best[at-1].far > far {
			at--
		}
		best = append(best[:at], append([]match{{n, far}}, best[at:]...)...)
		best = best[:min(len(best), 3)]
	}
	var out []string
	for _, m := range best {
		out = append(out, m.name)
	}
	return out
}
