package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// zooRow is one misbehaviour, met by one command.
type zooRow struct {
	mode    string            // mode and options of the zoo
	command string            // instead of the zoo
	timeout any               // seconds; 0: the default of 30, which no row may need
	env     map[string]string // of the definition
	ours    []string          // added to our own environment
	call    string            // "TOOL JSON" for mcp call
	turn    string            // script for run --provider offline
	asJSON  bool

	exit     int
	orExit   int                  // the code of the other way that a race may go; 0: none
	out, err []string             // patterns, each to be found
	not      string               // pattern in neither
	also     func(outcome) string // what else is wrong
	peak     int                  // MiB of resident memory at most; 0: not looked at
	starts   int                  // how often the zoo is started; 0: once
}

// zooLimit is far below the 30 s timeout: a row that waits for the timeout without saying so fails.
const zooLimit = 12 * time.Second

// TestZoo meets every mode of the zoo with the command that feels it, and holds that nothing of it is left (R-T4, R-T5, S12).
func TestZoo(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range zooRows() {
		mode, _, _ := strings.Cut(r.mode, " ")
		mode, _, _ = strings.Cut(mode, "=")
		seen[mode] = true
		t.Run(strings.Join(strings.Fields(r.mode+" "+r.command+" "+clip(r.call + r.turn)[:min(40, len(r.call+r.turn))]), "_"), func(t *testing.T) {
			t.Parallel()
			meet(t, r)
		})
	}
	for _, mode := range zooModes(t) {
		if !seen[mode] && !metElsewhere(t, mode) {
			t.Errorf("no row meets the mode %s", mode)
		}
	}
}

// metElsewhere reports whether another test of this package names a mode.
func metElsewhere(t *testing.T, mode string) bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), `"`+mode) {
			return true
		}
	}
	return false
}

// zooModes are the modes that the zoo lists.
func zooModes(t *testing.T) (names []string) {
	t.Helper()
	out, err := exec.Command(buildZoo(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}

func meet(t *testing.T, r zooRow) {
	p := newPlace(t)
	p.env = r.ours
	started, peak := filepath.Join(p.user, "started"), filepath.Join(p.user, "peak")
	mode := strings.ReplaceAll(r.mode, "DIR", p.user)
	def := map[string]any{"args": append(strings.Fields(mode), "touch="+started)}
	if r.command != "" {
		def["command"] = strings.ReplaceAll(r.command, "DIR", p.user)
		brokenPrograms(t, p.user)
	}
	if r.timeout != nil {
		def["timeout"] = r.timeout
	}
	if r.env != nil {
		def["env"] = r.env
	}
	p.define(t, map[string]map[string]any{"z": def})
	p.approve(t, "z")
	args := []string{"mcp", "test", "z"}
	switch {
	case r.turn != "":
		args = []string{"run", "--provider", "offline", "--no-session", "--allow", "*", r.turn}
	case r.call != "":
		tool, input, _ := strings.Cut(r.call, " ")
		args = []string{"mcp", "call", "z", tool, or(input, "{}")}
	}
	if r.asJSON {
		args = append(args, "--json")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := p.command(ctx, args...)
	measure := r.peak > 0 && runtime.GOOS == "linux" && !underRace
	if measure {
		cmd = exec.CommandContext(ctx, "measured", append([]string{"magi-code"}, args...)...)
		cmd.Dir, cmd.Env = p.project, append(p.environ(), "PEAK="+peak)
	}
	o := finish(t, cmd)
	left := p.left() // at once: the group is gone before we are
	check(t, r, o)
	if left != nil {
		t.Errorf("left over: %v", left)
	}
	if pids, _ := os.ReadFile(started); r.command == "" && strings.Count(string(pids), "\n") != max(r.starts, 1) {
		t.Errorf("the zoo was started as %q", pids)
	}
	if measure {
		kib, err := os.ReadFile(peak)
		if n, bad := strconv.Atoi(string(kib)); err != nil || bad != nil || n>>10 > r.peak {
			t.Errorf("%s KiB of memory, %d MiB allowed (%v)", kib, r.peak, err)
		}
	}
}

// check compares what a command did with what the row expects. No byte of control reaches the terminal, whatever was sent (S27).
func check(t *testing.T, r zooRow, o outcome) {
	t.Helper()
	if o.code != r.exit && (r.orExit == 0 || o.code != r.orExit) {
		t.Errorf("exit code %d, not %d", o.code, r.exit)
	}
	for stream, patterns := range map[string][]string{o.out: r.out, o.err: r.err} {
		for _, pattern := range patterns {
			if !regexp.MustCompile(pattern).MatchString(stream) {
				t.Errorf("no %s", pattern)
			}
		}
	}
	if r.not != "" && regexp.MustCompile(r.not).MatchString(o.out+o.err) {
		t.Errorf("there is %s", r.not)
	}
	if r.also != nil && r.also(o) != "" {
		t.Error(r.also(o))
	}
	if r.exit == 0 && r.err == nil && r.turn == "" && o.err != "" {
		t.Error("words on stderr about nothing")
	}
	if odd := hidden(o.out + o.err); odd != "" {
		t.Errorf("control or hidden characters %+q reach the terminal", odd)
	}
	if o.took > zooLimit && !underRace {
		t.Error("too slow")
	}
	if t.Failed() {
		t.Log(o)
	}
}

// hidden are the characters of a text that act on a terminal or cannot be seen; the newline is the only one of them that we write.
func hidden(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r >= ' ' && r < 0x7f:
			return -1
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r == 0xfeff, r >= 0xe0000 && r <= 0xe007f:
			return r
		}
		return -1
	}, s)
}

// brokenPrograms makes programs that do not start: B8.
func brokenPrograms(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{"plain": "#!/bin/sh\n", "noformat": "echo hello\n", "badscript": "#!/no/such/interpreter\n"} {
		writeFile(t, filepath.Join(dir, name), text)
		if name != "plain" {
			if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
}
