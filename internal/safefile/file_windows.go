package safefile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/windows"
)

// openRead opens a file; Windows has named pipes and devices in a name space of their own,
// which the caller's look at the file's kind has ruled out.
func openRead(path string, _ bool) (*os.File, error) { return os.Open(path) }

// checkPrivate relies on the access list that files in a user's profile inherit.
func checkPrivate(string, fs.FileInfo) error { return nil }

// keepOwner has nothing to do: the folder's access list decides.
func keepOwner(string, fs.FileInfo) {}

// A virus scanner or another process may hold the file open for a moment.
const (
	renameTries = 20
	renamePause = 10 * time.Millisecond
)

// rename replaces path by temp.
func rename(temp, path string) error {
	return move(temp, path, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

// publish gives temp the name path unless that is taken.
func publish(temp, path string) error { return move(temp, path, windows.MOVEFILE_WRITE_THROUGH) }

// move renames, trying again while someone else holds one of the files.
func move(temp, path string, flags uint32) error {
	from, err := windows.UTF16PtrFromString(temp)
	if err != nil {
		return err
	}
	to, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err = windows.MoveFileEx(from, to, flags)
		held := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if err == nil || !held || try == renameTries {
			break
		}
		<-time.After(renamePause)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: temp, New: path, Err: err}
	}
	return nil
}

// unlock releases the lock. The file stays: nobody could open it in the moment in which it is being removed.
func unlock(l *flock.Flock, _ string) error { return l.Unlock() }

// syncDir has nothing to do: MOVEFILE_WRITE_THROUGH waits for the disk.
func syncDir(string) error { return nil }
