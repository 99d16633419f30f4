package mcp

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// This file knows which values the keywords of a schema take.

// names returns a list of distinct names, nil when v is none or empty.
func names(v *node) *node {
	if v.kind != '[' {
		return nil
	}
	seen := make(map[string]bool, len(v.items))
	v.items = slices.DeleteFunc(v.items, func(item *node) bool {
		s, ok := item.text()
		if !ok || seen[s] {
			return true
		}
		seen[s] = true
		return false
	})
	return when(len(v.items) > 0, v)
}

// isArrayType reports whether a type is or includes array.
func isArrayType(t *node) bool {
	if t == nil {
		return false
	}
	if s, _ := t.text(); s == "array" {
		return true
	}
	return slices.ContainsFunc(t.items, isArrayType)
}

// mendType keeps the seven types, translates what some languages write for them, and drops the rest.
func mendType(v *node) *node {
	if v.kind == '[' {
		seen := map[string]bool{}
		list := &node{kind: '['}
		for _, item := range v.items {
			if s := typeName(item); s != "" && !seen[s] {
				seen[s] = true
				list.items = append(list.items, str(s))
			}
		}
		return when(len(list.items) > 0, list)
	}
	s := typeName(v)
	if len(v.raw) == len(s)+2 && string(v.raw[1:len(v.raw)-1]) == s {
		return v
	}
	return when(s != "", str(s))
}

func typeName(v *node) string {
	s, _ := v.text()
	switch s = strings.ToLower(s); s {
	case "object", "array", "string", "number", "integer", "boolean", "null":
		return s
	case "int", "long":
		return "integer"
	case "float", "double":
		return "number"
	case "bool":
		return "boolean"
	case "str", "text":
		return "string"
	case "list", "tuple":
		return "array"
	case "dict", "map":
		return "object"
	}
	return ""
}

// plainKeyword reports whether a keyword is one with a simple value, and whether the value is of its kind.
func plainKeyword(name string, v *node) (ok, known bool) {
	switch name {
	case "$comment", "format", "pattern", "contentEncoding", "contentMediaType":
		return v.kind == '"', true
	case "minimum", "maximum":
		return v.kind == '0', true
	case "exclusiveMinimum", "exclusiveMaximum":
		return v.kind == '0' || v.kind == 't' || v.kind == 'f', true
	case "multipleOf":
		return v.kind == '0' && v.raw[0] != '-' && strings.Trim(string(v.raw), "0.") != "", true
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		return isCount(v.raw), true
	case "uniqueItems", "deprecated", "readOnly", "writeOnly", "nullable":
		return v.kind == 't' || v.kind == 'f', true
	}
	return false, false
}

// isCount reports whether v is a whole number of at least 0.
func isCount(v jsontext.Value) bool {
	if len(v) == 0 {
		return false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
