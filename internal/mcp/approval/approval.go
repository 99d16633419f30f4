// Package approval holds what the user allowed: the key, the digest, the states, and Check, which yields the
// only Approved there is.
//
// Records live in the global settings.json at capabilities.mcp_approvals[source][name]. The digest in a record is
// HMAC-SHA-256, under the key of this MC_HOME, over source, name and canonical definition; so it tells nothing of the definition, cannot be made
// without the key, and changes with every significant change. The key file holds the 32 bytes themselves, nothing else.
package approval

import (
	"fmt"
	"path/filepath"

	"magi-code/internal/mcp/definition"
)

// State is where a definition stands. Its zero value is NeverApproved; only IsApproved runs.
type State int

const (
	NeverApproved State = iota
	IsApproved
	Revoked
	Changed         // the definition is not the one that was approved
	RenewalRequired // unbound true, unsupported version, or the key is gone
	Invalid         // malformed entry
)

// String returns "approved", "never approved", "revoked", "definition changed", "renewal required" or "invalid".
func (s State) String() string {
	switch s {
	case NeverApproved:
		return "never approved"
	case IsApproved:
		return "approved"
	case Revoked:
		return "revoked"
	case Changed:
		return "definition changed"
	case RenewalRequired:
		return "renewal required"
	}
	return "invalid"
}

// Store is the global settings.json and the key file of one MC_HOME.
type Store struct{ home string }

// NewStore uses $MC_HOME.
func NewStore(home string) *Store { return &Store{home: home} }

// settingsPath is the file with the records.
func (s *Store) settingsPath() string { return filepath.Join(s.home, "settings.json") }

// keyPath is the file with the key.
func (s *Store) keyPath() string { return filepath.Join(s.home, "mcp-approval.key") }

// Entry is a definition with its state.
type Entry struct {
	Server definition.Server
	State  State
	ok     bool
}

// Approved is the proof that a definition was approved in exactly this form. Only Check makes one; the
// zero value is refused by whoever starts servers.
type Approved struct{ server definition.Server }

// Definition returns the very definition that was checked; ok is false for the zero value.
func (a Approved) Definition() (s definition.Server, ok bool) { return a.server, a.server.Name != "" }

// Format writes the definition's name, type and source, for every verb.
func (a Approved) Format(f fmt.State, verb rune) { a.server.Format(f, verb) }

// Format writes the definition's name, type and source, and the state, for every verb.
func (e Entry) Format(f fmt.State, verb rune) {
	e.Server.Format(f, verb)
	_, _ = f.Write([]byte(": " + e.State.String()))
}

// Approved returns the proof of an entry that is approved.
func (e Entry) Approved() (Approved, bool) {
	if !e.ok || e.State != IsApproved || e.Server.Name == "" {
		return Approved{}, false
	}
	return Approved{server: e.Server}, true
}

// View is what a person sees before they decide; Approve and Revoke take it back.
type View struct {
	Server      definition.Server
	State       State
	Fingerprint string // 64 lowercase hex: the digest that approval would store
}

// StaleError says that the definition changed after it was shown.
type StaleError struct{ Server, Source string }

// Error tells what to do.
func (e *StaleError) Error() string {
	return fmt.Sprintf("server %q: its definition in %q is not the one that was shown; look at it again, then approve it", e.Server, e.Source)
}
