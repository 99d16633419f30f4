package jsonrpc

import (
	"unicode/utf16"
	"unicode/utf8"
)

// replacement stands for what is no character.
const replacement = "\ufffd"

// mendSlack is how many bytes a mended message may be longer than twice the original: one that is nearly all escapes
// is no text with a fault, but an attempt to multiply memory.
const mendSlack = 4 << 10

// mend returns b with everything that strict JSON forbids inside strings replaced or escaped: runs of invalid UTF-8
// and lone surrogates become the replacement character, raw control characters their escape. It reports whether it
// could and had to; if not, it returns b itself. The structure of the document is never touched.
func mend(b []byte) ([]byte, bool) {
	var out []byte
	from, inside := 0, false // b[:from] is in out
	put := func(i, n int, s string) {
		if out == nil {
			out = make([]byte, 0, 2*len(b)+2*mendSlack) // all that it may become: growing in steps costs more
		}
		out = append(append(out, b[from:i]...), s...)
		from = i + n
	}
	for i := 0; i < len(b); {
		if len(out) > 2*len(b)+mendSlack {
			return b, false
		}
		c := b[i]
		switch {
		case !inside:
			inside = c == '"'
			i++
		case c == '"':
			inside = false
			i++
		case c == '\\':
			n, keep := escape(b[i:])
			if !keep {
				put(i, n, replacement)
			}
			i += n
		case c < 0x20:
			const hex = "0123456789abcdef"
			put(i, 1, string([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]}))
			i++
		case c < utf8.RuneSelf:
			i++
		default:
			if n := invalid(b[i:]); n > 0 {
				put(i, n, replacement)
				i += n
				continue
			}
			_, n := utf8.DecodeRune(b[i:])
			i += n
		}
	}
	if out == nil {
		return b, false
	}
	return append(out, b[from:]...), true
}

// invalid measures the run of bytes at the start of b that are no UTF-8.
func invalid(b []byte) int {
	for i := range b {
		if r, n := utf8.DecodeRune(b[i:]); r != utf8.RuneError || n != 1 {
			return i
		}
	}
	return len(b)
}

// escape measures the escape at the start of b: a surrogate pair is one. keep is false for a lone surrogate.
func escape(b []byte) (n int, keep bool) {
	r, ok := hex4(b)
	switch {
	case !ok:
		return min(2, len(b)), true // a short escape, or one that the parser will refuse
	case !utf16.IsSurrogate(r):
		return 6, true
	}
	if low, ok := hex4(b[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
		return 12, true
	}
	return 6, false
}

// hex4 reads \uXXXX.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
