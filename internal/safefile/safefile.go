// Package safefile opens and writes files with care: only regular files up to a size,
// owner-only modes checked, exclusive creation, sync-and-rename writes under a cross-process lock.
package safefile

import (
	"context"
	"io/fs"
)

// Read returns the contents of a regular file of at most limit bytes. A FIFO, device, socket or
// directory is an error and never blocks; a missing file satisfies errors.Is(err, fs.ErrNotExist).
func Read(path string, limit int64) ([]byte, error) { panic("to be built") }

// ReadPrivate is Read for a file that must belong to the user alone: not a symlink, owned by us,
// no permission for group or others (Unix). The error says which and how to mend it.
func ReadPrivate(path string, limit int64) ([]byte, error) { panic("to be built") }

// Create makes a new file with mode perm and the given contents; an existing one (of any kind,
// a dangling symlink too) satisfies errors.Is(err, fs.ErrExist). A reader never sees half of it.
func Create(path string, data []byte, perm fs.FileMode) error { panic("to be built") }

// Write replaces path by data: temporary file, sync, rename, sync of the folder. An existing
// file keeps its mode; a new one gets perm. A crash leaves the old or the new contents.
func Write(path string, data []byte, perm fs.FileMode) error { panic("to be built") }

// Lock takes the cross-process lock file at path (made when missing) and returns its release.
// It waits until ctx ends.
func Lock(ctx context.Context, path string) (release func() error, err error) { panic("to be built") }
