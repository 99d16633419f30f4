package builtin

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

const (
	maxGlob         = 1024 // bytes of a pattern
	maxAlternatives = 64   // what {a,b} may multiply to
)

// glob is a compiled file pattern: * and ? within a name, ** over any number of folders, [a-z], {a,b}. A pattern without
// a slash is one for names at any depth.
type glob struct{ alternatives [][]string }

func compileGlob(pattern string) (glob, error) {
	if len(pattern) > maxGlob {
		return glob{}, fmt.Errorf("the pattern is longer than %d bytes", maxGlob)
	}
	for strings.HasPrefix(pattern, "./") {
		pattern = pattern[2:]
	}
	if pattern == "" {
		return glob{}, errors.New("the pattern is empty")
	}
	if strings.HasPrefix(pattern, "/") {
		return glob{}, errors.New("the pattern begins with /; give the folder as path and a pattern relative to it")
	}
	expanded, err := expandBraces(pattern)
	if err != nil {
		return glob{}, err
	}
	var g glob
	for _, alternative := range expanded {
		if !strings.Contains(alternative, "/") {
			alternative = "**/" + alternative
		}
		segments := strings.Split(strings.TrimSuffix(alternative, "/"), "/")
		for _, s := range segments {
			if _, err := path.Match(s, ""); err != nil {
				return glob{}, fmt.Errorf("the pattern %q is malformed: a [ or \\ is not closed", pattern)
			}
		}
		g.alternatives = append(g.alternatives, segments)
	}
	return g, nil
}

// expandBraces replaces every {a,b} by its alternatives. A brace without its partner stands for itself.
func expandBraces(pattern string) ([]string, error) {
	work, done := []string{pattern}, []string(nil)
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		from, to, commas := firstBraces(p)
		if to < 0 {
			done = append(done, p)
		}
		for i := 0; to >= 0 && i+1 < len(commas); i++ {
			work = append(work, p[:from]+p[commas[i]+1:commas[i+1]]+p[to+1:])
		}
		if len(work)+len(done) > maxAlternatives {
			return nil, fmt.Errorf("the braces of the pattern make more than %d alternatives", maxAlternatives)
		}
	}
	return done, nil
}

// firstBraces finds the first outermost pair of braces with a comma in it, and the places of the opening brace, the
// commas and the closing brace; to is -1 when there is none.
func firstBraces(p string) (from, to int, marks []int) {
	for start := range len(p) {
		if p[start] != '{' || start > 0 && p[start-1] == '\\' {
			continue
		}
		depth, marks := 0, []int{start}
		for i := start; i < len(p); i++ {
			switch p[i] {
			case '\\':
				i++
			case '{':
				depth++
			case ',':
				if depth == 1 {
					marks = append(marks, i)
				}
			case '}':
				depth--
			}
			if depth == 0 {
				if len(marks) > 1 {
					return start, i, append(marks, i)
				}
				break
			}
		}
	}
	return 0, -1, nil
}

// match reports whether a path with slashes, relative to the folder that is searched, fits.
func (g glob) match(name string) bool {
	parts := strings.Split(name, "/")
	for _, segments := range g.alternatives {
		if matchSegments(segments, parts) {
			return true
		}
	}
	return false
}

// matchSegments is permission.Match on whole names: only the last ** has to be remembered.
func matchSegments(pattern, parts []string) bool {
	star, resume := -1, 0
	p, n := 0, 0
	for n < len(parts) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, resume = p, n
			p++
		case p < len(pattern) && matchName(pattern[p], parts[n]):
			p++
			n++
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}

func matchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
