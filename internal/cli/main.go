// Package cli holds the commands, wires the parts in order, closes them in reverse, prints errors with their
// hints, and chooses exit codes.
package cli

// Main runs the command line of this process and returns its exit code.
func Main() int { return 0 }
