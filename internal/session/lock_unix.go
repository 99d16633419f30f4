//go:build !windows

package session

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the exclusive lock of an open file, which lasts until the file is closed, by death too. With wait it
// waits for a holder; without, a held file is ErrInUse.
func lockFile(f *os.File, wait bool) error {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			if pid := holder(f); pid > 0 {
				return fmt.Errorf("%w by process %d: end that one, or start a new session", ErrInUse, pid)
			}
			return fmt.Errorf("%w by another process: end that one, or start a new session", ErrInUse)
		default:
			return fmt.Errorf("lock: %w", err)
		}
	}
}
