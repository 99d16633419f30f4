//go:build !race

package cli

// underRace tells that the race detector is on, which multiplies memory and time.
const underRace = false

// slack multiplies the bounds of time, for machines that have other things to do.
const slack = 3
