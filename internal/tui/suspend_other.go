//go:build !unix

package tui

// canSuspend is false: this system has no job control.
func canSuspend() bool { return false }
