// Package cli holds the commands, wires the parts in order, closes them in reverse, prints errors with their
// hints, and chooses exit codes.
//
// How it speaks: facts go to stdout, everything else to stderr; an error is one line that begins with
// "error:", lower case, no full stop, and under it a "hint:" line with the cure. Text from others is made
// safe (package untrusted) at the place where it is printed.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Main runs the command line of this process and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a := newApp()
	root := newRoot(a)
	root.SetArgs(os.Args[1:])
	err := root.ExecuteContext(ctx)
	return a.report(ctx, err)
}
