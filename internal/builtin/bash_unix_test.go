//go:build !windows

package builtin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"magi-code/internal/tool"
)

// playRole is what the test binary does when a command of a test starts it.
func playRole(role string) {
	switch role {
	case "stubborn": // ignores SIGTERM, says that it is there, and stays
		signal.Ignore(syscall.SIGTERM)
		announce()
		<-time.After(time.Hour)
	case "polite": // ends at SIGTERM, leaving word
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		announce()
		<-c
		_ = os.WriteFile(os.Args[1]+".bye", nil, 0o600)
	case "host": // a program with our tools that is killed while bash runs
		_ = os.Setenv(roleEnv, "stubborn")
		t := &toolset{o: Options{Dir: filepath.Dir(os.Args[1]), Env: os.Environ()}}
		command := fmt.Sprintf("exec %q %q", os.Args[0], os.Args[1])
		_, _ = t.bash(context.Background(), tool.Call{Arguments: []byte(fmt.Sprintf(`{"command":%q}`, command))})
	case "flood":
		line := []byte(strings.Repeat("x", 99) + "\n")
		for range 1 << 20 { // 100 MiB
			_, _ = os.Stdout.Write(line)
		}
		fmt.Println("the end")
	}
}

// announce writes our process id to the file that the first argument names.
func announce() {
	_ = os.WriteFile(os.Args[1]+".new", []byte(strconv.Itoa(os.Getpid())), 0o600)
	_ = os.Rename(os.Args[1]+".new", os.Args[1])
}

// as is a command line that starts the test binary in a role.
func as(role, file string) string {
	return fmt.Sprintf("%s=%s %q %q", roleEnv, role, os.Args[0], file)
}

// wait polls until a condition holds; processes give no event that a test could wait for.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// pidIn waits for the process that announces itself in a file.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	wait(t, "announcement", func() bool { _, err := os.Stat(file); return err == nil })
	pid, err := strconv.Atoi(get(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// running reports whether a process lives; a zombie that nobody collects does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestBash(t *testing.T) {
	o := workspace(t, map[string]string{"sub/x": ""})
	bash := func(a args) string { t.Helper(); return good(t, o, "bash", a) }
	wantText(t, bash(args{"command": "echo out; echo err >&2; echo out"}), "out\nerr\nout\n[exit code 0]")
	wantText(t, bash(args{"command": "true"}), "(no output)\n[exit code 0]")
	wantText(t, bash(args{"command": "pwd"}), o.Dir+"\n[exit code 0]")
	wantText(t, bash(args{"command": "pwd", "cwd": "sub"}), o.Dir+"/sub\n[exit code 0]")
	wantText(t, bash(args{"command": "printf 'a\\xffb'"}), "a\ufffdb\n[exit code 0]")
	wantText(t, bash(args{"command": "cat; echo $?"}), "0\n[exit code 0]")                   // stdin is empty
	wantText(t, bash(args{"command": "-x 2>/dev/null || echo dash"}), "dash\n[exit code 0]") // no option of the shell
	wantText(t, bash(args{"command": "tty -s || echo no terminal"}), "no terminal\n[exit code 0]")
	if _, err := os.Open("/dev/tty"); err == nil {
		wantText(t, bash(args{"command": "(: </dev/tty) 2>/dev/null || echo none"}), "none\n[exit code 0]")
	}
	bad(t, o, "bash", args{"command": "echo x; exit 3"}, "x\n[exit code 3]")
	bad(t, o, "bash", args{"command": "kill -9 $$"}, "[signal: killed]")
	bad(t, o, "bash", args{"command": "no-such-command-at-all"}, "[exit code 127]")
	bad(t, o, "bash", args{"command": " \n"}, "command is empty")
	bad(t, o, "bash", args{"command": "a\x00b"}, "NUL")
	bad(t, o, "bash", args{"command": strings.Repeat("a", maxCommand+1)}, "write a script file")
	bad(t, o, "bash", args{"command": "ls", "timeout_ms": 600001}, "timeout_ms must be")
	bad(t, o, "bash", args{"command": "ls", "timeout_ms": -1}, "timeout_ms must be")
	bad(t, o, "bash", args{"command": "ls", "cwd": "sub/x"}, "not a folder")
	bad(t, o, "bash", args{"command": "ls", "cwd": "none"}, "does not exist")
}

// Mistakes are found before anything runs; what only our parser does not know still runs.
func TestBashSyntax(t *testing.T) {
	o := workspace(t, nil)
	mark := filepath.Join(o.Dir, "mark")
	for _, command := range []string{"touch mark; if true", "touch mark; echo 'x", "touch mark\nfor", "touch mark; )"} {
		bad(t, o, "bash", args{"command": command}, "syntax error, nothing was run")
	}
	long := "touch mark\n" + strings.Repeat("# a comment\n", maxParsed/10)
	bad(t, o, "bash", args{"command": long + "if true"}, "syntax error, nothing was run", "end of file")
	bad(t, o, "bash", args{"command": strings.Repeat("(", maxCommand)}, "syntax error")
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command with a syntax error was run")
	}
	wantText(t, good(t, o, "bash", args{"command": long + "echo ok"}), "ok\n[exit code 0]")
	wantText(t, good(t, o, "bash", args{"command": "declare -A m=([a b]=c); echo ${m[a b]}"}), "c\n[exit code 0]")
}

// R-D5: the environment is what was given, nothing of ours.
func TestBashEnvironment(t *testing.T) {
	t.Setenv("MAGI_CANARY_KEY", "canary-value")
	o := workspace(t, nil)
	o.Env = append(o.Env, "GIVEN=yes")
	text := good(t, o, "bash", args{"command": "env"})
	if strings.Contains(text, "canary") || !strings.Contains(text, "GIVEN=yes") {
		t.Error(text)
	}
	o.Env = nil
	if text := good(t, o, "bash", args{"command": "/usr/bin/env"}); strings.Contains(text, "canary") {
		t.Error(text)
	}
}

// Endless output takes no more memory than a little.
func TestBashFlood(t *testing.T) {
	o := workspace(t, nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	text := good(t, o, "bash", args{"command": "echo first; " + as("flood", "x")})
	runtime.ReadMemStats(&after)
	if len(text) > outputKept+200 || !strings.HasPrefix(text, "first\nxxx") || !strings.HasSuffix(text, "the end\n[exit code 0]") ||
		!strings.Contains(text, "bytes of output omitted") {
		t.Errorf("%d bytes, %.100q", len(text), text)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes allocated for 100 MiB of output", grown)
	}
}

// S12: at the timeout the whole group ends, also what ignores SIGTERM, and in bounded time.
func TestBashTimeout(t *testing.T) {
	o := workspace(t, nil)
	for _, role := range []string{"stubborn", "polite"} {
		file := filepath.Join(o.Dir, role)
		start := time.Now()
		bad(t, o, "bash", args{"command": "echo before; " + as(role, file) + " & wait", "timeout_ms": 2000}, "before", "[ended after the timeout of 2000 ms]")
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: took %v", role, took)
		}
		if running(pidIn(t, file)) {
			t.Errorf("%s: survived", role)
		}
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "polite.bye")); err != nil {
		t.Error("the polite process got no time to say goodbye")
	}
}

func TestBashCancelled(t *testing.T) {
	o := workspace(t, nil)
	file := filepath.Join(o.Dir, "pid")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan string)
	go func() {
		done <- callContext(ctx, t, o, "bash", args{"command": "echo before; " + as("stubborn", file)}).Plain()
	}()
	pid := pidIn(t, file)
	cancel()
	wantText(t, <-done, "before\n[interrupted]")
	if running(pid) {
		t.Error("survived")
	}
	if text := callContext(ctx, t, o, "bash", args{"command": "touch x"}).Plain(); text != "[interrupted]" {
		t.Error(text)
	}
}

// S12: what a command leaves in the background ends with it, with or without the pipe in its hands.
func TestBashBackground(t *testing.T) {
	o := workspace(t, nil)
	for i, redirect := range []string{"", " >/dev/null 2>&1"} {
		file := filepath.Join(o.Dir, fmt.Sprint(i))
		wait := fmt.Sprintf("while [ ! -e %q ]; do sleep 0.01; done", file)
		start := time.Now()
		text := good(t, o, "bash", args{"command": as("stubborn", file) + redirect + " & " + wait + "; echo started"})
		wantText(t, text, "started\n[exit code 0]\n[processes left in the background were ended]")
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("took %v", took)
		}
		if running(pidIn(t, file)) {
			t.Error("survived")
		}
	}
}

// A process that leaves the group and keeps the pipe does not hold the call up.
func TestBashEscaped(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		return // the tool is part of every Linux; elsewhere there is nothing to test with
	}
	o := workspace(t, nil)
	file := filepath.Join(o.Dir, "pid")
	wait := fmt.Sprintf("while [ ! -e %q ]; do sleep 0.01; done", file)
	start := time.Now()
	text := good(t, o, "bash", args{"command": roleEnv + "=stubborn setsid " + fmt.Sprintf("%q %q", os.Args[0], file) + " & " + wait + "; echo started"})
	if !strings.HasPrefix(text, "started\n[exit code 0]") || time.Since(start) > 8*time.Second {
		t.Errorf("%s after %v", text, time.Since(start))
	}
	_ = syscall.Kill(pidIn(t, file), syscall.SIGKILL)
}

// S12: on Linux the shell does not outlive us even when we are killed.
func TestBashOrphaned(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // no other system tells a child of its parent's death
	}
	file := filepath.Join(t.TempDir(), "pid")
	host := exec.Command(os.Args[0], file)
	host.Env = append(os.Environ(), roleEnv+"=host")
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, file)
	_ = host.Process.Kill()
	_ = host.Wait()
	wait(t, "end of the shell", func() bool { return !running(pid) })
}

func TestEnds(t *testing.T) {
	var all strings.Builder
	for chunk := 1; chunk < 60; chunk++ {
		e := newEnds(100)
		all.Reset()
		for i := 0; all.Len() < 1000; i++ {
			part := strings.Repeat(string(rune('a'+i%26)), chunk)
			all.WriteString(part)
			_, _ = e.Write([]byte(part))
			got, want := e.String(), all.String()
			if len(want) > 100 {
				want = fmt.Sprintf("%s\n... %d bytes of output omitted ...\n%s", want[:50], len(want)-100, want[len(want)-50:])
			}
			if got != want {
				t.Fatalf("chunk %d: got %q, want %q", chunk, got, want)
			}
		}
	}
	e := newEnds(100)
	_, _ = e.Write([]byte(strings.Repeat("0123456789\n", 100)))
	if got := e.String(); got != "0123456789\n0123456789\n0123456789\n0123456789\n... 1012 bytes of output omitted ...\n0123456789\n0123456789\n0123456789\n0123456789\n" {
		t.Errorf("%q", got)
	}
}
