//go:build race

package cli

// underRace tells that the race detector is on, which multiplies memory and time.
const underRace = true
