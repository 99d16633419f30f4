//go:build unix

package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"magi-code/test/tty"
	"magi-code/test/zoo/httpzoo"
)

// TestApproveOnATerminal: approve shows source, definition and fingerprint, and only a yes saves. R-A10.
func TestApproveOnATerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"files": {"args": []string{"good", "--an-argument"}}})
	for _, c := range []struct {
		answer string
		code   int
		says   string
	}{{"n", exitNotApproved, "not approved"}, {"", exitNotApproved, "not approved"}, {"y", 0, "approved files"}} {
		x := tty.Start(t, p.command(context.Background(), "mcp", "approve", "files"), 160, 40)
		x.WaitFor("Approve this definition", "--an-argument", "fingerprint", ".mcp.json")
		x.Type(c.answer)
		x.Press("enter")
		if code := x.Exit(); code != c.code {
			t.Errorf("%q: exit code %d", c.answer, code)
		}
		x.WaitFor(c.says)
		o := p.run(t, "mcp", "get", "files")
		if approved := !strings.Contains(o.out, "never approved"); approved != (c.code == 0) {
			t.Errorf("%q: %v", c.answer, o)
		}
	}
}

// TestMissionControl: with a real server, what is typed early waits, a tool runs after a question, /mcp revokes for the next
// launch, and everything ends in order. R-G9, R-G3, R-A9.
func TestMissionControl(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"files": {"args": []string{"slow-init", "ms=500"}}})
	p.approve(t, "files")
	x := tty.Start(t, p.command(context.Background(), "--provider", "offline"), 120, 40)
	x.WaitFor("0 of 1 ready", "files")
	x.Type(`call mcp__files__echo {"text": "from the server"}`)
	x.Press("enter")
	x.WaitFor("May this tool run?", "files", "echo", "from the server")
	<-time.After(time.Second) // a question takes no key at once
	x.Press("y")
	x.WaitFor("answered: from the server")
	x.Type("/mcp")
	x.Press("enter")
	x.WaitFor("changes apply at the next launch", "enter revoke")
	x.Press("enter")
	x.WaitFor("it does not start")
	x.Press("esc")
	x.WaitGone("MCP servers")
	x.Type(`call mcp__files__add {"a": 1, "b": 2}`)
	x.Press("enter")
	x.WaitFor("May this tool run?", "add")
	<-time.After(time.Second)
	x.Press("y")
	x.WaitFor("answered: 3")
	x.Type("/quit")
	x.Press("enter")
	if code := x.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x.CheckRestored()
	if left := p.left(); left != nil {
		t.Errorf("left over: %v", left)
	}
	if o := p.run(t, "mcp", "test", "files"); o.code != exitNotApproved || !strings.Contains(o.err, "revoked") {
		t.Errorf("the next launch: %v", o)
	}
}

// TestLoginCommand: runs open no browser and say what to do; mcp login shows who is asked, prints the URL and gives it to the
// opener as one argument; then the server works, and after mcp logout no more. R-O1, R-O4, S18, S20, S26.
func TestLoginCommand(t *testing.T) {
	t.Parallel()
	as := httpzoo.StartAS("")
	defer as.Close()
	m := httpzoo.StartWith(&httpzoo.MCP{Auth: as})
	defer m.Close()
	p := newPlace(t)
	opened := filepath.Join(p.user, "opened")
	opener := map[string]string{"linux": "xdg-open", "darwin": "open"}[runtime.GOOS]
	writeFile(t, filepath.Join(p.user, opener), "#!/bin/sh\nprintf '%s %s\\n' \"$#\" \"$1\" >>'"+opened+"'\n")
	if err := os.Chmod(filepath.Join(p.user, opener), 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"PATH=" + p.user + ":" + os.Getenv("PATH")}
	p.define(t, map[string]map[string]any{"auth": {"type": "http", "url": m.URL(), "oauth": map[string]any{}}})
	p.approve(t, "auth")
	for _, args := range [][]string{{"mcp", "list"}, {"mcp", "test", "auth"}, {"run", "--provider", "offline", "--no-session", "say x"}} {
		if o := p.run(t, args...); !strings.Contains(o.err, "magi-code mcp login auth") {
			t.Errorf("%v: %v", args, o)
		}
	}
	if _, err := os.Stat(opened); err == nil || len(as.Requests()) != 0 {
		t.Error("a run opened a browser or asked the authorization server")
	}
	u := login(t, p, as.Origin())
	if b, err := os.ReadFile(opened); err != nil || string(b) != "1 "+u+"\n" {
		t.Errorf("the opener got %q, %v; printed was %s", b, err, u)
	}
	if o := p.run(t, "mcp", "list"); !strings.Contains(o.out, "authenticated") || strings.Contains(o.out, "not authenticated") || !strings.Contains(o.out, "tool") {
		t.Errorf("after the login: %v", o)
	}
	checkTokensStay(t, p)
	p.run(t, "mcp", "logout", "auth")
	if o := p.run(t, "mcp", "test", "auth"); o.code == 0 {
		t.Errorf("after the logout: %v", o)
	}
}

// checkTokensStay looks for what the login gave in the output of commands and in all files but the one for it. S34, R-D5.
func checkTokensStay(t *testing.T, p *place) {
	t.Helper()
	secrets := []string{"zoo-access", "zoo-refresh", "zoo-code"}
	for _, args := range [][]string{{"mcp", "list", "--json"}, {"mcp", "get", "auth", "--json"}, {"mcp", "test", "auth", "--json"}, {"mcp", "call", "auth", "echo", "--json"},
		{"run", "--provider", "offline", "--json", "--allow", "*", "call mcp__auth__echo {}"}} {
		o := p.run(t, args...)
		for _, s := range secrets {
			if strings.Contains(o.out+o.err, s) {
				t.Errorf("%v tells %s: %v", args, s, o)
			}
		}
	}
	kept := false
	err := filepath.WalkDir(p.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, s := range secrets {
			if strings.Contains(string(b), s) && path != filepath.Join(p.home, "mcp-tokens", "auth.json") {
				t.Errorf("%s holds %s", path, s)
			}
		}
		kept = kept || strings.Contains(string(b), secrets[0])
		return err
	})
	if err != nil || !kept {
		t.Errorf("the token is nowhere, or a file cannot be read: %v", err)
	}
}

// login runs mcp login, plays the browser, and returns the URL that was printed.
func login(t *testing.T, p *place, origin string) (printed string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := p.command(ctx, "mcp", "login", "auth")
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	done := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { err := cmd.Wait(); _ = w.Close(); done <- err }()
	var said strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !strings.HasPrefix(lines.Text(), "http") {
			continue
		}
		printed = lines.Text()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, printed, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if err := <-done; err != nil || printed == "" || !strings.Contains(said.String(), origin) || !strings.Contains(said.String(), "logged in to auth") {
		t.Fatalf("%v:\n%s", err, said.String())
	}
	return printed
}
