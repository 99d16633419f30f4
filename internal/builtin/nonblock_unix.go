//go:build !windows

package builtin

import "syscall"

// openNonblock keeps opening a named pipe from waiting for its other end.
const openNonblock = syscall.O_NONBLOCK
