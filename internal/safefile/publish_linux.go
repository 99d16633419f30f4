package safefile

import "golang.org/x/sys/unix"

// renameNew renames unless path exists.
func renameNew(temp, path string) error {
	return unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
}
