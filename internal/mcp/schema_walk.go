package mcp

import (
	"slices"
	"strconv"
	"strings"

	"magi-code/internal/untrusted"
)

// schemaWalk goes once through a schema, mends it in place, and collects its references, which are
// resolved when everything has its final place.
type schemaWalk struct {
	path    []string // steps from the root to the schema at hand
	refs    []*reference
	anchors map[string]bool
}

// resource is a schema with an $id: what references inside it are relative to.
type resource struct {
	steps []string // from the root
	id    string   // without fragment
}

// arguments makes the root an object schema, which it returns.
func (w *schemaWalk) arguments(root *node) *node {
	if root.kind != '{' {
		root = emptyObject()
	}
	w.schema(root, &resource{})
	t := root.get("type")
	switch name, ok := t.text(); {
	case t == nil, ok && name == "object":
	case t.kind == '[' && slices.ContainsFunc(t.items, func(n *node) bool { s, _ := n.text(); return s == "object" }):
	default: // a schema of something else: nothing in it describes arguments
		about := root.get("description")
		root = emptyObject()
		w.refs = nil
		if about != nil {
			root.add("description", about)
		}
	}
	root.put("type", raw(`"object"`))
	if root.get("properties") == nil { // without which OpenAI refuses an object
		root.add("properties", emptyObject())
	}
	w.describeRequired(root)
	return root
}

// in walks a value one step below.
func (w *schemaWalk) in(step string, f func()) {
	w.path = append(w.path, step)
	f()
	w.path = w.path[:len(w.path)-1]
}

// sub mends a value that stands for a schema and returns what takes its place.
func (w *schemaWalk) sub(n *node, res *resource) *node {
	switch n.kind {
	case '{':
		w.schema(n, res)
		return n
	case 'f':
		no := emptyObject()
		no.add("not", emptyObject())
		return no
	}
	return emptyObject() // true, and what is no schema at all
}

// schema mends one schema object.
func (w *schemaWalk) schema(n *node, res *resource) {
	res = w.identify(n, res)
	kept := n.members[:0]
	for _, m := range n.members {
		w.in(m.name, func() {
			if m.value = w.keyword(n, m, res); m.value != nil {
				kept = append(kept, m)
			}
		})
	}
	clear(n.members[len(kept):])
	n.members, n.index = kept, nil
	w.finish(n)
}

// identify takes $id out of a schema. A fragment alone is how old drafts write an anchor.
func (w *schemaWalk) identify(n *node, res *resource) *resource {
	id, ok := n.get("$id").text()
	if n.get("$id") != nil {
		n.drop("$id")
	}
	if !ok || id == "" {
		return res
	}
	uri, fragment, _ := strings.Cut(id, "#")
	if fragment != "" && n.get("$anchor") == nil {
		n.add("$anchor", str(fragment))
	}
	if uri == "" {
		return res
	}
	return &resource{steps: slices.Clone(w.path), id: uri}
}

// keyword mends one keyword's value; nil takes the keyword out.
func (w *schemaWalk) keyword(holder *node, m member, res *resource) *node {
	v := m.value
	switch m.name {
	case "$schema", "$vocabulary", "$recursiveAnchor":
		return nil
	case "$ref", "$dynamicRef", "$recursiveRef":
		return w.refer(holder, m.name, v, res)
	case "$anchor", "$dynamicAnchor":
		return w.anchor(v)
	case "type":
		return mendType(v)
	case "enum":
		return when(v.kind == '[' && len(v.items) > 0, v)
	case "const", "default", "example":
		return v // data
	case "examples":
		return when(v.kind == '[', v) // data
	case "properties":
		if v.kind != '{' {
			return emptyObject() // PHP writes an empty object as an array
		}
		return w.each(v, res)
	case "patternProperties", "$defs", "definitions", "dependentSchemas":
		return when(v.kind == '{', w.each(v, res))
	case "dependencies":
		return when(v.kind == '{', w.dependencies(v, res))
	case "dependentRequired":
		return when(v.kind == '{' && !slices.ContainsFunc(v.members, func(m member) bool { return names(m.value) == nil }), v)
	case "additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems":
		if v.kind == 't' || v.kind == 'f' {
			return v
		}
		return w.optional(v, res)
	case "items":
		if v.kind == '[' {
			return w.each(v, res) // a tuple: finish renames it
		}
		return w.optional(v, res)
	case "contains", "propertyNames", "if", "then", "else", "not", "contentSchema":
		return w.optional(v, res)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return when(v.kind == '[' && len(v.items) > 0, w.each(v, res))
	case "required":
		return names(v)
	case "title", "description":
		return prose(v)
	}
	if ok, known := plainKeyword(m.name, v); known {
		return when(ok, v)
	}
	w.loose(v, res)
	return v
}

// prose is text for the model, without what a person would not see in it.
func prose(v *node) *node {
	s, ok := v.text()
	if ok && untrusted.HasHidden(s) {
		return str(untrusted.Text(s))
	}
	return when(ok, v)
}

// when returns v if ok, else nil.
func when(ok bool, v *node) *node {
	if !ok {
		return nil
	}
	return v
}

// optional is sub for a keyword that goes when its value is no schema.
func (w *schemaWalk) optional(v *node, res *resource) *node {
	if v.kind == '{' || v.kind == 't' || v.kind == 'f' {
		return w.sub(v, res)
	}
	return nil
}

// each mends every member or element as a schema.
func (w *schemaWalk) each(v *node, res *resource) *node {
	for i := range v.members {
		w.in(v.members[i].name, func() { v.members[i].value = w.sub(v.members[i].value, res) })
	}
	for i := range v.items {
		w.in(strconv.Itoa(i), func() { v.items[i] = w.sub(v.items[i], res) })
	}
	return v
}

// dependencies is the old keyword whose values are schemas or lists of names.
func (w *schemaWalk) dependencies(v *node, res *resource) *node {
	for i, m := range v.members {
		if list := names(m.value); list != nil {
			v.members[i].value = list
			continue
		}
		w.in(m.name, func() { v.members[i].value = w.sub(m.value, res) })
	}
	return v
}

// loose finds references below keywords that we do not know.
func (w *schemaWalk) loose(v *node, res *resource) {
	kept := v.members[:0]
	for _, m := range v.members {
		if m.name == "$ref" {
			if m.value = w.refer(v, m.name, m.value, res); m.value != nil {
				kept = append(kept, m)
			}
			continue
		}
		w.loose(m.value, res)
		kept = append(kept, m)
	}
	v.members, v.index = kept, nil
	for _, item := range v.items {
		w.loose(item, res)
	}
}

// anchor keeps a plain name and remembers it.
func (w *schemaWalk) anchor(v *node) *node {
	name, ok := v.text()
	if !ok || name == "" || !isPlain(strings.ReplaceAll(name, ".", "_")) {
		return nil
	}
	if w.anchors == nil {
		w.anchors = map[string]bool{}
	}
	w.anchors[name] = true
	return v
}

// finish mends what depends on several keywords.
func (w *schemaWalk) finish(n *node) {
	if items := n.get("items"); items != nil && items.kind == '[' {
		n.drop("items")
		if len(items.items) > 0 && n.get("prefixItems") == nil {
			n.add("prefixItems", items)
		}
		if rest := n.get("additionalItems"); rest != nil {
			n.drop("additionalItems")
			n.add("items", schemaOf(rest))
		}
	}
	if isArrayType(n.get("type")) && n.get("items") == nil {
		n.add("items", emptyObject())
	}
	mendBound(n, "exclusiveMinimum", "minimum")
	mendBound(n, "exclusiveMaximum", "maximum")
	w.describeRequired(n)
}

// mendBound turns the boolean of draft 4, which excludes the bound beside it, into the number of later drafts.
func mendBound(n *node, open, closed string) {
	v := n.get(open)
	if v == nil || v.kind == '0' {
		return
	}
	bound := n.get(closed)
	n.drop(open)
	if v.kind == 't' && bound != nil {
		n.drop(closed)
		n.add(open, bound)
	}
}

// schemaOf writes a boolean schema as an object.
func schemaOf(v *node) *node { return (&schemaWalk{}).sub(v, &resource{}) }

// describeRequired describes every required property that is not described. Branches of anyOf and the like may require
// what stands elsewhere, so that only a schema with properties of its own is held to it.
func (w *schemaWalk) describeRequired(n *node) {
	required := n.get("required")
	properties := n.get("properties")
	if required == nil || properties == nil {
		return
	}
	for _, item := range required.items {
		if name, _ := item.text(); properties.get(name) == nil {
			properties.add(name, emptyObject())
		}
	}
}
