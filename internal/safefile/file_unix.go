//go:build !windows

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// openRead opens without waiting for a writer, without taking a terminal, and without following
// a link at the end of path unless follow is set.
func openRead(path string, follow bool) (*os.File, error) {
	flags := os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	return os.OpenFile(path, flags, 0)
}

// checkPrivate reports why a file is not the user's alone.
func checkPrivate(path string, info fs.FileInfo) error {
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("%s: %w: its mode is %04o and must be 0600; run: chmod 600 %q", path, ErrNotPrivate, perm, path)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w: it belongs to another user", path, ErrNotPrivate)
	}
	return nil
}

// keepOwner gives the new file the owner of the old one where that is allowed (root editing a user's file).
func keepOwner(temp string, old fs.FileInfo) {
	if st, ok := old.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		if os.Lchown(temp, int(st.Uid), int(st.Gid)) == nil {
			_ = os.Chmod(temp, old.Mode().Perm()) // chown may have cleared bits
		}
	}
}

// rename replaces path by temp.
func rename(temp, path string) error { return os.Rename(temp, path) }

// publish gives temp the name path unless that is taken. One step is better than two, between which a process can be killed.
func publish(temp, path string) error {
	err := renameNew(temp, path)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return &os.LinkError{Op: "rename", Old: temp, New: path, Err: err}
	}
	if linked := os.Link(temp, path); linked != nil { // the system or the file system cannot rename so
		return linked
	}
	return os.Remove(temp)
}

// unlock releases the lock of the file at path and removes it: before, so that whoever waits for this file sees that it
// is gone.
func unlock(l *flock.Flock, path string) error {
	_ = os.Remove(path)
	return l.Unlock()
}

// syncDir makes a rename in dir last. File systems that cannot sync a folder say so with EINVAL or ENOTSUP.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // we may write there and not read; the file itself is synced
	}
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
