//go:build !windows

package hook

import (
	"errors"
	"os/exec"
	"syscall"
)

// group is a process and all that it starts.
type group struct{ id int }

// prepare makes the command the leader of a new session, and so of a process group without a terminal: it can neither
// draw on the screen nor take the keyboard.
func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithParent(cmd.SysProcAttr)
}

// newGroup is called once the command has started.
func newGroup(cmd *exec.Cmd) (group, error) { return group{id: cmd.Process.Pid}, nil }

// terminate asks every process of the group to end.
func (g group) terminate() { _ = syscall.Kill(-g.id, syscall.SIGTERM) }

// kill ends every process of the group.
func (g group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

// alive reports whether the group still has a process that runs.
func (g group) alive() bool {
	return !errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) && hasLiving(g.id)
}

// release frees what the group holds.
func (g group) release() {}
