package mcp

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// This file reads foreign JSON whose shape nobody guarantees. Messages have passed jsonrpc.Decode, so that names are unique;
// readers here still accept anything, and take a wrong type for an absent value.

// decoder reads v in place.
func decoder(v jsontext.Value) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// object returns the members of an object, or false for anything else. The values alias v. The last of several
// members of one name counts.
func object(v jsontext.Value) (map[string]jsontext.Value, bool) {
	if v.Kind() != '{' {
		return nil, false
	}
	m := map[string]jsontext.Value{}
	if err := members(v, func(name string, value jsontext.Value) { m[name] = value }); err != nil {
		return nil, false
	}
	return m, true
}

// members calls f for every member of the object v, in order. The values alias v.
func members(v jsontext.Value, f func(name string, value jsontext.Value)) error {
	dec := decoder(v)
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		f(key, value)
	}
	_, err := dec.ReadToken()
	return err
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
