package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"magi-code/internal/hook"
	"magi-code/internal/provider"
)

// examples are the blocks of one language in a page of docs.
func examples(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// TestSubagentsPage uses the examples of docs/subagents.md.
func TestSubagentsPage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "reviewer.md"), []byte(examples(t, "subagents.md", "markdown")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	profiles, warnings := LoadProfiles(dir)
	if len(profiles) != 1 || len(profiles[0].Tools) != 4 || len(warnings) != 0 {
		t.Fatalf("profiles %+v, warnings %v", profiles, warnings)
	}
	input, code := examples(t, "subagents.md", "json")[0], examples(t, "subagents.md", "js")[0]
	m := &model{answer: func(_ context.Context, q provider.Request, _ int) ([]provider.Event, error) {
		switch {
		case isChild(q) && strings.Contains(first(q), "tests."):
			return nil, fmt.Errorf("no model today")
		case isChild(q):
			return says("did: " + first(q)[:5]), nil
		case len(q.Messages) == 1:
			return calls("subagents", input, "code_mode", script(code)), nil
		}
		return says("ok"), nil
	}}
	conv, _ := converse(t, Config{Provider: m, Profiles: profiles})
	send(t, conv, "go")
	got := results(m.seen()[len(m.seen())-1])
	if text := got["c1"].Content[0].Text; strings.Count(text, "(done)") != 3 || !strings.Contains(text, "## 3. issues (done)\n\ndid: List") {
		t.Errorf("tasks: %s", text)
	}
	var returned []string
	if err := json.Unmarshal([]byte(got["c2"].Content[0].Text), &returned); err != nil || fmt.Sprint(returned) != "[did: Count task 2 failed: no model today]" {
		t.Errorf("script: %v, %v", returned, err)
	}
}

// TestHooksPage uses the examples of docs/hooks.md: its document is one that we send, its scripts do what it says.
func TestHooksPage(t *testing.T) {
	documents := examples(t, "hooks.md", "json")
	var p hook.Payload
	if err := json.Unmarshal([]byte(documents[1]), &p, json.RejectUnknownMembers(true)); err != nil || p.Tool != "bash" || p.Event != hook.BeforeTool {
		t.Fatalf("payload %+v, %v", p, err)
	}
	if runtime.GOOS == "windows" {
		return // the scripts are for a shell
	}
	scripts := examples(t, "hooks.md", "sh")
	home := t.TempDir()
	run := func(script string, p hook.Payload) (warnings []string, refusal string) {
		file := filepath.Join(home, "hook")
		if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		r := hook.NewRunner([]hook.Hook{{Event: p.Event, Command: []string{file}, Block: true}}, home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")})
		return r.Run(t.Context(), p)
	}
	if _, refusal := run(scripts[0], p); !strings.Contains(refusal, "needs a person") {
		t.Errorf("refusal %q", refusal)
	}
	p.Input = []byte(`{"intent":"x","command":"git push"}`)
	if _, refusal := run(scripts[0], p); refusal != "" {
		t.Errorf("refusal %q", refusal)
	}
	p.Event = hook.AfterTool
	if warnings, _ := run(scripts[1], p); len(warnings) != 0 {
		t.Errorf("warnings %q", warnings)
	}
	data, err := os.ReadFile(filepath.Join(home, "magi-code-calls.jsonl"))
	if err != nil || !strings.Contains(string(data), `"command":"git push"`) {
		t.Errorf("record %s, %v", data, err)
	}
}
