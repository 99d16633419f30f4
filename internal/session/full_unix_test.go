//go:build !windows

package session

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fullEnv makes the test binary a process whose files may not grow beyond a limit, as on a full disk.
const fullEnv = "MAGI_TEST_SESSION_FULL"

// fillDisk appends until writes fail, then goes on when there is room again.
func fillDisk(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := NewStore(dir).Create("/w")
	if err != nil {
		return err
	}
	if err := s.Append(say("user", "first")); err != nil {
		return err
	}
	room := func(bytes uint64) error {
		limit := unix.Rlimit{}
		if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		limit.Cur = bytes
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
	}
	if err := room(10_000); err != nil {
		return err
	}
	written, failed := 0, 0
	for i := range 20 {
		if err := s.Append(Entry{Kind: Note, Text: strings.Repeat("x", 900+i)}); err == nil {
			written++
		} else {
			failed++
		}
	}
	// A prompt that begins while the disk is full is no session either, and can be tried again.
	other, _ := NewStore(dir).Create("/other")
	if err := room(10); err != nil {
		return err
	}
	if other.Append(say("user", "no room")) == nil {
		return errors.New("created without room")
	}
	if err := room(unix.RLIM_INFINITY); err != nil {
		return err
	}
	for _, s := range []*Session{s, other} {
		if err := s.Append(say("user", "last")); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	fmt.Println(s.ID(), other.ID(), written, failed)
	return nil
}

// R-G8: a full disk tears no line: what was acknowledged is there, what failed is not, and writing goes on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fullEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var id, other string
	var written, failed int
	if _, err := fmt.Sscan(string(out), &id, &other, &written, &failed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if written == 0 || failed == 0 {
		t.Fatalf("%d written, %d failed", written, failed)
	}
	got := mustOpen(t, NewStore(dir), id).Entries()
	if len(got) != written+3 || got[len(got)-1].Message == nil {
		t.Errorf("%d entries, %d acknowledged", len(got), written+3)
	}
	for _, e := range got {
		if e.IsError {
			t.Error(e.Text)
		}
	}
	if got := mustOpen(t, NewStore(dir), other).Entries(); len(got) != 2 {
		t.Errorf("%d entries", len(got))
	}
}
