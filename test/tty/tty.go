//go:build unix

// Package tty drives a program in a pseudo-terminal, for tests: what a user does (Type, Press, Paste, Resize) and what
// a user sees (WaitFor, Screen), with the bytes and the terminal modes behind it.
package tty

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Patience is how long the driver waits for anything before the test fails: long enough for a busy machine.
const Patience = 20 * time.Second

// Settled is how long the screen must stay as it is to count: a frame arrives in pieces.
const Settled = 15 * time.Millisecond

// Terminal is a program in a terminal.
type Terminal struct {
	t      testing.TB
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File
	before *term.State // modes of the line discipline before the program started

	mu      sync.Mutex
	emu     *vt.Emulator
	raw     bytes.Buffer
	changed chan struct{} // closed and replaced at every output
	pumps   sync.WaitGroup
	exited  chan struct{}
	began   time.Time
	seen    time.Time // when the last Wait saw what it waited for
	hungUp  bool
	frozen  bool
	thaw    chan struct{}
}

// Start runs cmd in a terminal of cols and rows. The test ends it when it is still there.
func Start(t testing.TB, cmd *exec.Cmd, cols, rows int) *Terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
	before, err := term.GetState(int(slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	master = pollable(t, master)
	x := &Terminal{t: t, cmd: cmd, master: master, slave: slave, before: before, emu: vt.NewEmulator(cols, rows), changed: make(chan struct{}), exited: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "COLORTERM=truecolor")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	x.began = time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x.pumps.Go(x.readOutput)
	x.pumps.Go(x.answerQueries)
	x.pumps.Go(func() { _ = cmd.Wait(); close(x.exited) })
	t.Cleanup(x.close)
	return x
}

// pollable returns the same terminal as a file whose Close ends a Read that waits: asking for a descriptor, as
// setting the size does, makes a file blocking.
func pollable(t testing.TB, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0) // a child that held it could not be hung up on
	if err == nil {
		err = errors.Join(syscall.SetNonblock(fd, true), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// resize sets the size without making the file blocking.
func (x *Terminal) resize(cols, rows int) error {
	conn, err := x.master.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = conn.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
	})
	return errors.Join(err, set)
}

// readOutput feeds the emulator.
func (x *Terminal) readOutput() {
	buf := make([]byte, 64<<10)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		for x.frozen {
			x.mu.Unlock()
			<-x.thaw
			x.mu.Lock()
		}
		x.raw.Write(buf[:n])
		x.emulate(buf[:n])
		close(x.changed)
		x.changed = make(chan struct{})
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// emulate feeds output to the emulator. Scroll regions that the program set for the size before a resize are cut
// to the screen, which the emulator leaves to us; what still makes it stumble costs the rest of that output.
func (x *Terminal) emulate(out []byte) {
	defer func() {
		if r := recover(); r != nil {
			x.t.Logf("the emulator stumbled: %v", r)
		}
	}()
	h := x.emu.Height()
	out = regexp.MustCompile(`\x1b\[(\d+);(\d+)r`).ReplaceAllFunc(out, func(m []byte) []byte {
		var top, bottom int
		if _, err := fmt.Sscanf(string(m), "\x1b[%d;%dr", &top, &bottom); err != nil {
			return m
		}
		return fmt.Appendf(nil, "\x1b[%d;%dr", min(top, h), min(bottom, h))
	})
	_, _ = x.emu.Write(out)
}

// answerQueries gives the program what the emulator answers to its questions.
func (x *Terminal) answerQueries() {
	_, _ = io.Copy(x.master, x.emu)
}

func (x *Terminal) close() {
	select {
	case <-x.exited:
	default:
		_ = x.cmd.Process.Kill()
		<-x.exited
	}
	_ = x.slave.Close()
	_ = x.master.Close()
	if w, ok := x.emu.InputPipe().(*io.PipeWriter); ok {
		_ = w.Close()
	}
	x.pumps.Wait()
}

// Send writes raw bytes to the program.
func (x *Terminal) Send(s string) {
	x.t.Helper()
	if _, err := io.WriteString(x.master, s); err != nil {
		x.t.Fatalf("writing to the terminal: %v", err)
	}
}

// Type types text.
func (x *Terminal) Type(s string) { x.t.Helper(); x.Send(s) }

// Paste pastes text as a terminal does in bracketed paste mode.
func (x *Terminal) Paste(s string) { x.t.Helper(); x.Send("\x1b[200~" + s + "\x1b[201~") }

// Press presses keys by name: "enter", "esc", "ctrl+c", "alt+enter", "pgup", ...
func (x *Terminal) Press(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		seq, ok := sequence(k)
		if !ok {
			x.t.Fatalf("no key %q", k)
		}
		x.Send(seq)
	}
}

func sequence(k string) (string, bool) {
	named := map[string]string{
		"enter": "\r", "esc": "\x1b", "tab": "\t", "backspace": "\x7f", "space": " ", "delete": "\x1b[3~",
		"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
		"pgup": "\x1b[5~", "pgdown": "\x1b[6~", "alt+enter": "\x1b\r", "shift+enter": "\x1b[13;2u",
		"ctrl+home": "\x1b[1;5H", "ctrl+end": "\x1b[1;5F", "shift+up": "\x1b[1;2A", "shift+down": "\x1b[1;2B",
		"alt+up": "\x1b[1;3A", "alt+down": "\x1b[1;3B", "wheelup": "\x1b[<64;2;2M", "wheeldown": "\x1b[<65;2;2M",
	}
	if s, ok := named[k]; ok {
		return s, true
	}
	if c, ok := strings.CutPrefix(k, "ctrl+"); ok && len(c) == 1 {
		return string([]byte{c[0] & 0x1f}), true
	}
	if c, ok := strings.CutPrefix(k, "alt+"); ok && len(c) == 1 {
		return "\x1b" + c, true
	}
	return k, len([]rune(k)) == 1
}

// Resize changes the size of the terminal.
func (x *Terminal) Resize(cols, rows int) {
	x.t.Helper()
	x.mu.Lock()
	_, _ = x.emu.WriteString("\x1b7\x1b[r\x1b8") // regions end with a resize; the cursor stays
	x.emu.Resize(cols, rows)
	x.mu.Unlock()
	if err := x.resize(cols, rows); err != nil {
		x.t.Fatal(err)
	}
}

// Screen returns what is seen now, trailing spaces cut.
func (x *Terminal) Screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return screen(x.emu)
}

func screen(e *vt.Emulator) string {
	var b strings.Builder
	for y := range e.Height() {
		var l strings.Builder
		for c := 0; c < e.Width(); {
			cell := e.CellAt(c, y)
			if cell == nil || cell.Width == 0 {
				l.WriteByte(' ')
				c++
				continue
			}
			l.WriteString(cell.Content)
			c += cell.Width
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// Output returns every byte that the program wrote so far.
func (x *Terminal) Output() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

// Wait blocks until the screen satisfies ok and stands still.
func (x *Terminal) Wait(what string, ok func(screen string) bool) {
	x.t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	x.seen = time.Time{}
	for {
		x.mu.Lock()
		s, changed := screen(x.emu), x.changed
		x.mu.Unlock()
		var quiet <-chan time.Time
		if ok(s) {
			quiet = time.After(Settled)
			if x.seen.IsZero() {
				x.seen = time.Now()
			}
		} else {
			x.seen = time.Time{}
		}
		select {
		case <-quiet:
			return
		case <-changed:
		case <-timer.C:
			x.t.Fatalf("waited for %s; the screen is\n%s", what, s)
		}
	}
}

// WaitFor blocks until all texts are on the screen.
func (x *Terminal) WaitFor(texts ...string) {
	x.t.Helper()
	x.Wait(fmt.Sprintf("%q", texts), func(s string) bool {
		for _, t := range texts {
			if !strings.Contains(s, t) {
				return false
			}
		}
		return true
	})
}

// WaitGone blocks until a text is not on the screen.
func (x *Terminal) WaitGone(text string) {
	x.t.Helper()
	x.Wait(fmt.Sprintf("%q to go", text), func(s string) bool { return !strings.Contains(s, text) })
}

// Signal sends a signal to the program.
func (x *Terminal) Signal(sig os.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(sig); err != nil {
		x.t.Fatal(err)
	}
}

// HangUp closes the terminal under the program.
func (x *Terminal) HangUp() {
	x.hungUp = true
	_ = x.slave.Close()
	_ = x.master.Close()
}

// Freeze stops the terminal from taking output, as Ctrl-S or a dead connection does; the returned func lets it go on.
func (x *Terminal) Freeze() (thaw func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.frozen, x.thaw, x.hungUp = true, make(chan struct{}), true
	return sync.OnceFunc(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.frozen = false
		close(x.thaw)
	})
}

// Exit waits for the program's end and returns its exit code; -1 when a signal ended it.
func (x *Terminal) Exit() int {
	x.t.Helper()
	select {
	case <-x.exited:
		x.drain()
		return x.cmd.ProcessState.ExitCode()
	case <-time.After(Patience):
		_ = x.cmd.Process.Signal(syscall.SIGQUIT) // what it does stands in its stack dump
		<-x.exited
		x.t.Fatalf("the program does not end; the screen is\n%s", x.Screen())
		return -1
	}
}

// drain waits until everything that the program wrote has arrived: a mark of our own written behind it.
func (x *Terminal) drain() {
	x.t.Helper()
	if x.hungUp {
		return
	}
	const mark = "\x1b]7777;end\x1b\\"
	if _, err := x.slave.WriteString(mark); err != nil {
		x.t.Fatal(err)
	}
	for {
		x.mu.Lock()
		out, changed := x.raw.String(), x.changed
		if before, after, ok := strings.Cut(out, mark); ok {
			x.raw.Reset()
			x.raw.WriteString(before + after) // late answers to queries may be echoed behind it
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(Patience):
			x.t.Fatal("the last output does not arrive")
		}
	}
}

// SeenAfter is the time from the program's start to what the last Wait waited for.
func (x *Terminal) SeenAfter() time.Duration { return x.seen.Sub(x.began) }

// Pid is the program's process id.
func (x *Terminal) Pid() int { return x.cmd.Process.Pid }
