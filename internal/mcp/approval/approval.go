// Package approval holds what the user allowed: the key, the digest, the states, and Check, which yields the
// only Approved there is.
package approval

import (
	"context"

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
func (s State) String() string { panic("to be built") }

// Store is the global settings.json and the key file of one MC_HOME.
type Store struct{ home string }

// NewStore uses $MC_HOME.
func NewStore(home string) *Store { return &Store{home: home} }

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

// Check reads settings and key once and returns the state of every definition, in order. It creates no key. An unusable
// key file (mode, kind, form) is an error; a missing one makes approved entries RenewalRequired.
func (s *Store) Check(servers []definition.Server) ([]Entry, error) { panic("to be built") }

// Approved returns the proof of an entry that is approved.
func (e Entry) Approved() (Approved, bool) { panic("to be built") }

// View is what a person sees before they decide; Approve and Revoke take it back.
type View struct {
	Server      definition.Server
	State       State
	Fingerprint string // 64 lowercase hex: the digest that approval would store
}

// Review returns the view of a definition, making the key when there is none.
func (s *Store) Review(ctx context.Context, d definition.Server) (View, error) {
	panic("to be built")
}

// Approve stores the approval after reading and parsing the definition's file again, comparing the fingerprint, and
// expanding and checking it. A changed definition is a *StaleError; nothing is saved on any error.
func (s *Store) Approve(ctx context.Context, v View, lookup func(string) (string, bool)) error {
	panic("to be built")
}

// Revoke stores false for the definition's source and name. It works for definitions that no longer parse or exist.
func (s *Store) Revoke(ctx context.Context, source, name string) error { panic("to be built") }

// StaleError says that the definition changed after it was shown.
type StaleError struct{ Server, Source string }

// Error tells what to do.
func (e *StaleError) Error() string { panic("to be built") }
