package mcptest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// TestScript: the defaults answer sanely, each kind of override counts, and the server ends as told.
func TestScript(t *testing.T) {
	s := Script{
		Start: []Action{{Line: "banner $N", Repeat: 2, Stderr: "log\n"}},
		On: map[string][]Action{
			"tools/list#2":     {{Error: `{"code":1,"message":"no"}`}},
			"tools/call:storm": {{Line: `{"n":$N,"for":$ID}`, Repeat: 2}, {Result: `{}`}},
			"tools/call:die":   {{Die: true}},
			"ping":             {},
		},
	}
	program, args := s.Command()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // the race detector lets a process sleep before it exits
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			line, err := lines.ReadString('\n')
			if err != nil || !strings.Contains(line, w) {
				t.Fatalf("got %q, %v; want %s", line, err, w)
			}
		}
	}
	send := func(l string) {
		t.Helper()
		if _, err := io.WriteString(in, l+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	expect("banner 0", "banner 1")
	send(`{"id":1,"method":"initialize"}`)
	expect(`"protocolVersion":"2025-06-18"`)
	send(`{"method":"notifications/initialized"}`)
	send(`{"id":2,"method":"ping"}`)
	send(`{"id":3,"method":"tools/list"}`)
	expect(`"id":3,"result":{"tools":[{"name":"echo"`)
	send(`{"id":4,"method":"tools/list"}`)
	expect(`"id":4,"error":{"code":1`)
	send(`{"id":5,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":0.5}}}`)
	expect(`"text":"2.5"`)
	send(`{"id":6,"method":"tools/call","params":{"name":"storm"}}`)
	expect(`{"n":0,"for":6}`, `{"n":1,"for":6}`, `"id":6,"result":{}`)
	send(`{"id":7,"method":"other"}`)
	expect(`"id":7,"error":{"code":-32601`)
	send(`{"id":8,"method":"tools/call","params":{"name":"die"}}`)
	if _, err := lines.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || stderr.String() != "log\n" {
		t.Error(err, stderr.String())
	}
}
