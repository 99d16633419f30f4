// Package untrusted makes text from others safe to show: control sequences and bidirectional
// overrides are stripped, hidden characters made visible where a person decides by them, length cut.
package untrusted

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Line returns s as one safe line: escape sequences, control characters, bidi overrides and
// zero-width characters removed, line breaks and tabs turned into a space, invalid UTF-8 replaced.
func Line(s string) string {
	if isPlain(s, false) {
		return s
	}
	return clean(s, ' ', ' ')
}

// Text is Line for several lines: \n and \t are kept, CRLF and CR become \n.
func Text(s string) string {
	if isPlain(s, true) {
		return s
	}
	return clean(s, '\n', '\t')
}

// Visible returns s as one line in which every character that Line would remove or change
// stands as an escape such as \u{202e} or \u{1b} (\x{ff} for a byte that is not UTF-8), so that a
// person sees what is really there. A backslash that would look like such an escape is one itself.
func Visible(s string) string {
	if isPlain(s, false) && !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	prev := rune(-1)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		rest := s[i+size:]
		switch {
		case r == utf8.RuneError && size == 1:
			escape(&b, 'x', rune(s[i]))
			r = '}'
		case isBreak(r), r == '\t', isControl(r), isHidden(r) && !isEmojiStyle(prev, r, rest):
			escape(&b, 'u', r)
			r = '}'
		case r == '\\' && (strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{")):
			escape(&b, 'u', r)
			r = '}'
		default:
			b.WriteRune(r)
		}
		prev = r // what was written last: a style after an escape styles nothing
		i += size
	}
	return b.String()
}

// escape writes r as \u{..} or \x{..}.
func escape(b *strings.Builder, kind byte, r rune) {
	b.WriteByte('\\')
	b.WriteByte(kind)
	b.WriteByte('{')
	b.WriteString(strconv.FormatInt(int64(r), 16))
	b.WriteByte('}')
}

// HasHidden reports whether Visible would show an escape for a character of s other than \n, \r and \t.
func HasHidden(s string) bool {
	if isPlain(s, true) {
		return false
	}
	prev := rune(-1)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return true
		case r == '\n', r == '\r', r == '\t':
		case isBreak(r), isControl(r), isHidden(r) && !isEmojiStyle(prev, r, s[i+size:]):
			return true
		}
		prev = r
		i += size
	}
	return false
}

// isPlain reports whether s is printable ASCII alone, with \n and \t where allowed: the usual case.
func isPlain(s string, breaks bool) bool {
	for i := range len(s) {
		c := s[i]
		if c < ' ' && !(breaks && (c == '\n' || c == '\t')) || c > '~' {
			return false
		}
	}
	return true
}

// clean removes what must not be shown and writes line breaks and tabs as given.
func clean(s string, br, tab byte) string {
	var b strings.Builder
	b.Grow(len(s))
	var seq sequences
	prev := rune(-1)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if n := seq.length(s, i, r); n > 0 {
			i += n
			continue
		}
		i += size
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteRune(utf8.RuneError)
		case r == '\r' && strings.HasPrefix(s[i:], "\n"): // the \n speaks for both
		case isBreak(r):
			b.WriteByte(br)
		case r == '\t':
			b.WriteByte(tab)
		case isControl(r), isHidden(r) && !isEmojiStyle(prev, r, s[i:]):
			continue
		default:
			b.WriteRune(r)
		}
		prev = r
	}
	return b.String()
}
