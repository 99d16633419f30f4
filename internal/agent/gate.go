package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"magi-code/internal/permission"
	"magi-code/internal/tool"
)

// Names of the tools that belong to a run and are made here, not in package builtin.
const (
	codeModeName  = "code_mode"
	subagentsName = "subagents"
)

// Gate holds the permission rules of the process: those of settings and flags, and those granted for this session.
// Its methods may be called concurrently.
type Gate struct {
	rules  permission.Rules
	always func(ctx context.Context, pattern string) error

	mu      sync.Mutex
	granted map[string]bool
}

// NewGate makes a gate; always, when not nil, is called to write a permanent allow rule.
func NewGate(rules permission.Rules, always func(ctx context.Context, pattern string) error) *Gate {
	return &Gate{rules: rules, always: always, granted: map[string]bool{}}
}

// Grant allows a tool until the program ends. A deny rule still wins.
func (g *Gate) Grant(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.granted[name] = true
}

// Granted returns the names of the tools that were allowed until the program ends, in their order.
func (g *Gate) Granted() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.granted))
}

// grantAlways allows a tool now and writes the rule that allows it from now on.
func (g *Gate) grantAlways(ctx context.Context, name string) error {
	g.Grant(name)
	if g.always == nil {
		return fmt.Errorf("no settings file to write the rule to")
	}
	return g.always(ctx, name)
}

// decide says what the rules and the grants of this session make of a tool.
func (g *Gate) decide(t tool.Tool) permission.Decision {
	d := g.rules.Decide(t.Name, defaultDecision(t))
	if d != permission.Ask {
		return d
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.granted[t.Name] {
		return permission.Allow
	}
	return permission.Ask
}

// deniedBy returns the deny rule that matches a tool name, "" when there is none.
func (g *Gate) deniedBy(name string) string {
	return firstMatch(g.rules.Deny, name)
}

// askedBy returns the ask rule that matches a tool name, "" when there is none.
func (g *Gate) askedBy(name string) string {
	return firstMatch(g.rules.Ask, name)
}

// defaultDecision is what holds for a tool that no rule names: what only reads runs, everything else is asked about.
// code_mode and subagents run because each call that they make passes the gate by itself. What a server says about
// its own tools counts for nothing here.
func defaultDecision(t tool.Tool) permission.Decision {
	if t.Origin != tool.Builtin {
		return permission.Ask
	}
	if t.ReadOnly || t.Name == codeModeName || t.Name == subagentsName {
		return permission.Allow
	}
	return permission.Ask
}

// firstMatch returns the first pattern that matches name, "" when none does.
func firstMatch(patterns []string, name string) string {
	for _, p := range patterns {
		if permission.Match(p, name) {
			return p
		}
	}
	return ""
}
