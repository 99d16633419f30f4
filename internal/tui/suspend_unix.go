//go:build unix

package tui

import (
	"os"

	"golang.org/x/sys/unix"
)

// canSuspend reports whether somebody would continue this process: a parent of the same session in another process
// group. Without one the kernel ignores the stop, and waiting to be continued would never end.
func canSuspend() bool {
	parent := os.Getppid()
	ours, err := unix.Getsid(0)
	if err != nil {
		return false
	}
	theirs, err := unix.Getsid(parent)
	if err != nil || theirs != ours {
		return false
	}
	group, err := unix.Getpgid(parent)
	return err == nil && group != unix.Getpgrp()
}
