package offline

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/tool"
)

// Points of a word that the prompt shares with a tool, and how many make a choice.
const (
	pointsName        = 3
	pointsServer      = 2
	pointsDescription = 1
	pointsNeeded      = 2
	// shortStem is the length in bytes from which a word also matches a longer one that starts with it.
	shortStem = 4
	// maxDescribed is how much of a description is looked at, in bytes: what a tool is for stands at its front.
	maxDescribed = 400
)

// improvise answers a prompt in natural language: one call, or a list of what there is to call.
func improvise(a *answer, prompt string, tools []tool.Tool) {
	best, points := choose(prompt, tools)
	if points < pointsNeeded {
		a.say("This is the offline planner of magi-code, not a model: it only calls tools, and found none that fits. " + list(tools) +
			` A line such as: call TOOL {"name": "value"} calls one.`)
		return
	}
	arguments := fill(best, prompt)
	encoded, err := json.Marshal(arguments, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		encoded = []byte("{}")
	}
	a.say("The offline planner calls " + best.Name + ".")
	a.call(best, input(best, string(encoded)))
}

// choose returns the tool with most points; of several, the one with the fewest words that the prompt does not have,
// then the first.
func choose(prompt string, tools []tool.Tool) (best tool.Tool, points int) {
	said := tokens(prompt)
	said = slices.DeleteFunc(said, func(w string) bool { return common(w) })
	foreign := 0
	for _, t := range tools {
		name, server := tokens(t.Name), tokens(t.Server)
		if t.Remote != "" {
			name = tokens(t.Remote)
		}
		n, hits := 0, 0
		described := tokens(t.Description[:min(len(t.Description), maxDescribed)])
		for _, w := range said {
			switch {
			case has(name, w):
				n += pointsName
				hits++
			case has(server, w):
				n += pointsServer
			case has(described, w):
				n += pointsDescription
			}
		}
		if n > points || n == points && n > 0 && len(name)-hits < foreign {
			best, points, foreign = t, n, len(name)-hits
		}
	}
	return best, points
}

func has(list []string, w string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		short, long := s, w
		if len(short) > len(long) {
			short, long = long, short
		}
		return s == w || len(short) >= shortStem && strings.HasPrefix(long, short)
	})
}

// tokens are the distinct words of a text or name in lower case; camelCase counts as two.
func tokens(s string) []string {
	var out []string
	var word strings.Builder
	flush := func() {
		if w := strings.ToLower(word.String()); w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
		word.Reset()
	}
	lower := false
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.IsUpper(r) && lower {
			flush()
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			word.WriteRune(r)
		}
		lower = unicode.IsLower(r)
	}
	flush()
	return out
}

// common are words that say nothing about which tool is meant.
func common(w string) bool {
	switch w {
	case "a", "an", "the", "of", "to", "in", "on", "at", "and", "or", "with", "for", "from", "by", "is", "are", "it", "this", "that",
		"me", "my", "i", "you", "please", "can", "could", "would", "use", "using", "call", "tool", "tools", "what", "which", "how",
		"do", "does", "be", "as", "if", "then", "all", "any":
		return true
	}
	return len(w) == 1
}
