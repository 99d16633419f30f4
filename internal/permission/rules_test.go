package permission

import (
	"strings"
	"testing"
)

// R-G3: deny wins over ask, ask over allow; the zero decision is deny.
func TestDecide(t *testing.T) {
	rules := Rules{
		Allow: []string{"read", "mcp__github__*", "bash", "*_all"},
		Ask:   []string{"mcp__github__delete*", "bash"},
		Deny:  []string{"mcp__github__delete_repo", "*secret*"},
	}
	for _, tc := range []struct {
		name      string
		byDefault Decision
		want      Decision
	}{
		{"read", Deny, Allow},
		{"bash", Allow, Ask},
		{"mcp__github__list", Deny, Allow},
		{"mcp__github__delete_issue", Allow, Ask},
		{"mcp__github__delete_repo", Allow, Deny},
		{"mcp__github__get_secret", Allow, Deny},
		{"mcp__gitlab__list", Ask, Ask},
		{"mcp__gitlab__list", Allow, Allow},
		{"mcp__gitlab__list", Deny, Deny},
		{"mcp__gitlab__list", Decision(99), Deny},
		{"mcp__gitlab__list", Decision(-1), Deny},
		{"Read", Ask, Ask},
		{"delete_all", Ask, Allow},
	} {
		if got := rules.Decide(tc.name, tc.byDefault); got != tc.want {
			t.Errorf("Decide(%q, %v) = %v, want %v", tc.name, tc.byDefault, got, tc.want)
		}
	}
	var zero Decision
	if zero != Deny || (Rules{}).Decide("read", zero) != Deny {
		t.Error("the zero values must deny")
	}
	var answer Answer
	if answer != No {
		t.Error("the zero answer must be no")
	}
	if Deny.String()+Ask.String()+Allow.String()+Decision(7).String() != "denyaskallowdeny" {
		t.Error("decisions must print as the words of the settings")
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "anything", true}, {"**", "x", true},
		{"a", "a", true}, {"a", "A", false}, {"a", "ab", false}, {"a*", "a", true}, {"*a", "bca", true},
		{"*a", "ab", false}, {"a*c", "abcbc", true}, {"a*b*c", "aXbYc", true}, {"a*b*c", "acb", false},
		{"*ab", "aab", true}, {"*aab*", "aaab", true}, {"?", "a", false}, {"?", "?", true}, {"[a]", "a", false},
		{"a.c", "abc", false}, {`\*`, `\x`, true}, {"mcp__github__*", "mcp__github", false},
		{"mcp__github__*", "mcp__github2__x", false},
	} {
		if got := Match(tc.pattern, tc.name); got != tc.want {
			t.Errorf("Match(%q, %q) = %v", tc.pattern, tc.name, got)
		}
	}
	// A hostile pattern must not cost exponential time; this would not end with naive recursion.
	if Match(strings.Repeat("*a", 100)+"b", strings.Repeat("a", 20000)) {
		t.Error("matched without b")
	}
}

func TestValid(t *testing.T) {
	for _, good := range []string{"*", "bash", "mcp__a-b__*", "_editor.dev/tool:x", strings.Repeat("a", maxPatternBytes)} {
		if err := Valid(good); err != nil {
			t.Errorf("Valid(%q): %v", good, err)
		}
	}
	for bad, word := range map[string]string{
		"": "empty", "a b": "wildcard", "a?": "wildcard", "[ab]": "wildcard", "{a,b}": "wildcard", "bash(git *)": "arguments",
		"é": "tool name", "a\x1b": `\x1b`, "\xff": "tool name", strings.Repeat("a", maxPatternBytes+1): "longer",
	} {
		err := Valid(bad)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("Valid(%q) = %v, want an error with %q", bad, err, word)
		}
		if err != nil && (strings.Contains(err.Error(), "\x1b") || strings.Contains(err.Error(), "\xff")) {
			t.Errorf("Valid(%q) repeats raw control bytes", bad) // S27
		}
	}
}

// slowMatch is the obvious definition.
func slowMatch(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	if pattern[0] == '*' {
		for i := 0; i <= len(name); i++ {
			if slowMatch(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	return name != "" && pattern[0] == name[0] && slowMatch(pattern[1:], name[1:])
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"a*b", "ab"}, {"*a*a", "aaa"}, {"**", ""}, {"mcp__*__x", "mcp__s__x"}, {"*aab*", "aaab"}, {"\xff*", "\xff"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 12 || len(name) > 16 {
			return // the reference is exponential
		}
		if got, want := Match(pattern, name), slowMatch(pattern, name); got != want {
			t.Fatalf("Match(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}
