// Package permission decides whether a tool may be called: allow, ask or deny, by name pattern; deny wins.
package permission

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
)

// Decision is what the rules say. Its zero value is Deny.
type Decision int

const (
	Deny  Decision = iota // the call is refused
	Ask                   // a person decides
	Allow                 // the call goes on
)

// String returns the word that settings use.
func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// Rules are name patterns ("mcp__github__*", "bash"; * matches any run of characters). Deny wins over
// Ask, Ask over Allow; a name that no pattern matches gets the given default.
type Rules struct {
	Allow, Ask, Deny []string
}

// Decide returns what the rules say of a tool; byDefault is for a name that no rule matches. Anything but Ask
// and Allow as the default counts as Deny.
func (r Rules) Decide(name string, byDefault Decision) Decision {
	switch {
	case anyMatch(r.Deny, name):
		return Deny
	case anyMatch(r.Ask, name):
		return Ask
	case anyMatch(r.Allow, name):
		return Allow
	case byDefault == Ask || byDefault == Allow:
		return byDefault
	}
	return Deny
}

// Question is what a person is asked; every word shown around it is ours.
type Question struct {
	Tool   string         // the advertised name
	Server string         // MCP: the raw server name
	Remote string         // MCP: the raw tool name
	Intent string         // the model's stated reason, untrusted
	Input  jsontext.Value // the whole call, untrusted
	Diff   string         // for edits: what would change
	Path   []string       // subagent path, outermost first; empty for the main run

	// Protected calls touch files that decide what may run: only a person answers, each time, and no mode does it for them.
	Protected bool
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
