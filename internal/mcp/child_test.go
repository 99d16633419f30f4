package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/mcp/stdio"
	"magi-code/internal/secret"
)

// childServer is what the test binary does when it is run as a server.
func childServer(mode string, in io.Reader, out, stderr io.Writer) int {
	switch mode {
	case "needs-home":
		if _, ok := os.LookupEnv("HOME"); !ok {
			fmt.Fprintln(stderr, "fatal: cannot find the \x1b[1mhome\x1b[0m folder")
			return 1
		}
	case "exit-0":
		return 0
	case "usage", "chatter":
		fmt.Fprintf(out, "Usage: \x1b[1mthing\x1b[0m --token %s\nNo such option.\n", os.Getenv("TOKEN"))
		if mode == "usage" {
			return 2
		}
		_, _ = io.Copy(io.Discard, in)
		return 0
	case "silent":
		_, _ = io.Copy(io.Discard, in)
		return 0
	case "banner":
		fmt.Fprint(out, "Welcome!\n{\"level\":\"info\"}\n\n")
		fmt.Fprintln(stderr, "listening")
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 20<<20)
	for lines.Scan() {
		m, err := jsonrpc.Decode(lines.Bytes())
		if err != nil || m.Request == nil || len(m.Request.ID) == 0 {
			continue
		}
		reply := func(s string) { fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.Request.ID, s) }
		switch m.Request.Method {
		case "initialize":
			reply(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"child","version":"` + os.Getenv("TOKEN") + `"}}`)
			if mode == "dies-after-hello" {
				return 4
			}
		case "tools/list":
			reply(`{"tools":[` + oneTool("t") + `]}`)
		case "tools/call":
			if mode == "dies-in-call" {
				fmt.Fprintf(stderr, "panic: boom, token=%s\n", os.Getenv("TOKEN"))
				return 3
			}
			reply(`{"content":[{"type":"text","text":"token=` + os.Getenv("TOKEN") + `"}]}`)
		}
	}
	return 0
}

// child defines a server that is this test binary in a mode.
func child(t *testing.T, mode string, more ...definition.Pair) definition.Server {
	d := define("child")
	d.Command, _ = os.Executable()
	d.Env = append(more, definition.Pair{Name: "MAGI_TEST_SERVER", Value: mode},
		definition.Pair{Name: "GOCOVERDIR", Value: t.TempDir()}) // without it a test binary with coverage writes to stderr
	return d
}

// startChild runs the definition for real.
func startChild(t *testing.T, d definition.Server) (*Manager, *watch) {
	t.Helper()
	w := newWatch()
	o := Options{Lookup: os.LookupEnv, Dir: t.TempDir(), Scrub: secret.NewScrubber(), OnStatus: w.hear}
	m := open(t.Context(), o, []definition.Server{d}, func(o *Options, d definition.Server) dialer { return o.dialer(d, approval.Approved{}) })
	t.Cleanup(func() { closeNow(t, m) })
	return m, w
}

const token = "canary-5f3a-secret"

// The whole way to a real process and back. R-D5: what it echoes of its secret is not shown.
func TestChild(t *testing.T) {
	m, _ := startChild(t, child(t, "banner", definition.Pair{Name: "TOKEN", Value: token}))
	st := statusOf(t, m, "child")
	if st.State != Ready || st.Skipped < 2 || !strings.HasPrefix(st.SkippedSample, "Welcome!") || st.ServerVersion != "[redacted]" || st.Type != "stdio" {
		t.Fatalf("%+v, %+v", st, st.Err)
	}
	r, err := m.Call(t.Context(), "child", "t", nil)
	if err != nil || r.Plain() != "token=[redacted]" {
		t.Errorf("%q, %v", r.Plain(), err)
	}
	if st := statusOf(t, m, "child"); st.Stderr != "listening" {
		t.Errorf("stderr %q", st.Stderr)
	}
}

// R-T5, R-T3, X3: death in a call fails it at once with status and stderr, the status is true, and the next call starts anew.
func TestChildDiesInCall(t *testing.T) {
	m, w := startChild(t, child(t, "dies-in-call", definition.Pair{Name: "TOKEN", Value: token}))
	_, err := m.Call(t.Context(), "child", "t", nil)
	e := mcpError(t, err)
	if e.Phase != PhaseCall || !strings.Contains(e.Text, "exited with status 3") || e.Stderr != "panic: boom, token=[redacted]" {
		t.Errorf("%v, stderr %q", e, e.Stderr)
	}
	if exit, ok := errors.AsType[*stdio.ExitError](err); !ok || exit.Code != 3 {
		t.Errorf("cause %v", e.Cause)
	}
	st := w.until(t, func(s Status) bool { return s.State == Failed })
	if !strings.Contains(st.Err.Text, "status 3") {
		t.Errorf("%v", st.Err)
	}
	if _, err = m.Call(t.Context(), "child", "t", nil); !strings.Contains(mcpError(t, err).Text, "status 3") {
		t.Errorf("%v", err)
	}
}

// B8, B12, R-C9, W3: a child that ends at the start is told of at once, with phase, status, stderr and the likely cure.
func TestChildDiesAtStart(t *testing.T) {
	for _, c := range []struct {
		mode   string
		status string
		stderr string
		phases []Phase
	}{
		{"needs-home", "status 1", "fatal: cannot find the home folder", []Phase{PhaseInitialize}},
		{"exit-0", "status 0", "", []Phase{PhaseInitialize}},
		{"dies-after-hello", "status 4", "", []Phase{PhaseInitialize, PhaseList}},
	} {
		began := time.Now()
		m, _ := startChild(t, child(t, c.mode))
		if len(m.Failures()) != 1 {
			t.Fatalf("%s: %v", c.mode, m.Failures())
		}
		e := m.Failures()[0]
		if e.Phase != c.phases[0] && e.Phase != c.phases[len(c.phases)-1] || !strings.Contains(e.Text, c.status) || e.Stderr != c.stderr || !strings.Contains(e.Hint, `"HOME": "${HOME}"`) {
			t.Errorf("%s: %v, stderr %q, hint %q", c.mode, e, e.Stderr, e.Hint)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s: took %s", c.mode, took)
		}
	}
	if m, _ := startChild(t, child(t, "needs-home", definition.Pair{Name: "HOME", Value: "/nowhere"})); len(m.Failures()) != 0 {
		t.Errorf("%v", m.Failures())
	}
}

// B8: what cannot be started fails in the phase connect, naming the command.
func TestChildMissing(t *testing.T) {
	d := define("child")
	d.Command = "no-such-program-of-magi"
	m, _ := startChild(t, d)
	if e := m.Failures(); len(e) != 1 || e[0].Phase != PhaseConnect || !strings.Contains(e[0].Text, `"no-such-program-of-magi" not found`) || e[0].Hint == "" {
		t.Errorf("%v", e)
	}
}

// B9 with a real process: the timeout holds, and the process is gone afterwards.
func TestChildSilent(t *testing.T) {
	d := child(t, "silent")
	d.Timeout = 1
	m, _ := startChild(t, d)
	if e := m.Failures(); len(e) != 1 || !errors.Is(e[0], ErrTimeout) || !strings.Contains(e[0].Hint, "now 1 s") {
		t.Errorf("%v", e)
	}
	s := testServer("s")
	s.launch.Timeout = longestTimeout
	if hint := s.timeoutHint(); strings.Contains(hint, "raise") || !strings.Contains(hint, "300") {
		t.Errorf("at the longest timeout: %s", hint)
	}
}

// R-T2: a program that is no server on stdio is told by what it writes to stdout, cleaned and without its secret.
func TestChildStray(t *testing.T) {
	for _, c := range []struct{ mode, besides string }{{"usage", `"HOME": "${HOME}"`}, {"chatter", "now 1 s"}} {
		d := child(t, c.mode, definition.Pair{Name: "TOKEN", Value: token})
		d.Timeout = 1
		m, _ := startChild(t, d)
		e := statusOf(t, m, "child").Err
		if e == nil || e.Phase != PhaseInitialize {
			t.Fatalf("%s: %v", c.mode, e)
		}
		const says = "what it wrote to stdout is no MCP message (Usage: thing --token [redacted] No such option.): check that"
		if !strings.HasPrefix(e.Hint, says) || !strings.Contains(e.Hint, c.besides) {
			t.Errorf("%s: %s", c.mode, e.Hint)
		}
	}
}

// R-C5, R-C6: a definition that cannot be expanded fails in its phase, naming field and variable, and starts nothing.
func TestChildNotExpanded(t *testing.T) {
	d := child(t, "banner", definition.Pair{Name: "KEY", Value: "${MAGI_NO_SUCH_VARIABLE}"})
	m, _ := startChild(t, d)
	e := m.Failures()
	if len(e) != 1 || e[0].Phase != PhaseExpand || !strings.Contains(e[0].Text, "MAGI_NO_SUCH_VARIABLE") || !strings.Contains(e[0].Text, "KEY") {
		t.Fatalf("%v", e)
	}
	if strings.Count(e[0].Error(), "child") != 1 {
		t.Errorf("%v", e[0])
	}
	if _, err := m.Call(t.Context(), "child", "t", nil); mcpError(t, err).Phase != PhaseExpand {
		t.Errorf("%v", err)
	}
}

// Probe is Open, Status and Close in one.
func TestProbe(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	m, _ := startChild(t, child(t, "banner"))
	if st, err := m.probed(ctx); err != nil || st.State != Ready || len(st.Tools) != 1 || statusOf(t, m, "child").State != Closed {
		t.Errorf("%+v, %v", st, err)
	}
	m, _ = startChild(t, child(t, "exit-0"))
	if st, err := m.probed(ctx); mcpError(t, err).Phase != PhaseInitialize || st.State != Failed {
		t.Errorf("%+v, %v", st, err)
	}
}

// R-C6: no error tells an expanded value; the command and PATH are named as the definition writes them.
func TestChildNotTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder, name := filepath.Split(self)
	t.Setenv("FOLDER", folder)
	t.Setenv("HIDDEN", "/somewhere/of-mine")
	for _, c := range []struct{ command, path, says string }{
		{"${HIDDEN}/server", "", `command "${HIDDEN}/server": no such file`},
		{"server-of-mine", "${HIDDEN}/bin", `command "server-of-mine" not found in PATH ${HIDDEN}/bin`},
		{"${FOLDER}" + name, "", `"${FOLDER}` + name + `" exited with status 0`},
	} {
		d := child(t, "exit-0")
		d.Command = c.command
		if c.path != "" {
			d.Env = append(d.Env, definition.Pair{Name: "PATH", Value: c.path})
		}
		m, _ := startChild(t, d)
		e := statusOf(t, m, "child").Err
		if e == nil || !strings.Contains(e.Text, c.says) {
			t.Errorf("%s: %v", c.command, e)
		}
		for _, hidden := range []string{folder, "of-mine/"} {
			if e != nil && strings.Contains(e.Text+e.Hint, hidden) {
				t.Errorf("%s: told: %v", c.command, e)
			}
		}
	}
}
