package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// answer is how soon an interruption is answered (R-G10, issue 2).
	answer = time.Second
)

// TestInterrupted: Ctrl-C, SIGTERM and SIGHUP end a run within a second, whatever it is about, with code 130, with the session ended
// well and no child left; so do they other commands (S12, R-T4, R-G10).
func TestInterrupted(t *testing.T) {
	slow := []string{"run", "--provider", "offline", "--json", "--allow", "*"}
	for _, tt := range []struct {
		name   string
		mode   string // of the zoo
		signal syscall.Signal
		args   []string
		until  string // the event after which the signal comes; empty: once the zoo runs
	}{
		{"slow tool", "good", syscall.SIGINT, append(slow, `call mcp__z__slow {"ms": 60000}`), "running"},
		{"slow tool, deaf to SIGTERM", "ignore-term", syscall.SIGINT, append(slow, `call mcp__z__slow {"ms": 60000}`), "running"},
		{"slow tools", "good", syscall.SIGTERM, append(slow, `parallel 4 mcp__z__slow {"ms": 60000}`), "running"},
		{"bash", "good", syscall.SIGINT, append(slow, `call bash {"command": "sleep 600 & sleep 600"}`), "running"},
		{"script", "good", syscall.SIGINT, append(slow, `call code_mode {"code": "for (;;) {}"}`), "running"},
		{"subagent", "good", syscall.SIGINT, append(slow, `call subagents {"tasks": [{"name": "one", "prompt": "call mcp__z__slow {\"ms\": 60000}"}]}`), "subagent"},
		{"slow stream", "good", syscall.SIGINT, append(slow, "slow 5000 word"), "text"},
		{"slow stream, SIGHUP", "good", syscall.SIGHUP, append(slow, "slow 5000 word"), "text"},
		{"silent stream", "good", syscall.SIGTERM, append(slow, "wait"), "turn_start"},
		{"start of a server", "stall", syscall.SIGINT, append(slow, "say x"), ""},
		{"test", "stall", syscall.SIGINT, []string{"mcp", "test", "z"}, ""},
		{"list", "stall", syscall.SIGTERM, []string{"mcp", "list"}, ""},
		{"call", "stall method=tools/call", syscall.SIGINT, []string{"mcp", "call", "z", "echo", "{}"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.define(t, map[string]map[string]any{"z": {"args": strings.Fields(tt.mode)}})
			p.approve(t, "z")
			r := startRun(t, p, tt.args...)
			if tt.until != "" {
				r.event(t, tt.until)
			} else {
				within(t, patience, "the zoo runs", func() bool { return len(p.left()) > 0 })
			}
			began := time.Now()
			if err := r.cmd.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			r.wait(t)
			if took := time.Since(began); took > answer*slack {
				t.Errorf("answered after %s", took)
			}
			if code := r.cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("exit code %d: %s", code, r.errs)
			}
			if !strings.Contains(r.errs.String(), "interrupted") {
				t.Errorf("stderr: %s", r.errs)
			}
			if left := p.left(); left != nil {
				t.Errorf("left over: %v", left)
			}
			if tt.until != "" && !strings.Contains(r.last, `"type":"turn_end"`) {
				t.Errorf("the last event is %s", r.last)
			}
			if tt.until != "" && tt.name != "silent stream" { // the session was left in order; an unanswered "wait" would be asked again
				if o := p.run(t, "mcp", "revoke", "z"); o.code != 0 {
					t.Fatal(o)
				}
				if o := p.run(t, "run", "--provider", "offline", "--continue", "say again"); o.code != 0 || o.out != "again\n" {
					t.Errorf("going on: %v", o)
				}
			}
		})
	}
}

// TestInterruptedAtTheEnd: Ctrl-C while servers that are deaf to everything are given their time shortens it (R-G10).
func TestInterruptedAtTheEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"z": {"args": []string{"ignore-term"}}})
	p.approve(t, "z")
	r := startRun(t, p, "run", "--provider", "offline", "--json", "say x")
	r.event(t, "turn_end")
	began := time.Now()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r.wait(t)
	if took := time.Since(began); took > answer*slack {
		t.Errorf("ended after %s", took)
	}
	if left := p.left(); left != nil {
		t.Errorf("left over: %v", left)
	}
}

// TestKilled: when magi-code itself is killed, its children end as well (R-T4), by the death of their stdin or of their parent.
func TestKilled(t *testing.T) {
	for _, mode := range []string{"good", "grandchild", "ignore-eof"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.define(t, map[string]map[string]any{"z": {"args": []string{mode}}})
			p.approve(t, "z")
			r := startRun(t, p, "run", "--provider", "offline", "--json", "--allow", "*", `call mcp__z__slow {"ms": 600000}`)
			r.event(t, "running")
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			r.wait(t)
			if mode == "grandchild" { // which is deaf to all but SIGKILL, and nobody is left to send it
				for _, pid := range pidsOf(p.zoo + "\x00hold") {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			within(t, patience, "the zoo is gone", func() bool { return p.left() == nil })
			// A session that was cut off is gone on with.
			if o := p.run(t, "mcp", "revoke", "z"); o.code != 0 {
				t.Fatal(o)
			}
			if o := p.run(t, "run", "--provider", "offline", "--continue", "say again"); o.code != 0 || o.out != "again\n" {
				t.Errorf("going on: %v", o)
			}
		})
	}
}

// TestInterruptedBeforeStart: Ctrl-C while stdin is awaited.
func TestInterruptedBeforeStart(t *testing.T) {
	p := newPlace(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := p.command(ctx, "run", "--provider", "offline", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(errs).ReadString('\n'); err != nil || !strings.Contains(line, "waiting for the end of stdin") {
		t.Errorf("%q, %v", line, err)
	}
	began := time.Now()
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if took := time.Since(began); cmd.ProcessState.ExitCode() != exitInterrupted || took > answer*slack {
		t.Errorf("exit code %d after %s", cmd.ProcessState.ExitCode(), took)
	}
}

// started is a command that runs.
type started struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	errs  *strings.Builder
	last  string // line of stdout
}

func startRun(t *testing.T, p *place, args ...string) *started {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	r := &started{cmd: p.command(ctx, args...), errs: &strings.Builder{}}
	r.cmd.Stderr = r.errs
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.WaitDelay = time.Second
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait() // a second time is an error, and no matter
		for _, pid := range pidsOf(p.zoo) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return r
}

// event reads until an event of that type.
func (r *started) event(t *testing.T, kind string) {
	t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("no event %s: %v: %s", kind, err, r.errs)
		}
		var e struct {
			Type string `json:"type"`
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == kind {
			return
		}
	}
}

// wait reads the rest and waits for the end.
func (r *started) wait(t *testing.T) {
	t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if line != "" {
			r.last = line
		}
		if err != nil {
			break
		}
	}
	if err := r.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
}

// within waits for something that no event tells of.
func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(d)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", d, what)
		}
		<-time.After(5 * time.Millisecond)
	}
}
