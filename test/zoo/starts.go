package main

import (
	"fmt"
	"os"
	"strings"
)

// startModes are about what initialize says: B19.
func startModes() map[string]mode {
	return map[string]mode{
		"caps-odd":   {"odd initialize answers, kind=" + strings.Join(capsKinds(), "|"), capsOdd},
		"no-changes": {"does not advertise listChanged, but announces changes at each call", noChanges},
		"once":       {"initialize works the first time only: file=FILE remembers", once},
	}
}

func capsKinds() []string {
	return []string{"missing", "null", "array", "text", "empty", "tools-null", "tools-array", "tools-true", "list-text", "no-info", "info-null",
		"info-text", "info-empty", "info-numbers", "info-control", "info-long", "instructions", "instructions-long", "instructions-object", "extra", "result-null",
		"result-array", "result-text", "version-missing", "version-number", "version-null", "version-empty"}
}

func capsOdd(s *server) {
	raw := func(result string) {
		s.on["initialize"] = func(m message) { s.result(m, result) }
	}
	const rest = `"capabilities":{"tools":{}},"serverInfo":{"name":"zoo","version":"1"}}`
	switch s.option("kind", "missing") {
	case "missing":
		s.capabilities = ""
	case "null":
		s.capabilities = "null"
	case "array":
		s.capabilities = "[]"
	case "text":
		s.capabilities = `"tools"`
	case "empty":
		s.capabilities = "{}"
	case "tools-null":
		s.capabilities = `{"tools":null}`
	case "tools-array":
		s.capabilities = `{"tools":[]}`
	case "tools-true":
		s.capabilities = `{"tools":true}`
	case "list-text":
		s.capabilities = `{"tools":{"listChanged":"true"}}`
	case "no-info":
		s.info = ""
	case "info-null":
		s.info = "null"
	case "info-text":
		s.info = `"zoo 1.0"`
	case "info-empty":
		s.info = "{}"
	case "info-numbers":
		s.info = `{"name":42,"version":1.5}`
	case "info-control":
		s.info = `{"name":"zoo\u001b[2J\u202e\u0007","version":"1\u001b]52;c;AAAA\u0007\r\n2"}`
	case "info-long":
		s.info = `{"name":"` + strings.Repeat("n", 100<<10) + `","version":"` + strings.Repeat("1", 100<<10) + `"}`
	case "instructions":
		s.extra = `,"instructions":"Use echo first.\u001b[31m"`
	case "instructions-long":
		s.extra = `,"instructions":"` + strings.Repeat("word ", 100<<10) + `"`
	case "instructions-object":
		s.extra = `,"instructions":{"a":1}`
	case "extra":
		s.extra = `,"_meta":{"x":1},"nextCursor":"y","unknown":[{}]`
	case "result-null":
		raw("null")
	case "result-array":
		raw("[]")
	case "result-text":
		raw(`"hello"`)
	case "version-missing":
		raw("{" + rest)
	case "version-number":
		raw(`{"protocolVersion":7,` + rest)
	case "version-null":
		raw(`{"protocolVersion":null,` + rest)
	case "version-empty":
		raw(`{"protocolVersion":"",` + rest)
	default:
		fmt.Fprintln(os.Stderr, "zoo: no such kind")
		os.Exit(2)
	}
}

func noChanges(s *server) {
	s.capabilities = `{"tools":{"listChanged":false}}`
	storm(s)
}

func once(s *server) {
	s.on["initialize"] = func(m message) {
		file := s.options["file"]
		if _, err := os.Stat(file); err == nil {
			s.fail(m, -32603, "already initialized")
			return
		}
		appendTo(file, "initialized\n")
		s.result(m, s.initialize(m))
	}
}
