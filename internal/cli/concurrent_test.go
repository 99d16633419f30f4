package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestConcurrentApprovals: eight processes that approve eight servers at once, with no key there yet, end with one key and eight
// approvals, and what else stands in the settings is kept (R-A5, R-A8).
func TestConcurrentApprovals(t *testing.T) {
	const n = 8
	p := newPlace(t)
	writeFile(t, filepath.Join(p.home, "settings.json"), `{"later": [1,   2], "provider":  "offline"}`)
	servers := map[string]map[string]any{}
	for i := range n {
		servers[fmt.Sprintf("s%d", i)] = map[string]any{"args": []string{"good", fmt.Sprint(i)}}
	}
	p.define(t, servers)
	outcomes := make([]outcome, n)
	var wg sync.WaitGroup
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		wg.Go(func() {
			get := finish(t, p.command(t.Context(), "mcp", "get", name, "--json"))
			outcomes[i] = finish(t, p.command(t.Context(), "mcp", "approve", name, "--fingerprint", fingerprint(get.out)))
		})
	}
	wg.Wait()
	for i, o := range outcomes {
		if o.code != 0 {
			t.Errorf("s%d: %v", i, o)
		}
	}
	list := p.run(t, "mcp", "list")
	if got := strings.Count(list.out, " enabled "); got != n || list.code != 0 {
		t.Errorf("%d are enabled: %v", got, list)
	}
	b, err := os.ReadFile(filepath.Join(p.home, "settings.json"))
	if err != nil || !strings.Contains(string(b), `"later": [1,   2], "provider":  "offline"`) {
		t.Errorf("%v: %s", err, b)
	}
	// Revoked and approved at once: each is one or the other.
	for i := range n {
		verb := []string{"mcp", "revoke", fmt.Sprintf("s%d", i)}
		wg.Go(func() { outcomes[i] = finish(t, p.command(t.Context(), verb...)) })
	}
	wg.Wait()
	list = p.run(t, "mcp", "list")
	if got := strings.Count(list.out, "disabled: revoked"); got != n {
		t.Errorf("%d are revoked: %v", got, list)
	}
	if odd, _ := filepath.Glob(filepath.Join(p.home, "*tmp*")); odd != nil {
		t.Errorf("left behind: %v", odd)
	}
}

// TestConcurrentRuns: runs side by side in one folder, one of them going on with the newest session, lose and mix nothing (R-G8).
func TestConcurrentRuns(t *testing.T) {
	const n = 6
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"z": {"args": []string{"good"}}})
	p.approve(t, "z")
	if o := p.run(t, "run", "--provider", "offline", "say first"); o.code != 0 {
		t.Fatal(o)
	}
	outcomes := make([]outcome, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			outcomes[i] = finish(t, p.command(t.Context(), "run", "--provider", "offline", "--allow", "*", fmt.Sprintf(`call mcp__z__echo {"text": "number %d"}`, i)))
		})
	}
	wg.Wait()
	for i, o := range outcomes {
		if want := fmt.Sprintf("answered: number %d\n", i); o.code != 0 || !strings.HasSuffix(o.out, want) {
			t.Errorf("%d: %v", i, o)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(p.home, "sessions", "*.jsonl")); len(files) != n+1 {
		t.Errorf("%d sessions: %v", len(files), files)
	}
	if left := p.left(); left != nil {
		t.Errorf("left over: %v", left)
	}
}
