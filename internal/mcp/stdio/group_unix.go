//go:build unix

package stdio

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the process group that the child leads.
type group struct {
	mu   sync.Mutex
	pid  int
	over bool // it has no members any more, and its number may be another's
}

// start starts cmd as the leader of a new group.
func (g *group) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pid = cmd.Process.Pid
	return nil
}

// terminate asks every member to end.
func (g *group) terminate() { g.signal(unix.SIGTERM) }

// kill ends every member.
func (g *group) kill() { g.signal(unix.SIGKILL) }

func (g *group) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid > 0 && !g.over {
		_ = unix.Kill(-g.pid, s) // an error means that nobody is left
	}
}

// alive reports whether the group has members. It is asked after the leader was reaped.
func (g *group) alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || g.pid <= 0 {
		return false
	}
	if errors.Is(unix.Kill(-g.pid, 0), unix.ESRCH) || onlyZombies(g.pid) {
		g.over = true
	}
	return !g.over
}

// release forgets the group.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
}

// exitError says how the reaped child ended.
func exitError(cmd *exec.Cmd, shown string) error {
	e := &ExitError{Program: shown, Code: -1}
	if cmd.ProcessState == nil {
		return e
	}
	e.Code = cmd.ProcessState.ExitCode()
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		e.Signal = w.Signal().String()
	}
	return e
}

// extensions is about Windows.
func extensions(string) []string { return nil }

// mayExecute returns nil for a regular file that this user may execute.
func mayExecute(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || unix.Access(file, unix.X_OK) != nil {
		return fs.ErrPermission
	}
	return nil
}
