package definition

import (
	"errors"
	"strings"
)

// part is a piece of a value: literal text, or a reference to a variable.
type part struct {
	literal  string
	name     string // of the variable; "" for literal text
	fallback string
	hasElse  bool // ${NAME:-fallback}
}

var (
	errUnterminated = errors.New(`a reference that begins with ${ has no closing }`)
	errIllNamed     = errors.New(`a reference is not of the form ${NAME} or ${NAME:-fallback}`)
)

// split cuts a value into its parts. References are ${NAME} and ${NAME:-fallback}, where the fallback runs to the
// first closing brace; everything else is literal, $NAME too.
func split(value string) ([]part, error) {
	var parts []part
	for {
		before, rest, found := strings.Cut(value, "${")
		if before != "" {
			parts = append(parts, part{literal: before})
		}
		if !found {
			return parts, nil
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, errUnterminated
		}
		name, fallback, hasElse := strings.Cut(inside, ":-")
		if !isVariable(name) {
			return nil, errIllNamed
		}
		parts = append(parts, part{name: name, fallback: fallback, hasElse: hasElse})
		value = after
	}
}

// isVariable reports whether name can be the name of a variable: [A-Za-z_][A-Za-z0-9_]*.
func isVariable(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
