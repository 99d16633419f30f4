package jsonrpc

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// version is the only value of the "jsonrpc" member that makes an object a message.
const version = `"2.0"`

// space is the white space of JSON.
const space = " \t\r\n"

// InvalidError is why bytes are no message. When they are plainly an answer, ID says to which request, so that its
// caller need not wait for a timeout.
type InvalidError struct {
	ID     ID     // raw; empty unless the bytes are an answer with one id
	Reason string // our own words
}

// Error returns the reason.
func (e *InvalidError) Error() string { return "invalid message: " + e.Reason }

// Decode parses one message strictly: exact-case names, no duplicate names at any level, UTF-8 mended
// by replacement, nothing behind it. It accepts ids that are integers or strings; any other id of a
// request yields a Request with an ID that UsableID refuses, so that it can be ignored. Any error is an *InvalidError.
func Decode(b []byte) (Message, error) {
	var d decoder
	return d.decode(bytes.Clone(b))
}

// keptTables is the longest message, in bytes, after which the parser's tables are kept for the next: they grow with
// the names in one object, and a hostile message of 16 MiB would leave 80 MiB behind.
const keptTables = 1 << 20

// maxBatch bounds the elements of a batch: a batch answers pending calls, of which there are few.
const maxBatch = 10_000

// decoder keeps the parser's tables between messages. It is for one goroutine.
type decoder struct {
	src bytes.Buffer
	dec *jsontext.Decoder
}

// reset makes the parser read b, without copying it.
func (d *decoder) reset(b []byte, opts ...jsontext.Options) {
	d.src = *bytes.NewBuffer(b)
	if d.dec == nil {
		d.dec = jsontext.NewDecoder(&d.src, opts...)
		return
	}
	d.dec.Reset(&d.src, opts...)
}

// decode is Decode for bytes that nobody changes any more: the message aliases them.
func (d *decoder) decode(b []byte) (Message, error) {
	if len(b) > keptTables {
		defer func() { *d = decoder{} }()
	}
	e, err := d.envelope(b)
	if err == nil {
		return e.message(false)
	}
	if m, changed := mend(b); changed {
		if e, err2 := d.envelope(m); err2 == nil {
			return e.message(true)
		}
	}
	reason := "malformed JSON"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = "a name occurs twice in one object"
	case errors.Is(err, errCaseVariant):
		reason = errCaseVariant.Error()
	case errors.Is(err, errNoObject):
		reason = errNoObject.Error()
	}
	return Message{}, &InvalidError{ID: d.salvage(b), Reason: reason}
}

var (
	errCaseVariant = errors.New("a member's name differs from the protocol's in case only")
	errNoObject    = errors.New("not a JSON object")
	errTrailing    = errors.New("data behind the message")
)

// envelope holds the raw members of a message; nil is absent.
type envelope struct {
	version, id, method, params, result, fault jsontext.Value
}

// member returns where the member of that (quoted) name goes, nil for one that is not ours.
func (e *envelope) member(name []byte) (*jsontext.Value, error) {
	switch string(name) {
	case `"jsonrpc"`:
		return &e.version, nil
	case `"id"`:
		return &e.id, nil
	case `"method"`:
		return &e.method, nil
	case `"params"`:
		return &e.params, nil
	case `"result"`:
		return &e.result, nil
	case `"error"`:
		return &e.fault, nil
	}
	plain := name[1 : len(name)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		u, err := jsontext.AppendUnquote(nil, name)
		if err != nil {
			return nil, err
		}
		for _, known := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
			if string(u) == known {
				return e.member([]byte(`"` + known + `"`))
			}
		}
		plain = u
	}
	if len(plain) <= len("jsonrpc")*2 { // a folded letter may take more bytes than the plain one
		for _, known := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
			if strings.EqualFold(string(plain), known) {
				return nil, errCaseVariant
			}
		}
	}
	return nil, nil
}

// envelope reads the members of the one object in b.
func (d *decoder) envelope(b []byte) (envelope, error) {
	var e envelope
	d.reset(b)
	if d.dec.PeekKind() != '{' {
		if _, err := d.dec.ReadToken(); err != nil {
			return e, err
		}
		return e, errNoObject
	}
	if err := d.members(&e, nil); err != nil {
		return e, err
	}
	if len(bytes.Trim(d.dec.UnreadBuffer(), space)) > 0 {
		return e, errTrailing
	}
	return e, nil
}

// members reads an object into e and calls seen, if any, for each member of ours before its value is read.
func (d *decoder) members(e *envelope, seen func(at *jsontext.Value)) error {
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	for d.dec.PeekKind() != '}' {
		name, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		at, err := e.member(name)
		if err != nil {
			return err
		}
		if at == nil {
			if err := d.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if seen != nil {
			seen(at)
		}
		if *at, err = d.dec.ReadValue(); err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	return err
}

// salvage finds the id of an answer that cannot be accepted, as far as b can be read. It is empty when the object
// names its id twice or is not plainly an answer.
func (d *decoder) salvage(b []byte) ID {
	var e envelope
	ids, answer, other := 0, false, false
	d.reset(b, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.dec.PeekKind() != '{' {
		return nil
	}
	_ = d.members(&e, func(at *jsontext.Value) { // how far it came is enough
		switch at {
		case &e.id:
			ids++
		case &e.result, &e.fault:
			answer = true
		case &e.method:
			other = true
		}
	})
	if ids != 1 || !answer || other || string(e.version) != version {
		return nil
	}
	return e.id
}

// absent reports whether a member is missing or null.
func absent(v jsontext.Value) bool { return len(v) == 0 || v[0] == 'n' }

// message classifies the members. mended says that the bytes were changed so that they could be read.
func (e *envelope) message(mended bool) (Message, error) {
	if string(e.version) != version {
		return Message{}, &InvalidError{Reason: `no "jsonrpc": "2.0"`}
	}
	if mended && bytes.Contains(e.id, []byte(replacement)) {
		e.id = jsontext.Value("null") // it cannot be given back as it came
	}
	answer := !absent(e.fault) || len(e.result) > 0
	switch {
	case !absent(e.method) && answer:
		return Message{}, &InvalidError{Reason: "both a request and an answer"}
	case !absent(e.method):
		if e.method.Kind() != '"' {
			return Message{}, &InvalidError{Reason: "the method is not a string"}
		}
		r := &Request{ID: e.id, Method: unquote(e.method)}
		if !absent(e.params) {
			r.Params = e.params
		}
		return Message{Request: r}, nil
	case !absent(e.fault): // an error wins over a result: the safe reading of an answer that says both
		return Message{Response: &Response{ID: e.id, Error: decodeError(e.fault)}}, nil
	case len(e.result) > 0:
		return Message{Response: &Response{ID: e.id, Result: e.result}}, nil
	}
	return Message{}, &InvalidError{Reason: "neither a request nor an answer"}
}

// unquote returns the text of a JSON string that was read strictly.
func unquote(v jsontext.Value) string {
	if len(v) >= 2 && bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	u, err := jsontext.AppendUnquote(nil, []byte(v))
	if err != nil {
		return ""
	}
	return string(u)
}

// decodeError reads an error object as leniently as can be: whatever the server says is a failure of that call.
func decodeError(v jsontext.Value) *Error {
	switch v.Kind() {
	case '"':
		return &Error{Message: unquote(v)}
	case '{':
	default:
		return &Error{Message: string(v)}
	}
	out := &Error{}
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	if _, err := dec.ReadToken(); err != nil {
		return out
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			return out
		}
		key := unquote(name)
		val, err := dec.ReadValue()
		if err != nil {
			return out
		}
		switch {
		case key == "code":
			out.Code = integer(val)
		case key == "message" && val.Kind() == '"':
			out.Message = unquote(val)
		case key == "message":
			out.Message = string(val)
		case key == "data" && !absent(val):
			out.Data = val
		}
	}
	return out
}

// SplitBatch returns the elements of a JSON array, each to be decoded on its own; the elements alias nothing.
func SplitBatch(b []byte) ([][]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(b)), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '[' {
		return nil, &InvalidError{Reason: "not a JSON array"}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, &InvalidError{Reason: "malformed JSON"}
	}
	var out [][]byte
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, &InvalidError{Reason: "malformed JSON"}
		}
		if len(out) == maxBatch {
			return nil, &InvalidError{Reason: "too many messages in one batch"}
		}
		out = append(out, v)
	}
	if _, err := dec.ReadToken(); err != nil || len(bytes.Trim(dec.UnreadBuffer(), space)) > 0 {
		return nil, &InvalidError{Reason: "malformed JSON"}
	}
	return out, nil
}
