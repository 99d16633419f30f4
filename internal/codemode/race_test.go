//go:build race

package codemode

// underRace tells that the race detector is on.
const underRace = true
