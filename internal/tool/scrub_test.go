package tool

import (
	"testing"

	"magi-code/internal/secret"
)

// TestScrubbed: what tears a secret apart does not carry it past the scrubber, and harmless escapes are kept (R-D5).
func TestScrubbed(t *testing.T) {
	s := secret.NewScrubber(secret.New("hunter2-hunter2"))
	for in, want := range map[string]string{
		"plain":                            "plain",
		"a \x1b[1mbold\x1b[0m word":        "a \x1b[1mbold\x1b[0m word",
		"x hunter2-hunter2 \x1b[1my":       "x [redacted] \x1b[1my",
		"x \x1b[31mhunter2\x1b[0m-hunter2": "x [redacted]",
		"hunter2-\u200bhunter2\u202e":      "[redacted]",
		"hunter2\x00-hunter2":              "[redacted]",
	} {
		if got := Scrubbed(s, in); got != want {
			t.Errorf("%q: %q", in, got)
		}
		if got := Scrubbed(nil, in); got != in {
			t.Errorf("nobody knows a secret, %q: %q", in, got)
		}
	}
}
