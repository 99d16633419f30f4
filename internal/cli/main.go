// Package cli holds the commands, wires the parts in order, closes them in reverse, prints errors with their
// hints, and chooses exit codes.
//
// How it speaks: facts go to stdout, everything else to stderr; an error is one line that begins with
// "error:", lower case, no full stop, and under it a "hint:" line with the cure. Text from others is made
// safe (package untrusted) at the place where it is printed.
package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
)

// Main runs the command line of this process and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A reader that goes (magi-code run ... | head -1) must not kill us where we stand: servers and commands have to end with us.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	beModest()
	beClosed()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // net/http logs there what a server sent out of turn, past every sanitizer and over any screen
	out := &output{File: os.Stdout, broken: cancel}
	a := newApp(out)
	root := newRoot(a)
	root.SetArgs(os.Args[1:])
	err := root.ExecuteContext(ctx)
	return a.ending(ctx, err, out.failed())
}

const (
	// garbage is how much may pile up before it is collected, in percent of what lives: a run lives on a few MiB, and
	// with Go's 100 a quarter of its processor time went into looking through them again and again.
	garbage = 400
	// enoughMemory ends that generosity, in bytes: from here on the collector runs as often as it has to.
	enoughMemory = 512 << 20
)

// beModest tunes the runtime, unless the user did. We wait for others nearly all the time: threads of ours that look
// for work meanwhile, and the collector, take the processor from the very servers that we wait for.
func beModest() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2)) // the other half is theirs
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(enoughMemory)
	}
}

// ending reports how the command ended and returns the exit code: its own, unless it went well but for its output.
func (a *app) ending(ctx context.Context, err, lost error) int {
	if errors.Is(lost, syscall.EPIPE) && (err == nil || ctx.Err() != nil) {
		return exitPipe // who reads no further wants to hear nothing
	}
	code := a.report(ctx, err)
	if code == exitOK && lost != nil {
		a.say("error: the output could not be written: %v", lost)
		return exitFailure
	}
	return code
}
