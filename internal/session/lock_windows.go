package session

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes the exclusive lock of an open file, which lasts until the file is closed. Locks are mandatory here, so
// the locked byte lies far behind every content: lists go on reading.
func lockFile(f *os.File, wait bool) error {
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK)
	if !wait {
		flags |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return fmt.Errorf("%w by another process: end that one, or start a new session", ErrInUse)
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}
