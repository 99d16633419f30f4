// Package secret holds our own text that must not leak: a string that prints as
// [redacted] through every verb, and a scrubber that removes known values from text.
package secret

import (
	"fmt"
	"log/slog"
)

// Redacted is what stands in the place of a secret wherever one is formatted.
const Redacted = "[redacted]"

// String is a text that no formatting tells. Its zero value is the empty secret.
type String struct{ v string }

// New wraps v.
func New(v string) String { return String{v: v} }

// Reveal returns the text itself; the only way to it, so that every use can be found by name.
func (s String) Reveal() string { return s.v }

// IsEmpty reports whether there is no text.
func (s String) IsEmpty() bool { return s.v == "" }

// Format writes [redacted] for every verb.
func (s String) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }

// String returns [redacted].
func (s String) String() string { return Redacted }

// GoString returns [redacted].
func (s String) GoString() string { return Redacted }

// MarshalText returns [redacted], which covers JSON, XML and map keys.
func (s String) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// LogValue returns [redacted].
func (s String) LogValue() slog.Value { return slog.StringValue(Redacted) }
