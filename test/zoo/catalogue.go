package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// catalogueModes are about tools/list and what calls return: B38 to B40, W5, W6.
func catalogueModes() map[string]mode {
	return map[string]mode{
		"tools-odd":    {"tools with names and schemas of every kind; kind=names|schemas|members leaves the others out", toolsOdd},
		"dup-tools":    {"two tools of the same name", func(s *server) { s.tools = append(s.tools, define("echo", "Another echo.", ``)) }},
		"case-twins":   {"two tools whose names differ in case", func(s *server) { s.tools = append(s.tools, define("Echo", "Another echo.", ``)) }},
		"no-tools":     {"an empty list of tools", func(s *server) { s.tools = nil }},
		"list-odd":     {"an odd tools/list answer, kind=null|array|no-tools|tools-null|tools-object|entries", listOdd},
		"pages":        {"tools on n=5 pages", pages(func(i, n int) string { return next(i+1 < n, fmt.Sprintf(`"page-%d"`, i+1)) })},
		"page-loop":    {"a cursor that comes again", pages(func(i, n int) string { return next(true, fmt.Sprintf(`"page-%d"`, (i+1)%2)) })},
		"page-endless": {"a new cursor for ever", pages(func(i, _ int) string { return next(true, fmt.Sprintf(`"page-%d"`, i+1)) })},
		"page-empty-cursor": {"an empty cursor at the end", pages(func(i, n int) string {
			return next(true, map[bool]string{true: fmt.Sprintf(`"page-%d"`, i+1), false: `""`}[i+1 < n])
		})},
		"page-null-cursor": {"a null cursor at the end", pages(func(i, n int) string {
			return next(true, map[bool]string{true: fmt.Sprintf(`"page-%d"`, i+1), false: `null`}[i+1 < n])
		})},
		"page-number": {"a number as cursor", pages(func(i, n int) string { return next(i+1 < n, fmt.Sprint(i+1)) })},
		"page-error":  {"an error on the second page", pageError},
		"page-huge":   {"pages of 2 MB for ever", pageHuge},
		"result-odd":  {"a tool for each odd result", resultOdd},
		"results":     {"answers every call with raw=JSON", func(s *server) { s.on["tools/call"] = func(m message) { s.result(m, s.option("raw", "{}")) } }},
		"flip":        {"another list of tools each time it is asked", flip},
	}
}

// oddNames are names that a client has to refuse or to bear: B38, S30.
func oddNames() []string {
	return []string{"fine", "with.dot", "with/slash", "with space", "ünïcödé", "", strings.Repeat("a", 49), strings.Repeat("b", 64), strings.Repeat("c", 65),
		"double__underscore", "__front", "trailing_", "Fine", "FINE", "new\nline", "esc\u001b[31m", "bidi\u202e", "zero\u200bwidth", "-dash", "1digit", "a", "colon:x",
		"mcp__other__tool", "$dollar", "quote\"", "emoji😀"}
}

// oddSchemas are schemas that a client has to bear, each as its tool's name and raw JSON: B39, W5.
func oddSchemas() [][2]string {
	return [][2]string{
		{"schema_missing", ``}, {"schema_null", `null`}, {"schema_true", `true`}, {"schema_false", `false`}, {"schema_array", `[]`}, {"schema_text", `"object"`},
		{"schema_empty", `{}`}, {"no_type", `{"properties":{"a":{"type":"string"}}}`}, {"type_text", `{"type":"string"}`}, {"type_list", `{"type":["object","null"],"properties":{}}`},
		{"one_of", `{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"string"}}}]}`},
		{"all_of", `{"type":"object","allOf":[{"properties":{"a":{}}},{"required":["a"]}]}`},
		{"defs", `{"type":"object","properties":{"p":{"$ref":"#/$defs/point"}},"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"},"next":{"$ref":"#/$defs/point"}}}}}`},
		{"definitions", `{"type":"object","properties":{"p":{"$ref":"#/definitions/a~1b"}},"definitions":{"a/b":{"type":"string"}}}`},
		{"ref_properties", `{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`},
		{"ref_root", `{"type":"object","properties":{"child":{"$ref":"#"}}}`},
		{"ref_dangling", `{"type":"object","properties":{"a":{"$ref":"#/$defs/nowhere"}}}`},
		{"ref_remote", `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:9/schema.json"}}}`},
		{"ref_id", `{"$id":"http://127.0.0.1:9/x","type":"object","properties":{"a":{"$ref":"other.json"}}}`},
		{"required_null", `{"type":"object","properties":{"a":{}},"required":null}`}, {"required_absent", `{"type":"object","properties":{},"required":["ghost"]}`},
		{"required_text", `{"type":"object","required":"a"}`}, {"properties_null", `{"type":"object","properties":null}`}, {"properties_array", `{"type":"object","properties":[]}`},
		{"boolean_property", `{"type":"object","properties":{"a":true,"b":false}}`},
		{"tuple", `{"type":"object","properties":{"t":{"type":"array","items":[{"type":"string"},{"type":"number"}]}}}`},
		{"prefix_items", `{"type":"object","properties":{"t":{"type":"array","prefixItems":[{"type":"string"}],"items":false}}}`},
		{"no_items", `{"type":"object","properties":{"t":{"type":"array"}}}`},
		{"enum_null", `{"type":"object","properties":{"e":{"enum":null}}}`}, {"enum_empty", `{"type":"object","properties":{"e":{"enum":[]}}}`},
		{"exclusive_draft4", `{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`},
		{"draft7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}`},
		{"draft2020", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","dependentRequired":{"a":["b"]},"unevaluatedProperties":false}`},
		{"bad_pattern", `{"type":"object","properties":{"p":{"type":"string","pattern":"(?<=a)b\\1(?!x)"}}}`},
		{"odd_names", `{"type":"object","properties":{"with space":{},"a.b":{},"$ref":{"type":"string"},"ünï":{},"` + strings.Repeat("k", 80) + `":{},"@type":{},"":{}}}`},
		{"intent_inside", `{"type":"object","properties":{"intent":{"type":"number"},"arguments":{"type":"string"}},"required":["intent"]}`},
		{"closed", `{"type":"object","additionalProperties":false}`},
		{"deep", `{"type":"object","properties":{"d":` + strings.Repeat(`{"type":"array","items":`, 200) + `{}` + strings.Repeat(`}`, 200) + `}}`},
		{"large", `{"type":"object","description":"` + strings.Repeat("word ", 18<<10) + `"}`},
		{"big_number", `{"type":"object","properties":{"n":{"type":"integer","maximum":123456789012345678901234567890,"default":1e400}}}`},
	}
}

func toolsOdd(s *server) {
	kind := s.options["kind"]
	want := func(k string) bool { return kind == "" || kind == k }
	s.tools = goodTools()
	if want("names") {
		for _, n := range oddNames() {
			s.tools = append(s.tools, define(n, "A name.", ``))
		}
	}
	if want("schemas") {
		for _, p := range oddSchemas() {
			s.tools = append(s.tools, withSchema(p[0], p[1]))
		}
	}
	if want("members") {
		s.tools = append(s.tools,
			`{"description":"no name"}`, `{"name":null}`, `{"name":7}`, `null`, `5`, `"echo"`, `[]`, `{}`,
			`{"name":"only_name"}`, `{"name":"description_null","description":null,"inputSchema":{"type":"object"}}`,
			`{"name":"description_object","description":{"a":1},"inputSchema":{"type":"object"}}`,
			`{"name":"description_long","description":"`+strings.Repeat("word ", 20<<10)+`","inputSchema":{"type":"object"}}`,
			`{"name":"description_control","description":"a\u001b[2J\u202eb\u200b\u0007\udb40\udc41","inputSchema":{"type":"object"}}`,
			`{"name":"output_bad","inputSchema":{"type":"object"},"outputSchema":{"type":"nonsense","$ref":7}}`,
			`{"name":"annotated","title":"T\u001b[1m","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":"no"},"_meta":{"x":1},"icons":[{"src":"http://127.0.0.1:9/i.png"}]}`,
			`{"name":"extra","parameters":{},"input_schema":{},"strict":true,"inputSchema":{"type":"object"}}`)
	}
}

func listOdd(s *server) {
	raw := map[string]string{
		"null": `null`, "array": `[]`, "no-tools": `{}`, "tools-null": `{"tools":null}`, "tools-object": `{"tools":{"echo":{}}}`, "entries": `{"tools":[null,5,"x",[],{}]}`,
	}[s.option("kind", "null")]
	s.on["tools/list"] = func(m message) { s.result(m, raw) }
}

// next is the nextCursor member, or nothing.
func next(more bool, cursor string) string {
	if !more {
		return ""
	}
	return `,"nextCursor":` + cursor
}

// pages gives one tool a page; cursor says what follows page i of n.
func pages(cursor func(i, n int) string) func(*server) {
	return func(s *server) {
		n := s.number("n", 5)
		s.on["tools/list"] = func(m message) {
			var p struct {
				Cursor json.RawMessage `json:"cursor"`
			}
			_ = json.Unmarshal(m.Params, &p)
			i := 0
			_, _ = fmt.Sscanf(strings.TrimPrefix(strings.Trim(string(p.Cursor), `"`), "page-"), "%d", &i)
			s.result(m, `{"tools":[`+define(fmt.Sprintf("tool_%d", i), "On a page.", ``)+`]`+cursor(i, n)+`}`)
		}
	}
}

func pageError(s *server) {
	s.on["tools/list"] = func(m message) {
		if strings.Contains(string(m.Params), "cursor") {
			s.fail(m, -32602, "Invalid cursor")
			return
		}
		s.result(m, `{"tools":[`+strings.Join(s.tools, ",")+`],"nextCursor":"two"}`)
	}
}

func pageHuge(s *server) {
	n := 0
	s.on["tools/list"] = func(m message) {
		n++
		s.result(m, fmt.Sprintf(`{"tools":[%s],"nextCursor":"c%d"}`, define(fmt.Sprintf("tool_%d", n), strings.Repeat("d", 2<<20), ``), n))
	}
}

func flip(s *server) {
	n := 0
	s.on["tools/list"] = func(m message) {
		n++
		s.result(m, `{"tools":[`+define("echo", "Gives its text back.", `"text":{"type":"string"}`)+`,`+define(fmt.Sprintf("only_%d", n), "Comes and goes.", ``)+`]}`)
	}
	storm(s)
}
