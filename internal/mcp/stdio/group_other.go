//go:build unix && !linux

package stdio

import (
	"os/exec"
	"syscall"
)

// attributes make the child the leader of a session, and so of a group, without our terminal. Here it learns of our
// death by the end of its stdin only.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// await cannot wait without reaping here: the group's number is at risk for the moment until it is looked at.
func (g *group) await(*exec.Cmd) bool { return false }

// onlyZombies cannot be found out here; the first process always is an init.
func onlyZombies(int) bool { return false }
