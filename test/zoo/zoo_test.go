package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test binary be the zoo.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "zoo" {
		os.Args = os.Args[1:]
		main()
		return
	}
	os.Exit(m.Run())
}

// talk runs a mode with lines on its stdin and returns the lines of its stdout.
func talk(t *testing.T, args []string, lines ...string) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"zoo"}, args...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // the race detector lets a process sleep before it exits
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	list        = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	echo        = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}`
)

// TestGood: the sane server is sane, and answers in order.
func TestGood(t *testing.T) {
	got := talk(t, []string{"good", "ignored", "--token=x"}, initialize, initialized, list, echo, `{"jsonrpc":"2.0","id":"x","result":{}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"replies"}}`, `{"jsonrpc":"2.0","id":5,"method":"other"}`)
	for i, want := range []string{`"id":1,"result":{"protocolVersion":"2025-06-18"`, `"id":2,"result":{"tools":[{"name":"echo"`, `"id":3,"result":{"content":[{"type":"text","text":"hi"}]}`, `\"id\":\"x\"`, `"id":5,"error":{"code":-32601`} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Errorf("line %d of %d: want %s\n%s", i, len(got), want, strings.Join(got, "\n"))
		}
	}
}

// TestFaults: some modes do what their line says, so that tests against them prove something.
func TestFaults(t *testing.T) {
	for _, tt := range []struct{ mode, want string }{
		{"string-id", `"id":"3","result"`},
		{"float-id", `"id":3.0,"result"`},
		{"null-id", `"id":null,"error"`},
		{"noise", "INFO"},
		{"json-noise", `"METHOD":"x"`},
		{"crlf", "\r"},
		{"bom", "\ufeff{"},
		{"batch", `[{"jsonrpc":"2.0","method":"notifications/message"`},
		{"version=2024-11-05", `"protocolVersion":"2024-11-05"`},
		{"split", `"text":"hi"`},
		{"ping-flood", `"flood-999"`},
		{"unknown-req", `elicitation/create`},
		{"list-32601", "-32601"},
		{"page-loop", `"nextCursor":"page-1"`},
		{"early-messages", `roots/list`},
		{"result-odd", `"name":"structured_only"`},
	} {
		got := strings.Join(talk(t, []string{tt.mode}, initialize, initialized, list, echo), "\n")
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %s in %.500s", tt.mode, tt.want, got)
		}
	}
}

// TestSizes: long lines have the size that was asked for.
func TestSizes(t *testing.T) {
	for _, size := range []string{"65535", "65536", "65537"} {
		got := talk(t, []string{"long-line", "size=" + size}, initialize, initialized, list)
		if n := json.Number(size); len(got) != 2 || json.Number(itoa(len(got[1]))) != n {
			t.Errorf("%s: %d lines, the last of %d bytes", size, len(got), len(got[len(got)-1]))
		}
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// TestRaw: what is meant to be JSON is JSON.
func TestRaw(t *testing.T) {
	raw := append(goodTools(), manyTools(2, 100)...)
	for _, p := range append(oddSchemas(), oddResults()...) {
		raw = append(raw, define(p[0], "", ""))
		if p[1] != "" {
			raw = append(raw, p[1])
		}
	}
	s := newServer()
	toolsOdd(s)
	for _, r := range append(raw, s.tools...) {
		if !json.Valid([]byte(r)) {
			t.Errorf("not JSON: %.200s", r)
		}
	}
	for name, m := range modes() {
		if m.about == "" || m.setup == nil || strings.Contains(name, " ") {
			t.Errorf("mode %q is incomplete", name)
		}
	}
}
