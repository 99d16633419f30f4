package mcp

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// node is one value of a parsed schema. Order and numbers stay as they were written.
type node struct {
	kind    jsontext.Kind
	raw     jsontext.Value // of scalars, and of containers nobody looks into
	members []member       // of objects
	items   []*node        // of arrays
	index   map[string]int // of large objects, made when a member is looked for
}

// indexed is from how many members on an object is looked up by an index: a hostile schema must not make it quadratic.
const indexed = 16

// member is one name and value of an object.
type member struct {
	name  string
	value *node
}

// parseTree parses a schema. An absent or broken one is null.
func parseTree(v jsontext.Value, depth int) (*node, error) {
	if len(v) == 0 {
		return raw("null"), nil
	}
	p := parser{dec: decoder(v)}
	n, err := p.read(depth)
	if err != nil {
		if tooDeep, ok := err.(*schemaError); ok {
			return nil, tooDeep
		}
		return nil, &schemaError{"its schema is broken JSON"}
	}
	return n, nil
}

// parser makes nodes, many at a time.
type parser struct {
	dec   *jsontext.Decoder
	spare []node
}

// node returns a new node.
func (p *parser) node(n node) *node {
	if len(p.spare) == 0 {
		p.spare = make([]node, 16)
	}
	at := &p.spare[0]
	p.spare = p.spare[1:]
	*at = n
	return at
}

func (p *parser) read(depth int) (*node, error) {
	dec := p.dec
	kind := dec.PeekKind()
	if kind != '{' && kind != '[' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if kind == '"' && !v.IsValid() { // bad UTF-8: said in good UTF-8
			s, _ := text(v)
			return str(s), nil
		}
		return p.node(node{kind: v.Kind(), raw: v}), nil
	}
	if depth == 0 {
		return nil, &schemaError{"its schema is nested deeper than " + strconv.Itoa(maxSchemaDepth) + " levels"}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	n := p.node(node{kind: kind})
	for k := dec.PeekKind(); k != '}' && k != ']'; k = dec.PeekKind() {
		var name string
		if kind == '{' {
			t, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			name = t.String()
		}
		child, err := p.read(depth - 1)
		if err != nil {
			return nil, err
		}
		if kind == '{' {
			n.add(name, child) // names are unique, or the message would have been refused
		} else {
			n.items = append(n.items, child)
		}
	}
	_, err := dec.ReadToken()
	return n, err
}

// raw is a scalar as it is written.
func raw(v string) *node { return &node{kind: jsontext.Value(v).Kind(), raw: jsontext.Value(v)} }

// str is a string.
func str(s string) *node {
	b, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return raw(`""`)
	}
	return &node{kind: '"', raw: b}
}

// emptyObject is {}.
func emptyObject() *node { return &node{kind: '{'} }

// text returns the string that n is.
func (n *node) text() (string, bool) {
	if n == nil || n.kind != '"' {
		return "", false
	}
	return text(n.raw)
}

// find returns the position of a member, -1 when there is none.
func (n *node) find(name string) int {
	if len(n.members) < indexed {
		return slices.IndexFunc(n.members, func(m member) bool { return m.name == name })
	}
	if n.index == nil {
		n.index = make(map[string]int, len(n.members))
		for i, m := range n.members {
			n.index[m.name] = i
		}
	}
	if i, ok := n.index[name]; ok {
		return i
	}
	return -1
}

// get returns a member of an object, nil when there is none.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	if i := n.find(name); i >= 0 {
		return n.members[i].value
	}
	return nil
}

// add appends a member of a new name.
func (n *node) add(name string, value *node) {
	if n.index != nil {
		n.index[name] = len(n.members)
	}
	n.members = append(n.members, member{name, value})
}

// put replaces or adds a member.
func (n *node) put(name string, value *node) {
	if i := n.find(name); i >= 0 {
		n.members[i].value = value
		return
	}
	n.add(name, value)
}

// drop removes a member.
func (n *node) drop(name string) {
	n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.name == name })
	n.index = nil
}

// append writes n as compact JSON.
func (n *node) append(out []byte) []byte {
	switch n.kind {
	case '{':
		out = append(out, '{')
		for i, m := range n.members {
			if i > 0 {
				out = append(out, ',')
			}
			out, _ = jsontext.AppendQuote(out, m.name) // bad UTF-8 was mended when it was read
			out = append(out, ':')
			out = m.value.append(out)
		}
		return append(out, '}')
	case '[':
		out = append(out, '[')
		for i, v := range n.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = v.append(out)
		}
		return append(out, ']')
	}
	return append(out, n.raw...)
}

// child follows one step of a JSON pointer.
func (n *node) child(step string) *node {
	switch n.kind {
	case '{':
		return n.get(step)
	case '[':
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.items) && strconv.Itoa(i) == step {
			return n.items[i]
		}
	}
	return nil
}
