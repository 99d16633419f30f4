package main

import (
	"fmt"
	"os"
	"strings"
)

// framingModes are about bytes and lines: B1 to B7, W1, W8.
func framingModes() map[string]mode {
	return map[string]mode{
		"noise":        {"banner and log lines on stdout, n=50 each time; a cut line before the end", noise},
		"json-noise":   {"JSON on stdout that is no JSON-RPC", jsonNoise},
		"long-line":    {"tools/list answered by one line of size=1048576 bytes", longLine},
		"no-newline":   {"junk without a newline after initialize, size=0 (endless) bytes; after=start; json=1 opens a message", noNewline},
		"crlf":         {"lines end in CR LF, blank lines between", func(s *server) { s.encode = crlf }},
		"bom":          {"a byte order mark before every line", func(s *server) { s.encode = func(l string) string { return "\ufeff" + l } }},
		"split":        {"every answer written byte by byte", func(s *server) { s.out = byteWriter{} }},
		"joined":       {"every answer together with notifications in one write", joined},
		"bad-utf8":     {"the tool bad answers with bytes, surrogates and control characters that are no text", badUTF8},
		"stderr-flood": {"bytes=1048576 on stderr before each answer, no newline", stderrFlood},
		"stderr-start": {"bytes=51200 of lines on stderr at the start", stderrStart},
		"huge-list":    {"tools/list answered by one line of 2 MB", func(s *server) { s.tools = manyTools(700, 2600) }},
		"many-tools":   {"n=1000 small tools", func(s *server) { s.tools = manyTools(s.number("n", 1000), 40) }},
	}
}

func noise(s *server) {
	n := s.number("n", 50)
	lines := func() {
		for i := range n {
			s.raw(fmt.Sprintf("\x1b[32mINFO\x1b[0m server line %d: received {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", i))
		}
	}
	s.start = lines
	s.before = func(message) { lines() }
	s.after = func(message) { lines() }
	s.end = func() { s.raw("shutting down") }
}

func jsonNoise(s *server) {
	s.before = func(m message) {
		for _, l := range []string{`{"level":"info","msg":"hello","id":1,"result":"not yours"}`, `42`, `"x"`, `null`, `true`, `[]`, `[1,2]`, `{}`,
			`{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"1.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":99,"METHOD":"x"}`, `{"jsonrpc":"2.0","ID":1,"Result":{}}`, `{"id":1`} {
			s.line(l)
		}
		if m.ID != nil {
			s.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `}`)
		}
	}
}

// longLine pads the description of one tool until the whole line has the wanted size, its newline not counted.
func longLine(s *server) {
	size := s.number("size", 1<<20)
	s.on["tools/list"] = func(m message) {
		line := func(pad int) string {
			return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[` + define("echo", strings.Repeat("d", pad), ``) + `]}}`
		}
		s.line(line(max(0, size-len(line(0)))))
	}
}

func noNewline(s *server) {
	flood := func() {
		head, size := "", s.number("size", 0)
		if s.options["json"] != "" {
			head = `{"jsonrpc":"2.0","id":1,"result":"`
		}
		s.raw(head)
		chunk := strings.Repeat("x", 64<<10)
		for n := 0; size == 0 || n < size; n += len(chunk) {
			s.raw(chunk)
		}
		s.raw("\n")
	}
	if s.options["after"] == "start" {
		s.start = flood
		return
	}
	s.on["notifications/initialized"] = func(message) { flood() }
}

func crlf(l string) string { return "\r\n" + strings.TrimSuffix(l, "\n") + "  \r\n\r\n\n" }

// byteWriter writes to stdout byte by byte.
type byteWriter struct{}

func (byteWriter) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := os.Stdout.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

func joined(s *server) {
	const note = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` + "\n"
	s.encode = func(l string) string { return note + l + note }
}

func badUTF8(s *server) {
	s.tools = append(s.tools, define("bad", "Answers with \ufffd.", ``))
	s.call["bad"] = func(m message, _ jsonRaw) {
		s.result(m, `{"content":[{"type":"text","text":"bytes `+"\xff\xfe\xc3"+` surrogates \ud800 \udc00\ud83d nul \u0000 raw `+"\x00\x01"+` fine \ud83d\ude00 😀"}]}`)
	}
}

func stderrFlood(s *server) {
	size := s.number("bytes", 1<<20)
	s.before = func(message) {
		for n := 0; n < size; n += 16 {
			_, _ = os.Stderr.WriteString("\rprogress 0.....%")
		}
	}
}

func stderrStart(s *server) {
	s.start = func() {
		size := s.number("bytes", 50<<10)
		for n, line := 0, "WARN deprecated: this module will be removed\n"; n < size; n += len(line) {
			_, _ = os.Stderr.WriteString(line)
		}
	}
}

// manyTools are n tools with descriptions of about that many bytes.
func manyTools(n, description int) []string {
	var out []string
	for i := range n {
		out = append(out, define(fmt.Sprintf("tool_%04d", i), strings.Repeat("word ", description/5), `"path":{"type":"string","description":"where"}`))
	}
	return out
}
