// Package jsondoc reads a JSON file that people edit: strictly (RFC 8259, no duplicate names at any level, valid UTF-8,
// nothing after the value), into a tree that knows where each value stands, so that every complaint can name a line and a column.
package jsondoc

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is one value of a document. It is not to be changed.
type Value struct {
	Kind       jsontext.Kind  // 'n', 't', 'f', '"', '0', '{', '['
	Start, End int            // byte offsets in the file
	Raw        jsontext.Value // its bytes
	Text       string         // of a string: the text
	Members    []Member       // of an object, in the file's order
	Items      []*Value       // of an array
}

// Member is one name and value of an object.
type Member struct {
	Name      string
	NameStart int // byte offset of the name's opening quote
	Value     *Value
}

// Get returns the member of that exact name, or nil; nil for what is no object.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// TypeName says in words what a value is: "an object", "a string", ...
func (v *Value) TypeName() string {
	switch v.Kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

// SyntaxError is what is wrong with a file, where, and how to mend it.
type SyntaxError struct {
	Line, Column int    // from 1; the column counts characters
	Text         string // one sentence; of the file's contents it tells a name or a character at most, quoted
	Hint         string // may be empty
}

// Error returns `line L, column C: text`.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Text)
}

// Parse reads a whole file. A byte order mark at its start is skipped. The error is a *SyntaxError.
func Parse(data []byte) (*Value, error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, &SyntaxError{Line: 1, Column: 1, Text: "the file is UTF-16 text", Hint: "save it as UTF-8"}
	}
	base := markLength(data)
	if len(bytes.TrimLeft(data[base:], " \t\r\n")) == 0 {
		return nil, &SyntaxError{Line: 1, Column: 1, Text: "the file is empty", Hint: "write {} into it or delete it"}
	}
	p := &parser{data: data, base: base, dec: jsontext.NewDecoder(bytes.NewReader(data[base:]))}
	v, err := p.value()
	if err == nil {
		p.complete = true
		if _, err = p.dec.ReadToken(); err == io.EOF {
			return v, nil
		} else if err == nil {
			start := p.skip(v.End)
			return nil, p.complaint(start, "there is more text after the end of the JSON value", "remove it")
		}
	}
	return nil, p.explain(err)
}

// markLength is the length of a UTF-8 byte order mark at the start of data.
func markLength(data []byte) int {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return 3
	}
	return 0
}

// Position returns the line and column, both from 1, of a byte offset.
func Position(data []byte, offset int) (line, column int) {
	return start(data).to(data, offset)
}

// place is an offset with its line and column.
type place struct{ offset, line, column int }

func start(data []byte) place { return place{markLength(data), 1, 1} }

// to counts on to the line and column of a later offset.
func (p place) to(data []byte, offset int) (line, column int) {
	between := data[p.offset:min(max(offset, p.offset), len(data))]
	if last := bytes.LastIndexByte(between, '\n'); last >= 0 {
		return p.line + bytes.Count(between, []byte("\n")), 1 + utf8.RuneCount(between[last+1:])
	}
	return p.line, p.column + utf8.RuneCount(between)
}

// placeEvery is how many bytes lie between two places that Places remembers: what is counted for each one asked for.
const placeEvery = 4 << 10

// Places tells the lines and columns of many offsets of one text: with Position, a file of one long line with thousands
// of entries would cost its square.
type Places struct {
	data  []byte
	known []place
}

// NewPlaces reads a text.
func NewPlaces(data []byte) *Places {
	p := &Places{data: data, known: []place{start(data)}}
	for last := p.known[0]; ; p.known = append(p.known, last) {
		next := last.offset + placeEvery
		for next < len(data) && !utf8.RuneStart(data[next]) {
			next++ // no character is cut in two
		}
		if next >= len(data) {
			return p
		}
		last.line, last.column = last.to(data, next)
		last.offset = next
	}
}

// Position is that of the function.
func (p *Places) Position(offset int) (line, column int) {
	after, _ := slices.BinarySearchFunc(p.known, offset+1, func(k place, o int) int { return k.offset - o })
	return p.known[max(after-1, 0)].to(p.data, offset)
}

// parser builds the tree from tokens.
type parser struct {
	data     []byte
	base     int // where the decoder's offset 0 is
	dec      *jsontext.Decoder
	complete bool // the value is read, and only the end of the file is to come
}

// offset is where the decoder stands in the file.
func (p *parser) offset() int { return p.base + int(p.dec.InputOffset()) }

// skip returns the offset of the next token at or after from.
func (p *parser) skip(from int) int {
	for from < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[from]) >= 0 {
		from++
	}
	return from
}

// value reads one value.
func (p *parser) value() (*Value, error) {
	start := p.skip(p.offset())
	tok, err := p.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	v := &Value{Kind: tok.Kind(), Start: start}
	switch v.Kind {
	case '"':
		v.Text = tok.String()
	case '{':
		err = p.members(v)
	case '[':
		err = p.items(v)
	}
	if err != nil {
		return nil, err
	}
	v.End = p.offset()
	v.Raw = jsontext.Value(p.data[v.Start:v.End])
	return v, nil
}

// members reads an object up to its end.
func (p *parser) members(v *Value) error {
	for p.dec.PeekKind() != '}' {
		start := p.skip(p.offset())
		name, err := p.dec.ReadToken()
		if err != nil {
			return err
		}
		m := Member{Name: name.String(), NameStart: start}
		if m.Value, err = p.value(); err != nil {
			return err
		}
		v.Members = append(v.Members, m)
	}
	_, err := p.dec.ReadToken()
	return err
}

// items reads an array up to its end.
func (p *parser) items(v *Value) error {
	for p.dec.PeekKind() != ']' {
		item, err := p.value()
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
	}
	_, err := p.dec.ReadToken()
	return err
}

// complaint is a SyntaxError at a byte offset.
func (p *parser) complaint(offset int, text, hint string) *SyntaxError {
	line, column := Position(p.data, offset)
	return &SyntaxError{Line: line, Column: column, Text: text, Hint: hint}
}
