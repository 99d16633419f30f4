package tool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/untrusted"
)

const (
	// MaxInput bounds the input of one call in bytes: more than any sensible file write, little enough that
	// history, hooks and screens can hold it.
	MaxInput = 1 << 20
	// maxShownName bounds in bytes how much of a wrong member's name an error repeats.
	maxShownName = 64
	// intentMember and argumentsMember are the members of a call that are ours.
	intentMember    = "intent"
	argumentsMember = "arguments"
)

// Parse validates the input that a model or a script wrote for t and returns the call. It fails, with a
// sentence that tells the model what to change, when the input is not one JSON object of at most MaxInput bytes
// without duplicate names, when intent is missing or blank (built-ins, MCP), when an MCP call has other members
// than intent and arguments, or arguments is not an object. An empty input counts as {}. A tool without a known
// Origin is refused.
func Parse(t Tool, id string, input []byte) (Call, error) {
	if len(input) > MaxInput {
		return Call{}, fmt.Errorf("the input has %d bytes, more than the %d that a call may have: send less at once", len(input), MaxInput)
	}
	if len(bytes.TrimSpace(input)) == 0 {
		input = []byte("{}")
	}
	call := Call{ID: id, Name: t.Name, Input: bytes.Clone(input)}
	ms, err := members(call.Input)
	if err != nil {
		return Call{}, err
	}
	switch t.Origin {
	case Client:
		call.Arguments = call.Input
		return call, nil
	case Builtin, MCP:
	default:
		return Call{}, fmt.Errorf("tool %q has no known origin and cannot be called", untrusted.Line(t.Name))
	}
	if call.Intent, err = intent(ms); err != nil {
		return Call{}, err
	}
	if t.Origin == MCP {
		call.Arguments, err = wrapped(ms)
		return call, err
	}
	call.Arguments = without(ms, intentMember)
	return call, nil
}

// member is one name and value of the input object.
type member struct {
	name  string
	raw   jsontext.Value // the name as written, with quotes and escapes
	value jsontext.Value
}

// members splits the input object. The values alias input: a decoder over a bytes.Buffer reads in place.
func members(input []byte) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(input))
	if dec.PeekKind() != '{' {
		if _, err := dec.ReadValue(); err != nil {
			return nil, badJSON(err)
		}
		return nil, errors.New(`the input must be one JSON object`)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, badJSON(err)
	}
	var ms []member
	for dec.PeekKind() != '}' {
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, badJSON(err)
		}
		m := member{raw: slices.Clip(raw)}
		name, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, badJSON(err)
		}
		m.name = string(name)
		value, err := dec.ReadValue()
		if err != nil {
			return nil, badJSON(err)
		}
		m.value = slices.Clip(value)
		ms = append(ms, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, badJSON(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the input goes on behind its JSON object: send one object and nothing else")
	}
	return ms, nil
}

// badJSON turns a decoding error into a sentence without the decoder's own wording and without input text.
func badJSON(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return errors.New("the input names a member twice: write each name once")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("the input is not valid JSON at byte %d: send one complete JSON object", syntactic.ByteOffset)
	}
	return errors.New("the input is not valid JSON: it ends too early, send one complete JSON object")
}

// intent returns the nonblank intent.
func intent(ms []member) (string, error) {
	for _, m := range ms {
		if m.name != intentMember {
			continue
		}
		if m.value.Kind() != '"' {
			return "", errors.New(`"intent" must be a string that says why the tool is needed`)
		}
		b, err := jsontext.AppendUnquote(nil, m.value)
		if err != nil {
			return "", badJSON(err)
		}
		if isBlank(string(b)) {
			return "", errors.New(`"intent" is blank: say in it why the tool is needed`)
		}
		return string(b), nil
	}
	return "", errors.New(`"intent" is missing: add a string "intent" that says why the tool is needed`)
}

// isBlank reports whether nothing in s can be seen: space, control and format characters do not count.
func isBlank(s string) bool {
	for _, r := range s {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Zs, r) {
			return false
		}
	}
	return true
}

// wrapped returns the inner arguments of an MCP call.
func wrapped(ms []member) (jsontext.Value, error) {
	var args jsontext.Value
	for _, m := range ms {
		switch m.name {
		case intentMember:
		case argumentsMember:
			args = m.value
		default:
			return nil, fmt.Errorf(`unknown member %q: a call has "intent" and "arguments" only, the tool's own inputs go inside "arguments"`,
				untrusted.Head(untrusted.Line(m.name), maxShownName))
		}
	}
	switch {
	case args == nil:
		return nil, errors.New(`"arguments" is missing: add an object "arguments" with the tool's inputs, {} when it has none`)
	case args.Kind() != '{':
		return nil, errors.New(`"arguments" must be a JSON object with the tool's inputs, {} when it has none`)
	}
	return args, nil
}

// without returns the object again, less one member; everything else is as it was written.
func without(ms []member, name string) jsontext.Value {
	out := []byte{'{'}
	for _, m := range ms {
		if m.name == name {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, m.raw...)
		out = append(out, ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}
