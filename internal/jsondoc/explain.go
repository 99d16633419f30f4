package jsondoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// explain puts the decoder's error into our words, without the piece of the file that the
// decoder would quote, and finds the usual mistakes behind it.
func (p *parser) explain(err error) *SyntaxError {
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) || errors.Is(err, io.ErrUnexpectedEOF) {
		return p.complaint(len(p.data), "the file ends in the middle of the JSON value", "a closing bracket or quote is missing")
	}
	at := min(p.base+int(syn.ByteOffset), len(p.data))
	if errors.Is(syn.Err, jsontext.ErrDuplicateName) {
		name := strconv.Quote(syn.JSONPointer.LastToken())
		return p.complaint(p.skip(at), "the name "+name+" stands twice in one object", "keep one of the two")
	}
	if at < len(p.data) && p.data[at] < ' ' && !p.between(at) {
		return p.complaint(at, "a text holds a line break, a tab or another control character", `close the quotes, or write \n or \t`)
	}
	at = p.skip(at)
	if at == len(p.data) {
		return p.complaint(at, "the file ends in the middle of the JSON value", "a closing bracket or quote is missing")
	}
	text, hint, back := p.mistake(at)
	return p.complaint(at-back, text, hint)
}

// between reports whether the decoder stands between tokens at offset at, and not inside of one.
func (p *parser) between(at int) bool { return p.skip(p.offset()) >= at }

// mistake says what is wrong at an offset, the cure, and how many bytes before it the mistake is.
func (p *parser) mistake(at int) (text, hint string, back int) {
	rest := p.data[at:]
	before := bytes.TrimRight(p.data[:at], " \t\r\n")
	r, size := utf8.DecodeRune(rest)
	switch {
	case r == utf8.RuneError && size == 1:
		return "the file holds bytes that are not UTF-8", "save it as UTF-8", 0
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")), r == '#':
		return "comments are not part of JSON", "remove the comment", 0
	case p.complete:
		return "there is more text after the end of the JSON value", "remove it", 0
	case (r == '}' || r == ']') && bytes.HasSuffix(before, []byte(",")):
		return fmt.Sprintf("there is a comma before the closing %q", r), "remove the comma", at - len(before) + 1
	case r == '\'' || r == '`':
		return "JSON wants double quotes", "replace the quotes by double quotes", 0
	case r == '\u201c' || r == '\u201d':
		return "typographic quotes are not part of JSON", "replace them by straight double quotes", 0
	case r == '\\':
		return "a text holds a broken escape", `write a backslash as \\, and \u only with four hexadecimal digits that make a character`, 0
	case r == '"' && p.between(at) && endsValue(before):
		return "a comma or a colon is missing before this", "put it there", 0
	case (isLetter(r) || r == '$') && p.between(at):
		return "this is no JSON value", "names and texts stand in double quotes", 0
	}
	return fmt.Sprintf("the character %q does not belong here", r), "", 0
}

// endsValue reports whether a JSON value may end with the last byte of b.
func endsValue(b []byte) bool {
	return len(b) > 0 && bytes.IndexByte([]byte("{[,:"), b[len(b)-1]) < 0
}

// isLetter reports whether r is an ASCII letter or an underscore.
func isLetter(r rune) bool { return r == '_' || r|0x20 >= 'a' && r|0x20 <= 'z' }
