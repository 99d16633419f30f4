//go:build race

package mission

// underRace: the race detector doubles memory, so that ceilings mean nothing.
const underRace = true
