package cli

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Fake secrets of every kind; none may be seen anywhere but where it belongs (R-D5, S34).
const (
	canaryEnv     = "canary-env-4f1c9a7be2"
	canaryHeader  = "canary-header-81d0c3aa57"
	canaryQuery   = "canary-query-5e2b90f6cd"
	canaryArg     = "canary-arg-c07ad1e43b"
	canaryKey     = "canary-key-93be7f21d8"
	canaryAuth    = "canary-auth-d8e0517ac2"
	canaryLiteral = "canary-literal-6a6fd0b914"
)

func canaries() []string {
	return []string{canaryEnv, canaryHeader, canaryQuery, canaryArg, canaryKey, canaryAuth, canaryLiteral}
}

// leaks returns which canaries, or encodings of them, stand in b.
func leaks(b []byte) (found []string) {
	for _, c := range canaries() {
		for form, text := range map[string]string{
			"plain": c, "URL": url.QueryEscape(c), "base64": base64.StdEncoding.EncodeToString([]byte(c)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(c)),
		} {
			if bytes.Contains(b, []byte(text)) {
				found = append(found, c+" ("+form+")")
			}
		}
	}
	return found
}

// TestNoSecretAnywhere runs every command and failure path with fake secrets in the environment, in headers, in a query, in arguments
// and in literals, and looks for them in all output, in every file of the home, and in what the provider was sent.
func TestNoSecretAnywhere(t *testing.T) {
	zoo := buildZoo(t)
	home, project := t.TempDir(), t.TempDir()
	var sent bytes.Buffer
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = sent.ReadFrom(http.MaxBytesReader(w, r.Body, 16<<20))
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"type":"authentication_error","message":"bad key ` + canaryKey + `"}}`))
	}))
	defer model.Close()
	doc := `{"mcpServers": {
	  "good":   {"command": "` + zoo + `", "args": ["good", "--token=${SECRET_ARG}"], "env": {"SECRET": "${SECRET_ENV}", "LITERAL": "` + canaryLiteral + `"}},
	  "dies":   {"command": "` + zoo + `", "args": ["exit-early", "--token=${SECRET_ARG}"], "env": {"SECRET": "${SECRET_ENV}"}},
	  "absent": {"command": "/does/not/exist-${SECRET_ARG}", "env": {"SECRET": "${SECRET_ENV}"}},
	  "fails":  {"command": "` + zoo + `", "args": ["error-secrets"], "env": {"SECRET": "${SECRET_ENV}"}},
	  "remote": {"type": "http", "url": "http://127.0.0.1:1/mcp?key=${SECRET_QUERY}", "headers": {"Authorization": "Bearer ${SECRET_HEADER}"}, "timeout": 2},
	  "bad":    {"type": "http", "url": "https://mcp.example.com/", "headers": {"X-Bad": "${SECRET_BROKEN}"}},
	  "nourl":  {"type": "http", "url": "${SECRET_QUERY}://x/"}
	}}`
	writeFile(t, filepath.Join(project, ".mcp.json"), doc)
	writeFile(t, filepath.Join(home, "auth.json"), `{"openai": "`+canaryAuth+`"}`)
	env := append(os.Environ(), "MC_HOME="+home, "HOME="+t.TempDir(), "SECRET_ENV="+canaryEnv, "SECRET_HEADER="+canaryHeader, "SECRET_QUERY="+canaryQuery,
		"SECRET_ARG="+canaryArg, "SECRET_BROKEN=x\r\n"+canaryHeader, "ANTHROPIC_API_KEY="+canaryKey, "ANTHROPIC_BASE_URL="+model.URL, "OPENAI_BASE_URL="+model.URL)
	run := func(args ...string) string {
		cmd := exec.Command("magi-code", args...)
		cmd.Dir, cmd.Env = project, env
		out, _ := cmd.CombinedOutput() // many of these fail, which is the point
		if found := leaks(out); found != nil {
			t.Errorf("magi-code %s tells %v:\n%s", strings.Join(args, " "), found, out)
		}
		return string(out)
	}
	all := []string{"good", "dies", "absent", "fails", "remote", "bad", "nourl"}
	for _, name := range all {
		run("mcp", "get", name)
		run("mcp", "get", name, "--json")
		run("mcp", "approve", name, "--fingerprint", fingerprint(run("mcp", "get", name, "--json")))
	}
	run("mcp", "list")
	run("mcp", "list", "--json")
	for _, name := range all {
		run("mcp", "test", name)
		run("mcp", "test", name, "--json")
	}
	if out := run("mcp", "call", "good", "env", "{}"); !strings.Contains(out, "SECRET=[redacted]") {
		t.Errorf("the server's own environment dump shows no redacted value:\n%s", out)
	}
	run("mcp", "call", "good", "env", "{}", "--json")
	if out := run("mcp", "call", "fails", "echo", "{}"); !strings.Contains(out, "SECRET=[redacted]") {
		t.Errorf("the error shows no redacted value:\n%s", out)
	}
	run("__complete", "mcp", "call", "good", "")
	run("mcp", "login", "remote")
	run("mcp", "logout", "remote")
	run("mcp", "remove", "nowhere")
	run("mcp", "add", "good", "--", "x")
	for _, name := range all[1:] {
		run("mcp", "revoke", name)
	}
	if out := run("run", "--provider", "offline", "--allow", "*", "call mcp__good__env {}"); !strings.Contains(out, "[redacted]") {
		t.Errorf("the turn shows no redacted value:\n%s", out)
	}
	// bash shows the user's own environment; only what magi-code knows as a secret can be removed from it.
	env = slices.DeleteFunc(env, func(kv string) bool {
		return strings.HasPrefix(kv, "SECRET_HEADER=") || strings.HasPrefix(kv, "SECRET_QUERY=") || strings.HasPrefix(kv, "SECRET_BROKEN=")
	})
	run("run", "--provider", "offline", "--json", "--allow", "*", "call mcp__good__env {}")
	run("run", "--provider", "offline", "--allow", "*", `call bash {"command": "env"}`)
	run("run", "--provider", "anthropic", "--model", "m", "hello")
	run("run", "--provider", "openai", "--model", "m", "hello")
	run("run", "--provider", "nothing", "hello")
	if found := leaks(sent.Bytes()); found != nil {
		t.Errorf("the provider was sent %v", found)
	}
	_ = filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "auth.json" {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			if found := leaks(b); found != nil {
				t.Errorf("%s holds %v", path, found)
			}
		}
		return nil
	})
}

func fingerprint(getJSON string) string {
	_, rest, _ := strings.Cut(getJSON, `"fingerprint": "`)
	f, _, _ := strings.Cut(rest, `"`)
	return f
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
