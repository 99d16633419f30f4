package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"magi-code/internal/untrusted"
)

// maxSchemaDepth bounds the nesting of a client tool's schema.
const maxSchemaDepth = 64

// checkSchema refuses what services of models refuse, because with one such tool they refuse every request: what stands at the top
// and they do not take there, and what no version of JSON Schema allows. It adds what OpenAI demands and what means nothing:
// "properties" of the whole and "items" of a list.
func checkSchema(text json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var schema map[string]any
	if len(text) > maxClientSchema || d.Decode(&schema) != nil || schema["type"] != "object" {
		return nil, fmt.Errorf("inputSchema is a JSON Schema object with type object, of at most %d bytes", maxClientSchema)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"} {
		if _, has := schema[keyword]; has {
			return nil, fmt.Errorf("inputSchema has %s at its top, which services of models refuse: describe the cases within a property", keyword)
		}
	}
	if _, has := schema["properties"]; !has {
		schema["properties"] = map[string]any{}
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil, errors.New("properties of inputSchema is an object")
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !clientPropertyName.MatchString(name) {
			return nil, fmt.Errorf("property %q of inputSchema: services of models take names of 1 to 64 ASCII letters, digits, _, . and -", untrusted.Head(untrusted.Visible(name), maxShownName))
		}
	}
	w := schemaCheck{root: schema}
	if err := w.schema(schema, nil); err != nil {
		return nil, err
	}
	out, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("inputSchema cannot be written: %w", err)
	}
	return out, nil
}

// schemaCheck walks through one schema.
type schemaCheck struct{ root map[string]any }

// schema checks a schema and those in it. at are the steps from the root.
func (w schemaCheck) schema(v any, at []string) error {
	if len(at) > maxSchemaDepth {
		return fmt.Errorf("inputSchema is nested deeper than %d", maxSchemaDepth)
	}
	if _, ok := v.(bool); ok && len(at) > 0 {
		return nil
	}
	s, ok := v.(map[string]any)
	if !ok {
		return mistake(at, "a schema is an object")
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if err := w.keyword(keyword, s[keyword], append(slices.Clone(at), keyword)); err != nil {
			return err
		}
	}
	if holdsArrays(s["type"]) && s["items"] == nil {
		s["items"] = map[string]any{}
	}
	return nil
}

// keyword checks the value of one keyword. Those that it does not know may have any.
func (w schemaCheck) keyword(name string, v any, at []string) error {
	switch name {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		all, ok := v.(map[string]any)
		if !ok {
			return mistake(at, "an object of schemas is needed")
		}
		for _, k := range slices.Sorted(maps.Keys(all)) {
			if err := w.schema(all[k], append(slices.Clone(at), k)); err != nil {
				return err
			}
		}
	case "anyOf", "oneOf", "allOf", "prefixItems":
		all, ok := v.([]any)
		if !ok || len(all) == 0 {
			return mistake(at, "a list of schemas is needed")
		}
		for i, one := range all {
			if err := w.schema(one, append(slices.Clone(at), fmt.Sprint(i))); err != nil {
				return err
			}
		}
	case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
		if _, tuple := v.([]any); tuple && name == "items" {
			return mistake(at, "a schema is needed; the schemas of a tuple stand in prefixItems")
		}
		return w.schema(v, at)
	case "$ref":
		return w.reference(v, at)
	default:
		if need := plain(name, v); need != "" {
			return mistake(at, need+" is needed")
		}
	}
	return nil
}

// plain is what a keyword without schemas in it needs, "" when v is that.
func plain(name string, v any) (need string) {
	ok := true
	switch name {
	case "type":
		need, ok = "one of object, array, string, number, integer, boolean and null, or a list of them,", isType(v)
	case "required":
		need, ok = "a list of different names", distinctNames(v)
	case "enum":
		list, isList := v.([]any)
		need, ok = "a list of values", isList && len(list) > 0
	case "title", "description", "pattern", "format", "$comment", "$id", "$schema", "$anchor":
		need = "a text"
		_, ok = v.(string)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		need = "a number"
		_, ok = v.(json.Number)
	case "multipleOf":
		n, isNumber := v.(json.Number)
		need, ok = "a number above 0", isNumber && n[0] != '-' && strings.Trim(string(n), "0.") != ""
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		n, isNumber := v.(json.Number)
		need, ok = "a whole number of at least 0", isNumber && strings.Trim(string(n), "0123456789") == ""
	case "uniqueItems", "readOnly", "writeOnly", "deprecated":
		need = "true or false"
		_, ok = v.(bool)
	}
	if ok {
		return ""
	}
	return need
}

func isType(v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	known := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	return distinctNames(list) && len(list) > 0 && !slices.ContainsFunc(list, func(t any) bool { return !slices.Contains(known, t.(string)) })
}

func holdsArrays(t any) bool {
	list, _ := t.([]any)
	return t == "array" || slices.Contains(list, any("array"))
}

func distinctNames(v any) bool {
	list, ok := v.([]any)
	seen := map[string]bool{}
	for _, item := range list {
		s, isText := item.(string)
		ok = ok && isText && !seen[s]
		seen[s] = true
	}
	return ok
}

// reference checks that a local reference leads to something; anchors are left to the reader, and nothing is ever fetched.
func (w schemaCheck) reference(v any, at []string) error {
	to, ok := v.(string)
	if !ok || !strings.HasPrefix(to, "#") {
		return mistake(at, "a reference into the schema itself (#/...) is needed")
	}
	if !strings.HasPrefix(to, "#/") {
		return nil
	}
	var target any = w.root
	for step := range strings.SplitSeq(to[2:], "/") {
		if text, err := url.PathUnescape(step); err == nil {
			step = text
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch holder := target.(type) {
		case map[string]any:
			target = holder[step]
		case []any:
			target = nil
			for i := range holder {
				if fmt.Sprint(i) == step {
					target = holder[i]
				}
			}
		default:
			target = nil
		}
	}
	if target == nil {
		return mistake(at, "the reference leads nowhere")
	}
	return nil
}

func mistake(at []string, text string) error {
	return fmt.Errorf("inputSchema at /%s: %s", untrusted.Head(untrusted.Visible(strings.Join(at, "/")), maxShownName), text)
}
