// Package secret holds our own text that must not leak: a string that prints as
// [redacted] through every verb, and a scrubber that removes known values from text.
package secret

import (
	"fmt"
	"log/slog"
	"unique"
)

// Redacted is what stands in the place of a secret wherever one is formatted.
const Redacted = "[redacted]"

// String is a text that no formatting tells. Its zero value is the empty secret; two
// Strings are equal (==) when their texts are.
type String struct {
	// A handle and not the text: package fmt calls no methods on unexported fields, so a
	// struct that holds a String in one is printed by reflection, which then finds a pointer.
	h unique.Handle[string]
}

// New wraps v.
func New(v string) String {
	if v == "" {
		return String{}
	}
	return String{h: unique.Make(v)}
}

// Reveal returns the text itself; the only way to it, so that every use can be found by name.
func (s String) Reveal() string {
	if s.IsEmpty() {
		return ""
	}
	return s.h.Value()
}

// IsEmpty reports whether there is no text.
func (s String) IsEmpty() bool { return s == String{} }

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
