package codemode

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// attack is a script that wants out, or wants to stay. It ends with a value or with an error that says something.
type attack struct{ name, source, value, err string }

// TestAttacks: every one of them ends cleanly, soon, and in the words that it should. // S33 R-G5
func TestAttacks(t *testing.T) {
	groups := [][]attack{attacksOnTheBridge(), attacksOnTheEnd()}
	if underRace {
		// The detector makes the engine fifty times slower, so that its limits are reached in minutes. What it can
		// find, the engine's watcher and the calls, the first attacks on time show.
		groups = append(groups, attacksOnTime()[:4])
	} else {
		groups = append(groups, attacksOnTime(), attacksOnMemory(), attacksOnTheStack())
	}
	for _, group := range groups {
		for _, a := range group {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				limits := Limits{Time: time.Minute}
				if strings.Contains(a.err, tooLong) {
					limits.Time = 150 * time.Millisecond
				}
				began := time.Now()
				value, _, err := run(t, a.source, limits)
				if took := time.Since(began); took > limits.Time+soon {
					t.Errorf("%s: took %s", a.name, took)
				}
				switch {
				case a.err == "" && (err != nil || value != a.value):
					t.Errorf(a.name+": value %.300s, err %v", value, err)
				case a.err != "" && (err == nil || !says(err.Error(), a.err)):
					t.Errorf(a.name+": value %.300s, err %v, want %s", value, err, a.err)
				}
			})
		}
	}
}

// soon is how late a script may end on a machine that does other things too; what cannot be stopped takes minutes.
const soon = 40 * time.Second

const (
	tooLong = "ran longer than"
	tooBig  = "needed more than 32 MiB of memory"
	tooDeep = "nest too deeply"
)

// says reports whether a message holds one of the parts of want, which are separated by |.
func says(message, want string) bool {
	return slices.ContainsFunc(strings.Split(want, "|"), func(part string) bool { return strings.Contains(message, part) })
}
