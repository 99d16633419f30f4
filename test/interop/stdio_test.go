//go:build interop

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// npmServer is the definition of a server from npm.
func npmServer(t *testing.T, pkg string, args ...string) map[string]any {
	dir, node := modules(t)
	return map[string]any{"command": node, "args": append([]string{filepath.Join(dir, pkg, "dist", "index.js")}, args...)}
}

// TestStdioServers: mcp test and mcp call on servers that others wrote (R-Q2, R-D1).
func TestStdioServers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("the kettle boils at 96 degrees"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		server map[string]any
		tests  []string
		tool   string
		input  string
		answer string
	}{
		{"everything", npmServer(t, "@modelcontextprotocol/server-everything", "stdio"), []string{"protocol", "echo"}, "echo", `{"message":"hello"}`, "hello"},
		{"filesystem", npmServer(t, "@modelcontextprotocol/server-filesystem", dir), []string{"read_text_file"}, "read_text_file", `{"path":"` + dir + `/note.txt"}`, "96 degrees"},
		{"memory", npmServer(t, "@modelcontextprotocol/server-memory"), []string{"create_entities"}, "create_entities", `{"entities":[{"name":"kettle","entityType":"thing","observations":["hot"]}]}`, "kettle"},
		{"thinking", npmServer(t, "@modelcontextprotocol/server-sequential-thinking"), []string{"sequentialthinking"}, "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, "thoughtNumber"},
		{"official", map[string]any{"command": officialServer(t)}, []string{"echo0"}, "echo0", `{"text":"hello"}`, "hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.server["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
			w := newWorld(t, map[string]any{c.name: c.server})
			out := w.ok("mcp", "test", c.name)
			want(t, out, c.tests...)
			want(t, w.ok("mcp", "call", c.name, c.tool, c.input), c.answer)
		})
	}
}

// officialServer builds a server with the official Go SDK.
func officialServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "official")
	if out, err := exec.Command("go", "build", "-o", path, "./official").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestProviderTurn: one turn per provider wire calls a filesystem tool and answers with what was in the file (R-G1, R-G10).
func TestProviderTurn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "note.txt")
	if err := os.WriteFile(file, []byte("the kettle boils at 96 degrees"), 0o600); err != nil {
		t.Fatal(err)
	}
	model := scriptedModel(t, "mcp__files__read_text_file", map[string]any{"path": file})
	w := newWorld(t, map[string]any{"files": npmServer(t, "@modelcontextprotocol/server-filesystem", dir)},
		"ANTHROPIC_API_KEY=x", "ANTHROPIC_BASE_URL="+model, "OPENAI_API_KEY=x", "OPENAI_BASE_URL="+model+"/v1")
	settings := `{"endpoints":{"local":{"base_url":"` + model + `/v1","model":"m"}}}`
	if err := patchFile(filepath.Join(w.home, "settings.json"), settings); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"anthropic", "openai", "local"} {
		t.Run(p, func(t *testing.T) {
			out, stderr, code := w.run("run", "--provider", p, "--model", "m", "--allow", "mcp__files__read_text_file", "what does the note say?")
			if code != 0 || !strings.Contains(out, "The file says: ") || !strings.Contains(out, "96 degrees") {
				t.Errorf("exit %d\n%s%s", code, out, stderr)
			}
		})
	}
}
