//go:build unix

package safefile

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// TestReadWhileReplaced: who reads a private file while others replace it gets one of its versions, and no error. R-O5.
func TestReadWhileReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if err := Write(path, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for !over.Load() {
				if err := Write(path, []byte("token"), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20_000 {
		if data, err := ReadPrivate(path, 10); err != nil || string(data) != "token" {
			t.Errorf("%q %v", data, err)
			break
		}
	}
	over.Store(true)
	writers.Wait()
}
