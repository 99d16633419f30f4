package approval

import (
	"os"
	"path/filepath"
	"testing"
)

// R-A5: whoever makes the key removes what a process that was killed over it left, and leaves nothing else than the key.
func TestKeyLeavesNothing(t *testing.T) {
	s := stage(t, `{"command":"c"}`)
	if err := os.Mkdir(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{".mcp-approval.key.new-1", "settings.json.lock"} {
		if err := os.WriteFile(filepath.Join(s.home, left), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.store.ensureKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.home)
	if err != nil || len(entries) != 1 || entries[0].Name() != "mcp-approval.key" {
		t.Errorf("%s holds %v, %v", s.home, entries, err)
	}
}
