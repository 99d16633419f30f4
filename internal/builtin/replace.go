package builtin

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// makeParents makes the folders that a new file needs.
func makeParents(root *os.Root, rel string) error {
	dir := filepath.Dir(rel)
	if dir == "." {
		return nil
	}
	return root.MkdirAll(dir, newDirMode)
}

// replaceFile writes a file beside the old one and gives it its name: whoever reads sees all of the old or all of the
// new, a full disk loses nothing, and everything happens inside the root. The mode of an old file is kept.
func replaceFile(root *os.Root, ch change) error {
	mode := os.FileMode(newFileMode)
	if ch.exists {
		mode = ch.mode
	}
	temp := filepath.Join(filepath.Dir(ch.at.rel), ".magi-"+rand.Text()+".tmp")
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(ch.text)
	if err == nil && ch.exists {
		err = f.Chmod(mode) // the umask may have taken away from it
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = root.Rename(temp, ch.at.rel)
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	return err
}
