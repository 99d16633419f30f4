package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"magi-code/internal/untrusted"
)

// newEncoder writes JSON for programs that is harmless on a terminal too: characters that act on one or cannot be seen
// are written as \uXXXX, which changes no value (encoding/json does so itself below U+0020 only).
func newEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escaping{w})
	e.SetEscapeHTML(false)
	return e
}

// escaping is given whole documents, in which such characters stand inside of strings only.
type escaping struct{ w io.Writer }

func (e escaping) Write(b []byte) (int, error) {
	if !untrusted.HasHidden(string(b)) {
		return e.w.Write(b)
	}
	out := make([]byte, 0, len(b)+64)
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r < utf8.RuneSelf && r != 0x7f, r == utf8.RuneError, !untrusted.HasHidden(string(r)):
			out = append(out, b[i:i+size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
