package mcp

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxSchema bounds one tool's schema in bytes: the largest tool definition seen has 90 KB, and a model has to read it.
	maxSchema = 256 << 10
	// maxSchemaDepth bounds its nesting.
	maxSchemaDepth = 64

	// schemaHead and schemaTail wrap the server's schema (R-N2).
	schemaHead = `{"type":"object","properties":{"intent":{"type":"string"},"arguments":`
	schemaTail = `},"required":["intent","arguments"],"additionalProperties":false}`
	// argumentsPointer is where the server's schema stands in the wrapper; every local reference moves below it.
	argumentsPointer = "/properties/arguments"
)

// schemaError is a schema that cannot be advertised: its tool is left out.
type schemaError struct{ text string }

func (e *schemaError) Error() string { return e.text }

// callSchema is the schema of a whole call, without secrets that the server may have put into its own.
func (s *server) callSchema(input jsontext.Value) (jsontext.Value, error) {
	schema, err := wrapSchema(input)
	if err != nil {
		return nil, err
	}
	clean := jsontext.Value(s.o.Scrub.Bytes(schema))
	if len(clean) != len(schema) && !clean.IsValid() {
		return nil, &schemaError{"its schema cannot be shown without a secret"}
	}
	return clean, nil
}

// wrapSchema puts a tool's inputSchema, whatever it is, into the schema of a call. The result is valid JSON in compact form, in
// which every reference resolves. Meaning is kept where providers take it, and given up in favour of a wider schema where they
// would refuse it, and the whole request with it: the server still checks what it gets, which is exactly what the model
// wrote. In particular (W5, B39):
//   - a missing schema, and anything that is no object schema, becomes {"type":"object","properties":{}} with what can be kept of it;
//   - $schema and $id go; local references are rewritten, relative to the nearest $id; references to elsewhere are never
//     fetched and go, as do those that lead nowhere or only to themselves;
//   - true and false in the place of schemas become {} and {"not":{}}, where they are not usual (additionalProperties);
//   - tuples written as an array of items become prefixItems; an array schema gets items; draft-4 boolean bounds become numbers;
//   - keywords with values of a wrong kind go (null or empty enum, unknown type, required that is no list of names, ...);
//   - a required property that is not described is described as {};
//   - titles and descriptions lose hidden characters, as a tool's own description does.
//
// Property names stay as they are: providers check those of the top level only, which are ours.
func wrapSchema(input jsontext.Value) (jsontext.Value, error) {
	if len(input) > maxSchema {
		return nil, &schemaError{fmt.Sprintf("its schema has %d bytes, more than %d", len(input), maxSchema)}
	}
	root, err := parseTree(input, maxSchemaDepth)
	if err != nil {
		return nil, err
	}
	w := &schemaWalk{}
	root = w.arguments(root)
	w.resolve(root)
	out := make([]byte, 0, len(schemaHead)+len(input)+len(schemaTail)+64)
	out = append(out, schemaHead...)
	out = root.append(out)
	out = append(out, schemaTail...)
	if len(out) > 2*maxSchema {
		return nil, &schemaError{fmt.Sprintf("its schema has more than %d bytes after conversion", 2*maxSchema)}
	}
	return out, nil
}
