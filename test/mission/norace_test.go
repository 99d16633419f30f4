//go:build !race

package mission

// underRace: see race_test.go.
const underRace = false
