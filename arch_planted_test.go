package main

import (
	"strings"
	"testing"
)

// TestRulesFail plants one violation of each rule and sees it found.
func TestRulesFail(t *testing.T) {
	long := "package x\n\nfunc f() {\n" + strings.Repeat("\tprintln()\n", maxFileLines) + "}\n"
	for _, c := range []struct{ name, rule, path, src string }{
		{"upward import", "imports", "internal/tool/x.go", "package tool\nimport _ \"magi-code/internal/mcp\"\n"},
		{"agent on mcp", "imports", "internal/agent/x.go", "package agent\nimport _ \"magi-code/internal/mcp\"\n"},
		{"mcp on settings", "imports", "internal/mcp/x.go", "package mcp\nimport _ \"magi-code/internal/settings\"\n"},
		{"sibling providers", "imports", "internal/provider/openai/x.go", "package openai\nimport _ \"magi-code/internal/provider/anthropic\"\n"},
		{"fence", "imports", "internal/agent/x.go", "package agent\nimport _ \"os/exec\"\n"},
		{"official client", "imports", "internal/cli/x.go", "package cli\nimport _ \"github.com/modelcontextprotocol/go-sdk/mcp\"\n"},
		{"test peers in product", "imports", "internal/cli/x.go", "package cli\nimport _ \"magi-code/internal/mcp/mcptest\"\n"},
		{"main past cli", "imports", "x.go", "package main\nimport _ \"magi-code/internal/agent\"\n"},
		{"package name", "names", "internal/util/x.go", "package util\n"},
		{"depth", "names", "internal/a/b/c/x.go", "package c\n"},
		{"variable", "variables", "internal/agent/x.go", "package agent\nvar cache = map[string]int{}\n"},
		{"go statement", "calls", "internal/agent/x.go", "package agent\nfunc f() { go f() }\n"},
		{"background", "calls", "internal/agent/x.go", "package agent\nimport \"context\"\nvar _ = context.Background()\n"},
		{"sleep in test", "calls", "internal/agent/x_test.go", "package agent\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"},
		{"sleep", "calls", "internal/agent/x.go", "package agent\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"},
		{"stdout", "calls", "internal/agent/x.go", "package agent\nimport \"os\"\nvar _ = os.Stdout\n"},
		{"environment", "calls", "internal/mcp/x.go", "package mcp\nimport \"os\"\nvar _ = os.Getenv(\"X\")\n"},
		{"default client", "calls", "internal/cli/x.go", "package cli\nimport \"net/http\"\nvar _ = http.DefaultClient\n"},
		{"unbounded read", "calls", "internal/mcp/x.go", "package mcp\nimport \"io\"\nfunc f(r io.Reader) { io.ReadAll(r) }\n"},
		{"error text", "calls", "internal/mcp/x.go", "package mcp\nfunc f(err error) bool { return err.Error() == \"x\" }\n"},
		{"error text searched", "calls", "internal/mcp/x.go", "package mcp\nimport \"strings\"\nfunc f(err error) bool { return strings.Contains(err.Error(), \"x\") }\n"},
		{"login in a run", "calls", "internal/mcp/x.go", "package mcp\nimport \"magi-code/internal/mcp/oauth\"\nvar _ = oauth.Login\n"},
		{"long file", "size", "internal/agent/x.go", long},
		{"long function", "size", "internal/agent/x.go", long[:len("package x\n\nfunc f() {\n")+(maxFuncLines+1)*len("\tprintln()\n")] + "}\n"},
		{"undocumented function", "docs", "internal/agent/x.go", "package agent\nfunc F() {}\n"},
		{"undocumented type", "docs", "internal/agent/x.go", "package agent\ntype T int\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if found := rules[c.rule](parse(t, c.path, c.src)); len(found) == 0 {
				t.Errorf("rule %q does not see it", c.rule)
			}
		})
	}
}

// TestRulesPass: what the rules allow is not reported.
func TestRulesPass(t *testing.T) {
	for _, c := range []struct{ rule, path, src string }{
		{"imports", "internal/mcp/x.go", "package mcp\nimport _ \"magi-code/internal/mcp/stdio\"\n"},
		{"imports", "internal/provider/openai/x.go", "package openai\nimport _ \"magi-code/internal/provider\"\n"},
		{"variables", "internal/agent/x.go", "package agent\nimport \"errors\"\nvar ErrX = errors.New(\"x\")\n"},
		{"calls", "internal/cli/x.go", "package cli\nimport \"os\"\nvar _ = os.Stdout\n"},
		{"calls", "internal/mcp/x.go", "package mcp\nimport \"io\"\nfunc f(r io.Reader) { io.ReadAll(io.LimitReader(r, 1)) }\n"},
		{"docs", "internal/agent/x.go", "package agent\n// F does.\nfunc F() {}\n"},
	} {
		if found := rules[c.rule](parse(t, c.path, c.src)); len(found) != 0 {
			t.Errorf("%s: %v", c.path, found)
		}
	}
}
