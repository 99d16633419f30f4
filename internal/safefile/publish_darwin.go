package safefile

import "golang.org/x/sys/unix"

// renameNew renames unless path exists.
func renameNew(temp, path string) error { return unix.RenamexNp(temp, path, unix.RENAME_EXCL) }
