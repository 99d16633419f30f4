// Package safefile opens and writes files with care: only regular files up to a size,
// owner-only modes checked, exclusive creation, sync-and-rename writes under a cross-process lock.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var (
	// ErrNotRegular is wrapped when a path leads to a folder, FIFO, device or socket.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge is wrapped when a file is larger than its reader allows.
	ErrTooLarge = errors.New("the file is too large")
	// ErrNotPrivate is wrapped when a file that must belong to the user alone does not.
	ErrNotPrivate = errors.New("the file is not private")

	errReplaced = errors.New("it was replaced while it was opened")
)

// maxReplaced is how often a private file may be replaced at the very moment it is opened: other processes renew their tokens at
// any time, and no honest ones do so again and again.
const maxReplaced = 16

// Read returns the contents of a regular file of at most limit bytes. A FIFO, device, socket or
// directory is an error and never blocks; a missing file satisfies errors.Is(err, fs.ErrNotExist).
func Read(path string, limit int64) ([]byte, error) {
	// Looked at before it is opened, because opening some devices already does something; and
	// once more after that, because the path may lead elsewhere by then.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info.Mode())
	}
	f, err := openRead(path, true)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := regular(f, path); err != nil {
		return nil, err
	}
	return readAll(f, path, limit)
}

// ReadPrivate is Read for a file that must belong to the user alone: not a symlink, owned by us,
// no permission for group or others (Unix). The error says which and how to mend it.
func ReadPrivate(path string, limit int64) ([]byte, error) {
	for range maxReplaced - 1 {
		if data, err := readPrivate(path, limit); !errors.Is(err, errReplaced) {
			return data, err
		}
	}
	return readPrivate(path, limit)
}

func readPrivate(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s: %w: it is a symbolic link; replace it by the file itself", path, ErrNotPrivate)
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info.Mode())
	}
	f, err := openRead(path, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := regular(f, path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, opened) {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrNotPrivate, errReplaced)
	}
	if err := checkPrivate(path, opened); err != nil {
		return nil, err
	}
	return readAll(f, path, limit)
}

// regular returns what is known of an open file, or an error when it is not a regular one.
func regular(f *os.File, path string) (fs.FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info.Mode())
	}
	return info, nil
}

// readAll reads f to its end unless that is more than limit bytes.
func readAll(f *os.File, path string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", path, ErrTooLarge, limit)
	}
	return data, nil
}

// notRegular is the error for a path that leads to something else.
func notRegular(path string, mode fs.FileMode) error {
	kind := "something special"
	switch {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	}
	return fmt.Errorf("%s: %w: it is %s", path, ErrNotRegular, kind)
}
