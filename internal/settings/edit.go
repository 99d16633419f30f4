package settings

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/jsondoc"
)

// editor changes one place of a JSON text and leaves every other byte alone.
type editor struct {
	path string
	data []byte
}

// defaultIndent is used where the file does not show its own.
const defaultIndent = "  "

// set returns the text with the key path set to value, or without it when value is nil.
func (e *editor) set(root *jsondoc.Value, keys []string, value jsontext.Value) ([]byte, error) {
	cur := root
	for i, k := range keys {
		if cur.Kind != '{' {
			line, column := jsondoc.Position(e.data, cur.Start)
			return nil, &Error{Path: e.path, Line: line, Column: column, Key: safe(strings.Join(keys[:i], ".")), Text: "must be an object and is " + cur.TypeName(), Hint: "correct or remove it"}
		}
		n := slices.IndexFunc(cur.Members, func(m jsondoc.Member) bool { return m.Name == k })
		last := i == len(keys)-1
		switch {
		case n < 0 && value == nil:
			return e.data, nil
		case n < 0:
			return e.insert(root, cur, keys[i:], bytes.TrimSpace(value)), nil
		case last && value == nil:
			return e.remove(cur, n), nil
		case last:
			v := cur.Members[n].Value
			return e.splice(v.Start, v.End, string(bytes.TrimSpace(value))), nil
		}
		cur = cur.Members[n].Value
	}
	return e.data, nil
}

// splice replaces the bytes between two offsets.
func (e *editor) splice(from, to int, text string) []byte {
	out := make([]byte, 0, len(e.data)+len(text))
	out = append(out, e.data[:from]...)
	out = append(out, text...)
	return append(out, e.data[to:]...)
}

// remove takes out the n-th member with one comma.
func (e *editor) remove(obj *jsondoc.Value, n int) []byte {
	m := obj.Members[n]
	switch {
	case n+1 < len(obj.Members):
		return e.splice(m.NameStart, obj.Members[n+1].NameStart, "")
	case n > 0:
		return e.splice(obj.Members[n-1].Value.End, m.Value.End, "")
	}
	return e.splice(obj.Start+1, obj.End-1, "")
}

// insert adds a member at the end of obj, in the style of the file; keys beyond the first become objects.
func (e *editor) insert(root, obj *jsondoc.Value, keys []string, value []byte) []byte {
	s := e.style(root)
	if n := len(obj.Members); n > 0 {
		last := obj.Members[n-1]
		lead := e.spaceBefore(last.NameStart)
		if !strings.Contains(lead, "\n") {
			s.lines = false
			if n == 1 { // in front of an only member stands the space of the brace
				lead = s.colon[1:]
			}
		}
		return e.splice(last.Value.End, last.Value.End, ","+lead+s.member(keys, value, indentOf(lead)))
	}
	if !s.lines {
		return e.splice(obj.Start+1, obj.End-1, s.member(keys, value, ""))
	}
	outer := e.lineIndent(obj.Start)
	inner := outer + s.indent
	return e.splice(obj.Start+1, obj.End-1, s.newline+inner+s.member(keys, value, inner)+s.newline+outer)
}

// spaceBefore is the white space in front of an offset.
func (e *editor) spaceBefore(offset int) string {
	before := e.data[:offset]
	return string(before[len(bytes.TrimRight(before, " \t\r\n")):])
}

// lineIndent is the white space at the start of the line of an offset.
func (e *editor) lineIndent(offset int) string {
	line := e.data[bytes.LastIndexByte(e.data[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// indentOf is what follows the last line break of white space.
func indentOf(space string) string { return space[strings.LastIndexByte(space, '\n')+1:] }

// style is how a file is laid out.
type style struct {
	lines   bool // a member has a line of its own
	newline string
	indent  string // one step
	colon   string
}

// style looks at the first member of the root.
func (e *editor) style(root *jsondoc.Value) style {
	s := style{lines: true, newline: "\n", indent: defaultIndent, colon: ": "}
	if bytes.Contains(e.data, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	if len(root.Members) == 0 {
		return s
	}
	first := root.Members[0]
	lead := e.spaceBefore(first.NameStart)
	s.lines = strings.Contains(lead, "\n")
	if step := indentOf(lead); s.lines && step != "" {
		s.indent = step
	}
	between := string(e.data[first.NameStart:first.Value.Start])
	if space := between[strings.LastIndexByte(between, ':'):]; !strings.Contains(space, "\n") {
		s.colon = space
	}
	return s
}

// member writes a name and its value; further keys make nested objects, whose lines begin with indent and more.
func (s style) member(keys []string, value []byte, indent string) string {
	quoted, err := jsontext.AppendQuote(nil, keys[0])
	if err != nil { // not UTF-8: no file can hold such a name
		quoted, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(keys[0], "\ufffd"))
	}
	name := string(quoted) + s.colon
	if len(keys) == 1 {
		return name + string(value)
	}
	if !s.lines {
		return name + "{" + s.member(keys[1:], value, "") + "}"
	}
	inner := indent + s.indent
	return name + "{" + s.newline + inner + s.member(keys[1:], value, inner) + s.newline + indent + "}"
}
