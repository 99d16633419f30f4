//go:build interop

package interop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEditors drives serve --stdio with a client made of the TypeScript SDK of the Agent Client Protocol (R-G11).
func TestEditors(t *testing.T) {
	dir, node := modules(t)
	zoo := filepath.Join(t.TempDir(), "zoo")
	if out, err := exec.Command("go", "build", "-o", zoo, "magi-code/test/zoo").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	notes := map[string]any{"command": testOnlyBinary, "args": []string{"demo-server"}}
	slow := map[string]any{"command": zoo, "args": []string{"good"}}
	for _, c := range []struct {
		scenario string
		servers  map[string]any
		allow    string
	}{
		{"prompt", map[string]any{"notes": notes}, ""},
		{"refuse", map[string]any{"notes": notes}, ""},
		{"modes", map[string]any{"notes": notes}, ""},
		{"cancel", map[string]any{"zoo": slow}, ""},
		{"load", map[string]any{"notes": notes}, ""},
		{"clientTool", map[string]any{"notes": notes}, ""},
		{"badClientTools", map[string]any{"notes": notes}, ""},
		{"frames", map[string]any{"notes": notes}, ""},
		{"twoSessions", map[string]any{"notes": notes}, ""},
		{"offeredServers", map[string]any{"notes": notes}, ""},
		{"failingServer", map[string]any{"broken": map[string]any{"command": zoo, "args": []string{"exit-early"}}}, ""},
		{"buffers", map[string]any{"notes": notes}, ""},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			w := newWorld(t, c.servers)
			script, err := filepath.Abs("acp/client.mjs")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, script, filepath.Join(dir, "@agentclientprotocol", "sdk"), testOnlyBinary, w.project, c.scenario)
			cmd.Dir, cmd.Env, cmd.WaitDelay = w.project, w.env, time.Second
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ok "+c.scenario) {
				t.Errorf("%v\n%s", err, out)
			}
			if left := left(zoo); left != "" {
				t.Errorf("left over: %s", left)
			}
		})
	}
}

// left names a process of that program that still runs.
func left(program string) string {
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	deadline := time.Now().Add(2 * time.Second)
	for {
		found := ""
		for _, d := range dirs {
			if b, err := os.ReadFile(d); err == nil && strings.HasPrefix(string(b), program+"\x00") {
				found = strings.ReplaceAll(string(b), "\x00", " ")
			}
		}
		if found == "" || time.Now().After(deadline) {
			return found
		}
		<-time.After(20 * time.Millisecond)
	}
}
