package permission

import (
	"errors"
	"fmt"
)

// maxPatternBytes bounds a pattern: names of tools have at most 64 bytes, so that a longer pattern is a mistake.
const maxPatternBytes = 256

// Match reports whether a pattern matches a tool name. * stands for any run of characters, the empty one too;
// everything else stands for itself, case included. The empty pattern matches nothing but the empty name.
func Match(pattern, name string) bool {
	// Only the last * needs to be remembered: what an earlier one could give, the later one can give too.
	star, resume := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Valid says what is wrong with a pattern that a person wrote. A pattern with characters that no tool name has is
// refused, because a deny rule that silently matches nothing would be worse than an error.
func Valid(pattern string) error {
	if pattern == "" {
		return errors.New("the pattern is empty")
	}
	if len(pattern) > maxPatternBytes {
		return fmt.Errorf("the pattern is longer than %d bytes", maxPatternBytes)
	}
	for _, r := range pattern {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case r == '_' || r == '-' || r == '.' || r == '/' || r == ':' || r == '*':
		case r == '(':
			return fmt.Errorf("pattern %+q: rules match names of tools, not their arguments", pattern)
		default:
			return fmt.Errorf("pattern %+q: %+q occurs in no tool name, and * is the only wildcard", pattern, r)
		}
	}
	return nil
}

func anyMatch(patterns []string, name string) bool {
	for _, p := range patterns {
		if Match(p, name) {
			return true
		}
	}
	return false
}
