package mcp

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// This file reads foreign JSON whose shape nobody guarantees. Messages have passed jsonrpc.Decode, so that names are unique;
// readers here still accept anything, and take a wrong type for an absent value.

// decoder reads v in place.
func decoder(v jsontext.Value) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// fields are the members of an object that a reader knows.
type fields map[string]jsontext.Value

// object returns those members of an object that are named, or false for anything else. The values alias v. It keeps
// nothing of other members, of which there may be millions; hasOthers tells of them.
func object(v jsontext.Value, names ...string) (known fields, ok bool) {
	if v.Kind() != '{' {
		return nil, false
	}
	known = make(fields, len(names))
	dec := decoder(v)
	if _, err := dec.ReadToken(); err != nil {
		return nil, false
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return nil, false
		}
		at := slices.IndexFunc(names, func(n string) bool { return isName(name, n) })
		if at < 0 {
			if err := dec.SkipValue(); err != nil {
				return nil, false
			}
			continue
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, false
		}
		known[names[at]] = value
	}
	return known, true
}

// isName reports whether a quoted name is n.
func isName(quoted jsontext.Value, n string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == n
	}
	s, _ := text(quoted)
	return s == n
}

// hasOthers reports whether an object has members other than those named.
func hasOthers(v jsontext.Value, names ...string) bool {
	dec := decoder(v)
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return false
		}
		if !slices.ContainsFunc(names, func(n string) bool { return isName(name, n) }) {
			return true
		}
		if err := dec.SkipValue(); err != nil {
			return false
		}
	}
	return false
}

// elements calls f for every element of the array v until it returns false. The values alias v.
func elements(v jsontext.Value, f func(jsontext.Value) bool) error {
	dec := decoder(v)
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if !f(value) {
			return nil
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("data behind the array")
	}
	return nil
}

// text returns the string that v holds.
func text(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 && len(v) >= 2 && v[len(v)-1] == '"' && utf8.Valid(v) {
		return string(v[1 : len(v)-1]), true // the usual case, without a copy in between
	}
	b, err := jsontext.AppendUnquote(nil, []byte(v))
	if err != nil && !bytes.ContainsRune(b, '\uFFFD') {
		return "", false
	}
	return string(b), true
}
