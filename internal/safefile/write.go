package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Create makes a new file with mode perm and the given contents; an existing one (of any kind,
// a dangling symlink too) satisfies errors.Is(err, fs.ErrExist). A reader never sees half of it.
func Create(path string, data []byte, perm fs.FileMode) error {
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	temp, err := writeTemp(path, data, perm)
	if err != nil {
		return err
	}
	if err := publish(temp, path); err != nil {
		_ = os.Remove(temp)
		if errors.Is(err, fs.ErrExist) {
			return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Write replaces path by data: temporary file, sync, rename, sync of the folder. An existing
// file keeps its mode; a new one gets perm. A crash leaves the old or the new contents.
// When path is a symbolic link, the file that it leads to is replaced and the link stays.
func Write(path string, data []byte, perm fs.FileMode) error {
	target, old, err := existing(path)
	if err != nil {
		return err
	}
	if old != nil {
		perm = old.Mode().Perm()
	}
	temp, err := writeTemp(target, data, perm)
	if err != nil {
		return err
	}
	if old != nil {
		keepOwner(temp, old)
	}
	if err := rename(temp, target); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(target))
}

// existing returns the file that path leads to, and what is known of it; nil when there is none yet.
func existing(path string) (target string, info fs.FileInfo, err error) {
	info, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	target = path
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = filepath.EvalSymlinks(path); err != nil {
			return "", nil, fmt.Errorf("follow the symbolic link: %w", err)
		}
		if info, err = os.Lstat(target); err != nil {
			return "", nil, err
		}
	}
	if !info.Mode().IsRegular() {
		return "", nil, notRegular(path, info.Mode())
	}
	return target, info, nil
}

// tempMark is what the name of a temporary file has after the name of its file.
const tempMark = ".new-"

// Sweep removes the temporary files that killed writers of path left, where path leads to when it is a symbolic link. Only who
// holds the lock that all writers of path take may call it.
func Sweep(path string) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+tempMark
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// writeTemp writes a synced file beside path, which only we can read before its mode is set, and returns its name.
func writeTemp(path string, data []byte, perm fs.FileMode) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+tempMark+"*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return "", err
	}
	if err = f.Chmod(perm); err != nil {
		return "", err
	}
	if err = f.Sync(); err != nil {
		return "", err
	}
	if err = f.Close(); err != nil {
		return "", err
	}
	return f.Name(), nil
}
