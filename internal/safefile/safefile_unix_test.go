//go:build !windows

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// R-C1: a FIFO or device does not hang the program.
func TestReadSpecial(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, "/dev/zero", "/dev/tty"} {
		if _, err := Read(path, 10); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Read(%s): %v", path, err)
		}
	}
	for _, path := range []string{fifo, "/dev/zero"} {
		if _, err := ReadPrivate(path, 10); !errors.Is(err, ErrNotRegular) {
			t.Errorf("ReadPrivate(%s): %v", path, err)
		}
		if err := Write(path, nil, 0o600); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Write(%s): %v", path, err)
		}
		if _, err := Lock(t.Context(), path); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Lock(%s): %v", path, err)
		}
	}
}

func TestReadFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(link, 10); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := ReadPrivate(link, 10); !errors.Is(err, ErrNotPrivate) || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("ReadPrivate followed a link: %v", err)
	}
	if err := Write(link, []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&fs.ModeSymlink == 0 {
		t.Error("Write replaced the link")
	}
	if got, _ := os.ReadFile(target); string(got) != "y" {
		t.Errorf("the target holds %q", got)
	}
}

// S8, S23: a private file is ours alone.
func TestReadPrivateModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o700: true, 0o640: false, 0o604: false, 0o620: false, 0o602: false, 0o610: false, 0o601: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := ReadPrivate(path, 10)
		if ok && err != nil {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if !ok && (!errors.Is(err, ErrNotPrivate) || !strings.Contains(err.Error(), "chmod 600")) {
			t.Errorf("mode %04o is accepted or lacks its cure: %v", mode, err)
		}
	}
}

// R-A5: nothing that is there already is used or replaced, a dangling link neither.
func TestCreateRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	if err := Create(link, []byte("x"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("dangling link: %v", err)
	}
	if err := publish(link, link); !errors.Is(err, fs.ErrExist) {
		t.Errorf("publish over a link: %v", err)
	}
	if err := Write(link, []byte("x"), 0o600); err == nil {
		t.Error("Write followed a dangling link")
	}
	onlyEntries(t, dir, "link")
}

// R-A8: modes are kept, and given exactly whatever the umask.
func TestModes(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := t.TempDir()
	for _, mode := range []fs.FileMode{0o600, 0o644, 0o400} {
		path := filepath.Join(dir, mode.String())
		if err := Create(path, []byte("a"), mode); err != nil {
			t.Fatal(err)
		}
		if err := Write(path, []byte("b"), 0o777); err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != mode {
			t.Errorf("mode %v became %v", mode, info.Mode())
		}
	}
}

// A file system without hard links still creates exclusively.
func TestRenameNew(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, p := range []string{a, b} {
		if err := os.WriteFile(p, []byte(p), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := renameNew(a, b); !errors.Is(err, fs.ErrExist) {
		t.Errorf("renamed over a file: %v", err)
	}
	if err := renameNew(a, filepath.Join(dir, "c")); err != nil {
		t.Errorf("to a free name: %v", err)
	}
}
