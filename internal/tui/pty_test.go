//go:build unix

package tui

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"magi-code/test/tty"
)

// launch runs Mission Control over the fake world in a terminal.
func launch(t *testing.T, scenario string, cols, rows int, env ...string) *tty.Terminal {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "TUI_DEMO="+scenario, "GORACE=atexit_sleep_ms=0"), env...)
	return tty.Start(t, cmd, cols, rows)
}

// R-G9: the prompt is editable from the first frame; what is typed early waits and runs when all servers are ready.
func TestTypingWhileStarting(t *testing.T) {
	x := launch(t, "slow", 80, 40)
	x.WaitFor("magi-code 0.1.0", "0 of 2 ready", "files", "github", "initialize")
	x.Type("first question answer")
	x.WaitFor("first question answer")
	x.Press("enter")
	x.WaitFor("queued · up to edit")
	x.Press("up") // recalled for editing
	x.WaitGone("queued")
	x.Press("alt+enter")
	x.Type("second line")
	x.Press("ctrl+w", "ctrl+w", "backspace")
	x.Type(" now")
	x.Press("enter")
	x.WaitFor("queued · up to edit")
	x.Signal(os.Interrupt) // the servers are ready
	x.WaitFor("❯ first question answer now", "Here is what I found", "↑4.6k ↓256")
	x.Press("ctrl+c")
	x.WaitFor("ctrl+c again quits")
	x.Press("ctrl+c")
	if code := x.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x.WaitFor("EXIT code=0", `"conversation"`, `"servers"`)
	x.CheckRestored()
	x.CheckBytes()
}

// R-G9: a failed start restores the terminal, leaves the queue unrun and gives what was typed back.
func TestFailedStart(t *testing.T) {
	x := launch(t, "fail", 80, 24, "TUI_PROMPT=queued from the start")
	x.WaitFor("queued from the start")
	x.Type("a draft")
	x.WaitFor("❯ a draft")
	x.Signal(os.Interrupt)
	if code := x.Exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	x.WaitFor("EXIT code=1 failures=1", `"queued from the start" "a draft"`)
	x.CheckRestored()
}

// Issue 4: SIGTERM, SIGHUP, a closed terminal and /quit end everything, whatever runs, the terminal first.
func TestEveryWayOut(t *testing.T) {
	for _, name := range []string{"quit", "sigterm", "sighup", "closed terminal"} {
		for _, state := range []string{"running", "starting", "screen"} {
			t.Run(name+" while "+state, func(t *testing.T) {
				scenario := "normal"
				if state == "starting" {
					scenario = "never"
				}
				x := launch(t, scenario, 80, 24)
				switch state {
				case "running":
					x.WaitFor("● ready")
					x.Type("hang")
					x.Press("enter")
					x.WaitFor("still at it")
				case "starting":
					x.WaitFor("0 of 2 ready", "Write already")
				case "screen":
					x.WaitFor("● ready")
					x.Type("/mcp")
					x.Press("enter")
					x.WaitFor("enter revoke")
				}
				start := time.Now()
				switch name {
				case "quit":
					if state == "screen" {
						x.Press("q")
						x.WaitFor("● ready")
					}
					x.Type("/quit")
					x.Press("enter")
				case "sigterm":
					x.Signal(syscall.SIGTERM)
				case "sighup":
					x.Signal(syscall.SIGHUP)
				default:
					x.HangUp()
				}
				x.Exit()
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("took %v", d)
				}
				if name != "closed terminal" {
					x.WaitFor("EXIT")
					x.CheckRestored()
				}
			})
		}
	}
}

// A terminal that takes no output any more does not hold Mission Control.
func TestFrozenTerminal(t *testing.T) {
	races := filepath.Join(t.TempDir(), "race") // what is printed to a frozen terminal holds its process
	x := launch(t, "frozen", 150, 60, "GORACE=atexit_sleep_ms=0 log_path="+races)
	x.WaitFor("● ready")
	x.Type("long answer tool")
	x.Press("enter")
	x.WaitFor("↑4.6k")
	thaw := x.Freeze()
	defer thaw()
	for i := range 60 { // frames that are drawn anew, until nothing fits between us and the program any more
		x.Resize(100+i%2*50, 50)
		<-time.After(12 * time.Millisecond)
	}
	start := time.Now()
	x.Signal(syscall.SIGTERM)
	if code := x.Exit(); code != exitFrozen {
		t.Errorf("exit code %d", code)
	}
	if d := time.Since(start); d > 12*time.Second {
		t.Errorf("took %v", d)
	}
	if found, _ := filepath.Glob(races + "*"); found != nil {
		report, _ := os.ReadFile(found[0])
		t.Errorf("%s", report)
	}
}

// NO_COLOR leaves no colour in the output; bold and the like may stay.
func TestNoColor(t *testing.T) {
	x := launch(t, "normal", 100, 30, "NO_COLOR=1")
	x.WaitFor("● ready")
	x.Type("answer tool")
	x.Press("enter")
	x.WaitFor("↑4.6k", "ctrl+o")
	x.Type("/quit")
	x.Press("enter")
	x.Exit()
	if m := regexp.MustCompile(`\x1b\[([0-9:]+;)*(3[0-8]|9[0-7]|4[0-8])[0-9;:]*m`).FindString(x.Output()); m != "" {
		t.Errorf("colour %q", m)
	}
}

// Issue 4: a turn stops within a second.
func TestInterrupt(t *testing.T) {
	x := launch(t, "normal", 80, 24)
	x.WaitFor("● ready")
	x.Type("hang")
	x.Press("enter")
	x.WaitFor("still at it", "esc interrupts")
	x.Type("typed behind it")
	x.Press("enter")
	x.WaitFor("queued")
	start := time.Now()
	x.Press("esc")
	x.WaitFor("interrupted after")
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v", d)
	}
	x.WaitFor("❯ typed behind it") // back in the prompt, not run
	x.Press("ctrl+c", "ctrl+c", "ctrl+c")
	x.Exit()
	x.CheckRestored()
}

// Issue 4, S27: hostile text of servers and models leaves no control byte in the output.
func TestHostileText(t *testing.T) {
	x := launch(t, "normal", 100, 40)
	x.WaitFor("● ready")
	x.Type("hostile")
	x.Press("enter")
	x.WaitFor("May this tool run?", "[y] once")
	x.Press("y")
	x.WaitFor("● ready", "↑4.6k")
	x.Press("ctrl+o", "ctrl+home")
	x.WaitFor("magi-code 0.1.0")
	for range 6 {
		x.Press("pgdown")
	}
	x.WaitFor("↑4.6k")
	x.Type("/quit")
	x.Press("enter")
	x.Exit()
	x.CheckBytes("\x1b]52;c;QUJD", "\x1b]8;;http://evil", "\x1b[2J\x1b]", "\u202e", "\u200b")
}

// Issue 4: a paste of 1 MiB shows as a chip and is sent in full.
func TestPasteOfOneMiB(t *testing.T) {
	x := launch(t, "normal", 80, 24)
	x.WaitFor("● ready")
	big := strings.Repeat(strings.Repeat("x", 63)+"\n", 16<<10)
	x.Type("see ")
	x.Paste(big)
	x.WaitFor("see [pasted 16384 lines, 1.0 MiB]")
	x.Type(" ok")
	x.WaitFor("MiB] ok")
	x.Press("backspace", "backspace", "backspace", "backspace")
	x.WaitGone("pasted")
	x.Press("ctrl+_")
	x.WaitFor("pasted 16384")
	x.Press("ctrl+c", "ctrl+c", "ctrl+c")
	x.Exit()
	x.CheckRestored()
}

// Issue 4: resize storms and narrow terminals.
func TestResizeStorm(t *testing.T) {
	x := launch(t, "normal", 80, 24)
	x.WaitFor("● ready")
	x.Type("answer long tool")
	x.Press("enter")
	x.WaitFor("↑4.6k")
	x.Type("no key of it is lost")
	for i := range 60 {
		x.Resize(5+(i*37)%180, 3+(i*13)%60)
	}
	x.Resize(30, 10)
	x.WaitFor("❯ no key of it is lost")
	x.Press("ctrl+u")
	x.WaitFor("❯ Ask, or / for com")
	x.Resize(8, 3)
	x.WaitFor("magi-co")
	x.Resize(100, 30)
	x.WaitFor("● ready", "Ask, or / for commands")
	x.Type("/quit")
	x.Press("enter")
	if code := x.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	x.CheckRestored()
}

// Issue 4: a panic restores the terminal and leaves a report.
func TestPanicInATurn(t *testing.T) {
	x := launch(t, "normal", 80, 24)
	x.WaitFor("● ready")
	x.Type("panic")
	x.Press("enter")
	if code := x.Exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	x.WaitFor("EXIT code=1", "crashed=true", `report="/tmp/report.txt"`)
	x.CheckRestored()
}

// Ctrl-Z in a terminal without a shell must not wait for ever.
func TestSuspendWithoutAShell(t *testing.T) {
	x := launch(t, "normal", 80, 24)
	x.WaitFor("● ready")
	x.Press("ctrl+z")
	x.WaitFor("no shell to suspend to")
	x.Type("still here")
	x.WaitFor("still here")
	x.Press("ctrl+c", "ctrl+c", "ctrl+c")
	x.Exit()
	x.CheckRestored()
}

// The editor gets the terminal, and its text comes back.
func TestExternalEditor(t *testing.T) {
	x := launch(t, "normal", 80, 24)
	x.WaitFor("● ready")
	x.Type("draft")
	x.Press("ctrl+g")
	x.WaitFor("draft edited")
	x.Press("ctrl+c", "ctrl+c", "ctrl+c")
	x.Exit()
	x.CheckRestored()
}
