//go:build unix && !linux

package stdio

import (
	"os/exec"
	"syscall"
)

// attributes make the child a leader. Here it learns of our death by the end of its stdin only.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await cannot wait without reaping here: the group's number is at risk for the moment until it is looked at.
func (g *group) await(*exec.Cmd) bool { return false }

// onlyZombies cannot be found out here; the first process always is an init.
func onlyZombies(int) bool { return false }
