//go:build !windows

package procgroup

import (
	"errors"
	"os/exec"
	"syscall"
)

// Group is a process and all that it starts.
type Group struct{ id int }

// Prepare makes the command the leader of a new session, and so of a process group without a terminal: it can neither
// ask for a password behind the screen's back nor take the keyboard.
func Prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithParent(cmd.SysProcAttr)
}

// New is called once the command has started.
func New(cmd *exec.Cmd) (Group, error) { return Group{id: cmd.Process.Pid}, nil }

// terminate asks every process of the group to end.
func (g Group) terminate() { _ = syscall.Kill(-g.id, syscall.SIGTERM) }

// kill ends every process of the group.
func (g Group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

// Alive reports whether the group still has a process that runs.
func (g Group) Alive() bool {
	return !errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) && hasLiving(g.id)
}

// Release frees what the group holds.
func (g Group) Release() {}
