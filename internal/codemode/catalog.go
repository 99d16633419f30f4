package codemode

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"magi-code/internal/untrusted"
)

const (
	// maxSummary is how many bytes of a description list and search give; describe gives all.
	maxSummary = 300
	// defaultHits and maxHits are how many tools a search gives.
	defaultHits, maxHits = 10, 50
	// maxQuery is how many bytes of a query are looked at.
	maxQuery = 2 << 10
	// maxTerms is how many words of a query count.
	maxTerms = 20
)

// catalog is what a script can ask about the tools. Its index is made when the first question comes.
type catalog struct {
	tools []ToolInfo
	lower []ToolInfo // names and descriptions in lower case, for search
}

func (s *script) catalog() *catalog {
	if s.index == nil {
		s.index = &catalog{tools: s.host.Tools}
	}
	return s.index
}

func summary(t ToolInfo) ToolInfo {
	return ToolInfo{Name: t.Name, Description: untrusted.Head(t.Description, maxSummary)}
}

func (c *catalog) list() []ToolInfo {
	out := make([]ToolInfo, 0, len(c.tools))
	for _, t := range c.tools {
		out = append(out, summary(t))
	}
	return out
}

func (c *catalog) describe(name string) (ToolInfo, error) {
	for _, t := range c.tools {
		if t.Name == name {
			return t, nil
		}
	}
	if hits := c.search(name, 3); len(hits) > 0 {
		return ToolInfo{}, fmt.Errorf("there is no tool of this name; the closest is %s", hits[0].Name)
	}
	return ToolInfo{}, errors.New("there is no tool of this name")
}

// search ranks tools by how well their names, then their descriptions, hold the words of a query.
func (c *catalog) search(query string, limit float64) []ToolInfo {
	hits := defaultHits
	if limit >= 1 {
		hits = int(min(limit, maxHits))
	}
	if c.lower == nil {
		c.lower = make([]ToolInfo, len(c.tools))
		for i, t := range c.tools {
			c.lower[i] = ToolInfo{Name: strings.ToLower(t.Name), Description: strings.ToLower(t.Description)}
		}
	}
	terms := strings.FieldsFunc(strings.ToLower(untrusted.Head(query, maxQuery)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(terms) > 1 { // single letters are in every name
		terms = slices.DeleteFunc(terms, func(term string) bool { return len(term) == 1 })
	}
	terms = terms[:min(len(terms), maxTerms)]
	type hit struct{ at, score int }
	var found []hit
	for i, t := range c.lower {
		if n := score(t, terms); n > 0 {
			found = append(found, hit{i, n})
		}
	}
	slices.SortStableFunc(found, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	out := make([]ToolInfo, 0, hits)
	for _, h := range found[:min(len(found), hits)] {
		out = append(out, summary(c.tools[h.at]))
	}
	return out
}

// score of a tool for the words: a word that is a whole part of the name counts most, one in the description least.
func score(t ToolInfo, terms []string) (n int) {
	parts := strings.FieldsFunc(t.Name, func(r rune) bool { return r == '_' || r == '-' })
	for _, term := range terms {
		switch {
		case slices.Contains(parts, term):
			n += 10
		case strings.Contains(t.Name, term):
			n += 5
		case strings.Contains(t.Description, term):
			n += 2
		}
	}
	return n
}
