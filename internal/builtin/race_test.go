package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A folder that turns into a link to somewhere else between check and use leads nowhere.
func TestSwappedFolder(t *testing.T) {
	o := workspace(t, map[string]string{"d/f": "inside"})
	outside := filepath.Join(filepath.Dir(o.Dir), "outside")
	put(t, filepath.Join(outside, "f"), "secret")
	d, aside := filepath.Join(o.Dir, "d"), filepath.Join(o.Dir, "aside")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(d, aside)
			_ = os.Symlink(outside, d)
			_ = os.Remove(d)
			_ = os.Rename(aside, d)
		}
	})
	worked := 0
	for range 500 {
		for _, text := range []string{
			call(t, o, "read", args{"path": "d/f"}).Plain(), call(t, o, "grep", args{"pattern": "secret"}).Plain(),
			call(t, o, "grep", args{"pattern": "secret", "path": "d/f"}).Plain(),
		} {
			if strings.Contains(text, "secret") {
				t.Fatal(text)
			}
		}
		if !call(t, o, "write", args{"path": "d/new", "content": "x"}).IsError {
			worked++
		}
		call(t, o, "edit", args{"path": "d/f", "old": "s", "new": "S"})
		call(t, o, "edit", args{"path": "d/f", "old": "S", "new": "s"})
	}
	close(stop)
	wg.Wait()
	wantText(t, get(t, filepath.Join(outside, "f")), "secret")
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("written outside: %v", entries)
	}
	if worked == 0 {
		t.Error("no write succeeded, so that nothing was tested")
	}
}
