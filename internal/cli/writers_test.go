package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/secret"
	"magi-code/internal/settings"
)

// editor is an app in a project of its own.
func editor(t *testing.T) (*app, folders) {
	t.Helper()
	t.Chdir(t.TempDir())
	home := t.TempDir()
	a := &app{out: io.Discard, err: io.Discard, scrub: secret.NewScrubber(), lookup: func(name string) (string, bool) {
		return home, name == "MC_HOME"
	}}
	f, err := a.folders()
	if err != nil {
		t.Fatal(err)
	}
	return a, f
}

// R-A8: "always" answered in many places at once loses no answer.
func TestAllowAlwaysAtOnce(t *testing.T) {
	_, f := editor(t)
	patterns := strings.Fields("a b c d e f g h")
	var wg sync.WaitGroup
	for _, p := range patterns {
		wg.Go(func() {
			if err := allowAlways(t.Context(), f.globalSettings(), p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := settings.Raw(f.globalSettings(), "permissions", "allow")
	for _, p := range patterns {
		if !strings.Contains(string(got), `"`+p+`"`) {
			t.Errorf("%s is lost: %s, %v", p, got, err)
		}
	}
}

// R-A8: of many that add one name at once, one does, and the others are told.
func TestAddAtOnce(t *testing.T) {
	a, _ := editor(t)
	var wg sync.WaitGroup
	var added atomic.Int32
	for range 6 {
		wg.Go(func() {
			if a.add(t.Context(), "one", []string{"command"}, addFlags{}) == nil {
				added.Add(1)
			}
		})
	}
	wg.Wait()
	if n := added.Load(); n != 1 {
		t.Errorf("%d added it", n)
	}
}

// A definition that cannot be removed keeps no approval: whatever stops mcp remove half-way, nothing runs by it.
func TestRemoveEndsApprovalFirst(t *testing.T) {
	a, f := editor(t)
	if err := a.add(t.Context(), "one", []string{"command"}, addFlags{}); err != nil {
		t.Fatal(err)
	}
	config, err := definition.Load(f.home, f.cwd)
	if err != nil {
		t.Fatal(err)
	}
	store := approval.NewStore(f.home)
	v, err := store.Review(t.Context(), config.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Approve(t.Context(), v, a.lookup); err != nil {
		t.Fatal(err)
	}
	// A folder in the place of the lock stops the second step.
	if err := os.Mkdir(filepath.Join(f.cwd, ".mcp.json.lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.remove(t.Context(), "one", false); err == nil {
		t.Error("nothing stopped it")
	}
	entries, err := store.Check(config.Servers)
	if err != nil || entries[0].State != approval.NeverApproved {
		t.Errorf("the server is %v, %v", entries[0].State, err)
	}
}
