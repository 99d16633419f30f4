// Package permission decides whether a tool may be called: allow, ask or deny, by name pattern; deny wins.
package permission

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
)

// Decision is what the rules say. Its zero value is Deny.
type Decision int

const (
	Deny Decision = iota
	Ask
	Allow
)

// Rules are name patterns ("mcp__github__*", "bash"; * matches any run of characters). Deny wins over
// Ask, Ask over Allow; a name that no pattern matches gets the given default.
type Rules struct {
	Allow, Ask, Deny []string
}

// Decide returns what the rules say of a tool; byDefault is for a name that no rule matches.
func (r Rules) Decide(name string, byDefault Decision) Decision { panic("to be built") }

// Match reports whether a pattern matches a tool name.
func Match(pattern, name string) bool { panic("to be built") }

// Question is what a person is asked; every word shown around it is ours.
type Question struct {
	Tool   string         // the advertised name
	Server string         // MCP: the raw server name
	Remote string         // MCP: the raw tool name
	Intent string         // the model's stated reason, untrusted
	Input  jsontext.Value // the whole call, untrusted
	Diff   string         // for edits: what would change
	Path   []string       // subagent path, outermost first; empty for the main run
}

// Answer is what the person said. Its zero value is No.
type Answer int

const (
	No      Answer = iota
	Once           // this call
	Session        // this tool until the program ends
	Always         // write an allow rule into the global settings
)

// Asker puts a question to a person. A nil Asker means that nobody can be asked, which is a refusal.
type Asker func(ctx context.Context, q Question) (Answer, error)
