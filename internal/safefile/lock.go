package safefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a taken lock is tried again: writers hold it for milliseconds.
const lockPoll = 5 * time.Millisecond

// lockPerm is the mode of a new lock file, which is empty.
const lockPerm = 0o600

// Lock takes the cross-process lock file at path (made when missing) and returns its release.
// It waits until ctx ends. The lock also excludes other holders in this process, and ends with the
// process. The release removes the file, except on Windows, so that no folder keeps one.
func Lock(ctx context.Context, path string) (release func() error, err error) {
	for {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return nil, notRegular(path, info.Mode())
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		l := flock.New(path, flock.SetPermissions(lockPerm))
		got, err := l.TryLockContext(ctx, lockPoll)
		if err != nil || !got {
			_ = l.Close()
			if ctx.Err() != nil {
				return nil, fmt.Errorf("wait for the lock %s: %w", path, context.Cause(ctx))
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if isCurrent(l, path) {
			return func() error { return unlock(l, path) }, nil
		}
		_ = l.Unlock()
	}
}

// isCurrent reports whether the locked file is the one at path, and not one that its last holder removed.
func isCurrent(l *flock.Flock, path string) bool {
	locked, err := l.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(path)
	return err == nil && os.SameFile(locked, current)
}
