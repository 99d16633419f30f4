//go:build !windows

package hook

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
)

func playUnixRole(role string, rest []string) {
	switch role {
	case "stubborn": // ignores SIGTERM, says that it is there, and stays
		signal.Ignore(syscall.SIGTERM)
		announce(rest[0])
		<-time.After(time.Hour)
	case "launcher": // leaves a stubborn child behind that holds all pipes
		child := exec.Command(os.Args[0], "stubborn", rest[0])
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		if child.Start() == nil {
			for {
				if _, err := os.Stat(rest[0]); err == nil {
					return
				}
				runtime.Gosched()
			}
		}
	}
}

// announce writes our process id to a file.
func announce(file string) {
	_ = os.WriteFile(file+".new", []byte(strconv.Itoa(os.Getpid())), 0o600)
	_ = os.Rename(file+".new", file)
}

// pidIn waits for the process that announces itself in a file.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		if text, err := os.ReadFile(file); err == nil {
			pid, err := strconv.Atoi(string(text))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		if time.Now().After(deadline) {
			t.Fatal("the process did not announce itself")
		}
	}
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

// S12: a hook that takes too long, or whose turn ends, ends with all that it started.
func TestEnding(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	h := as("stubborn", file)
	h.Timeout = 2 * time.Second // enough to announce itself on a busy machine
	start := time.Now()
	w, refusal := runner(t, h).Run(t.Context(), before)
	if refusal != "" || len(w) != 1 || !strings.Contains(w[0], "longer than 2s") || time.Since(start) > 10*time.Second {
		t.Errorf("%q, %q after %v", w, refusal, time.Since(start))
	}
	if running(pidIn(t, file)) {
		t.Error("survived the timeout")
	}

	file += "2"
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan string)
	go func() {
		_, refusal := runner(t, as("stubborn", file)).Run(ctx, before)
		done <- refusal
	}()
	pid := pidIn(t, file)
	cancel()
	if refusal := <-done; !strings.Contains(refusal, "interrupted") {
		t.Error(refusal)
	}
	if running(pid) {
		t.Error("survived the end of the turn")
	}
}

// S12: what a hook leaves behind ends with it and holds nothing up.
func TestLeftBehind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	start := time.Now()
	p := before
	p.Input = []byte(`"` + strings.Repeat("i", 1<<20) + `"`) // the pipe is full and nobody reads
	if w, refusal := runner(t, as("launcher", file)).Run(t.Context(), p); w != nil || refusal != "" {
		t.Errorf("%q, %q", w, refusal)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if running(pidIn(t, file)) {
		t.Error("survived")
	}
}
