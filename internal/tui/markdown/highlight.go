package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// highlighter marks code line by line. It is a small scanner of our own: every line costs one pass, it keeps
// no more state than what is still open at the end of a line, and the program pays nothing for it at start.
type highlighter struct {
	lang *language
	open string // what ends the comment or string that is still open; "" for none
	mark Mark   // the mark of what is open
}

// highlighter returns a scanner for a language name or file extension; unknown ones are not marked.
func (r *Renderer) highlighter(name string) *highlighter {
	name = strings.ToLower(strings.TrimLeft(strings.Trim(name, "{} "), "."))
	if len(name) > 32 {
		name = ""
	}
	l, ok := r.langs[name]
	if !ok {
		l = newLanguage(name)
		if len(r.langs) < 256 { // names are the model's: a cache must not grow with them
			r.langs[name] = l
		}
	}
	return &highlighter{lang: l}
}

// line returns the spans of the next line.
func (h *highlighter) line(s string) []span {
	if h.lang == nil {
		return []span{{0, s}}
	}
	switch h.lang.kind {
	case kindDiff:
		return []span{{diffMark(s), s}}
	case kindPlain:
		return []span{{0, s}}
	}
	var out []span
	for len(s) > 0 {
		n, m := h.next(s, len(out) == 0)
		if k := len(out) - 1; k >= 0 && out[k].mark == m {
			out[k].text += s[:n]
		} else {
			out = append(out, span{m, s[:n]})
		}
		s = s[n:]
	}
	return out
}

func diffMark(s string) Mark {
	switch {
	case strings.HasPrefix(s, "+++"), strings.HasPrefix(s, "---"):
		return Bold
	case strings.HasPrefix(s, "+"):
		return Added
	case strings.HasPrefix(s, "-"):
		return Removed
	case strings.HasPrefix(s, "@@"):
		return Dim
	}
	return 0
}

// next returns the length and mark of the token at the head of s.
func (h *highlighter) next(s string, first bool) (int, Mark) {
	if h.open != "" {
		n, closed := until(s, h.open)
		m := h.mark
		if closed {
			h.open = ""
		}
		return n, m
	}
	if n, m := h.opening(s, first); n > 0 {
		return n, m
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case unicode.IsDigit(r):
		return numberLen(s), Number
	case isWordStart(r):
		return h.word(s)
	case r == '$' && h.lang.sigil:
		return size + wordLen(s[size:]), Type
	case r == '<' && h.lang.kind == kindMarkup:
		return tagLen(s), Keyword
	case r == ' ' || r == '\t':
		return len(s) - len(strings.TrimLeft(s, " \t")), 0
	}
	return size, 0
}

// opening handles comments and strings.
func (h *highlighter) opening(s string, first bool) (int, Mark) {
	for _, c := range h.lang.line {
		if strings.HasPrefix(s, c) && (c != "#" || first || h.lang.hashAnywhere) {
			return len(s), Comment
		}
	}
	for _, b := range h.lang.block {
		if strings.HasPrefix(s, b[0]) {
			return h.begin(s, b[0], b[1], Comment), Comment
		}
	}
	for _, q := range h.lang.multi {
		if strings.HasPrefix(s, q) {
			return h.begin(s, q, q, String), String
		}
	}
	if q := s[0]; strings.IndexByte(h.lang.quotes, q) >= 0 {
		n, _ := until(s[1:], string(q))
		return 1 + n, String
	}
	return 0, 0
}

// begin consumes an opener and what follows up to its end, which may be on a later line.
func (h *highlighter) begin(s, open, end string, m Mark) int {
	n, closed := until(s[len(open):], end)
	if !closed {
		h.open, h.mark = end, m
	}
	return len(open) + n
}

// until returns the length up to and with the first unescaped end, or all of s.
func until(s, end string) (n int, closed bool) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && end[0] != '*' && end[0] != '-' {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], end) {
			return i + len(end), true
		}
	}
	return len(s), false
}

func (h *highlighter) word(s string) (int, Mark) {
	n := wordLen(s)
	w := s[:n]
	if h.lang.fold {
		w = strings.ToLower(w)
	}
	switch {
	case h.lang.words[w] != 0:
		return n, h.lang.words[w]
	case h.lang.kind == kindData && isKey(s[n:]):
		return n, Type
	case strings.HasPrefix(s[n:], "(") && h.lang.kind == kindCode:
		return n, Bold
	}
	return n, 0
}

func isKey(rest string) bool {
	rest = strings.TrimLeft(rest, " ")
	return strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "=")
}

func isWordStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func wordLen(s string) int {
	for i, r := range s {
		if r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) || r == '-' && i == 0 {
			return i
		}
		if r == '-' && (i+1 >= len(s) || !unicode.IsLetter(rune(s[i+1]))) {
			return i
		}
	}
	return len(s)
}

func numberLen(s string) int {
	for i, r := range s {
		if !unicode.IsDigit(r) && !unicode.IsLetter(r) && r != '.' && r != '_' {
			return i
		}
	}
	return len(s)
}

func tagLen(s string) int {
	rest := strings.TrimLeft(s[1:], "/!?")
	return len(s) - len(rest) + wordLen(rest)
}
