// Package codemode runs a bounded JavaScript function body whose only door to the world is the functions it was given.
package codemode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound one script. A field that is not positive has its default.
type Limits struct {
	Source  int           // bytes of source; 64 KiB
	Calls   int           // tool calls; 200
	Time    time.Duration // wall time, calls included, questions to a person not; 60 s
	Memory  int           // bytes of the engine's heap; 32 MiB
	Stack   int           // depth of the engine's call stack
	Result  int           // bytes of one call's result as the script sees it; 1 MiB
	Return  int           // bytes of what the script returns as JSON; 256 KiB
	Console int           // bytes of console output that are kept; 64 KiB
}

// maxStack is how deep calls may nest: more than honest recursion needs. An error costs as many frames as there are, so a
// script that only overflows and catches is stopped in a second at this depth, and in ten at the engine's own.
const maxStack = 600

// DefaultLimits are those of the requirements.
func DefaultLimits() Limits {
	return Limits{
		Source: 64 << 10, Calls: 200, Time: time.Minute, Memory: 32 << 20, Stack: maxStack,
		Result: 1 << 20, Return: 256 << 10, Console: 64 << 10,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ field, byDefault *int }{
		{&l.Source, &d.Source}, {&l.Calls, &d.Calls}, {&l.Memory, &d.Memory}, {&l.Stack, &d.Stack},
		{&l.Result, &d.Result}, {&l.Return, &d.Return}, {&l.Console, &d.Console},
	} {
		if *f.field <= 0 {
			*f.field = *f.byDefault
		}
	}
	if l.Time <= 0 {
		l.Time = d.Time
	}
	return l
}

// ToolInfo is what a script learns about a tool.
type ToolInfo struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      jsontext.Value `json:"inputSchema,omitempty"` // describe only
}

// Outcome of one inner call, as the script sees it: {success, content} or {success:false, error}.
type Outcome struct {
	Success bool           `json:"success"`
	Content jsontext.Value `json:"content,omitzero"` // a JSON string for text, or an object/array for structured content
	Error   string         `json:"error,omitempty"`
}

// Host is the world of a script.
type Host struct {
	Tools []ToolInfo // what can be called, in order
	// Call makes one call on the very path of direct calls. It never panics and may be called concurrently (callAll).
	Call func(ctx context.Context, name string, input jsontext.Value) Outcome
}

const (
	// stopGrace is how long a script may take to stop once it was told to. The engine asks at every loop and call of
	// the script, but not inside its own native loops; the prelude bounds those that are known.
	stopGrace = 5 * time.Second
	// maxEngines is how many scripts of one Runner have an engine at once, each with its heap; others wait. A script that
	// another one started through a subagent does not wait, for the two would wait for each other.
	maxEngines = 4
	// maxStuck is how many scripts that do not stop are borne before no further one is started.
	maxStuck = 1
)

var (
	errTime  = errors.New("the script ran longer than it may")
	errStuck = errors.New("an earlier script cannot be stopped; no other one is started until it ends")
)

// Runner runs scripts. The zero Runner is ready; its methods may be called concurrently.
type Runner struct {
	work   sync.WaitGroup
	stuck  atomic.Int32
	mu     sync.Mutex
	places chan struct{}     // one for each engine
	ends   []<-chan struct{} // of scripts that did not stop in time
}

// Run executes source as a function body and returns what it returned as JSON (null for undefined). Errors say in one
// sentence what the script did wrong or which limit ended it, with line numbers of the script.
// Console output (console.log) is returned too, bounded.
func (r *Runner) Run(ctx context.Context, source string, h Host, l Limits) (value jsontext.Value, console string, err error) {
	l = l.withDefaults()
	if len(source) > l.Source {
		return nil, "", fmt.Errorf("the source has %d bytes, more than the %d that a script may have", len(source), l.Source)
	}
	if r.stuck.Load() >= maxStuck {
		return nil, "", errStuck
	}
	leave, err := r.enter(ctx)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := newClock(l.Time, func() { cancel(errTime) })
	defer c.stop()
	s := &script{host: h, limits: l, clock: c}
	ended := make(chan struct{})
	var result jsontext.Value
	var failure error
	r.work.Go(func() {
		defer close(ended)
		result, failure = s.run(context.WithValue(ctx, clockKey{}, c), source)
	})
	select {
	case <-ended:
	case <-ctx.Done():
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
			r.abandon(ended)
			return nil, s.console(), fmt.Errorf("%w; it does not stop and was left behind", reason(ctx, l))
		}
	}
	return result, s.console(), failure
}

// enter waits for a place.
func (r *Runner) enter(ctx context.Context) (leave func(), err error) {
	if Inside(ctx) {
		return func() {}, nil
	}
	r.mu.Lock()
	if r.places == nil {
		r.places = make(chan struct{}, maxEngines)
	}
	places := r.places
	r.mu.Unlock()
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the script was interrupted before it started: %w", context.Cause(ctx))
	}
}

// abandon keeps an eye on a script that does not stop.
func (r *Runner) abandon(ended <-chan struct{}) {
	r.stuck.Add(1)
	r.mu.Lock()
	r.ends = append(r.ends, ended)
	r.mu.Unlock()
	r.work.Go(func() {
		<-ended
		r.stuck.Add(-1)
	})
}

// Close waits, up to ctx, for scripts that did not stop in time. No Run may be under way.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	ends := r.ends
	r.mu.Unlock()
	for _, ended := range ends {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("a script cannot be stopped: %w", context.Cause(ctx))
		}
	}
	r.work.Wait()
	return nil
}

// reason says which limit or who ended a script.
func reason(ctx context.Context, l Limits) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errTime) {
		return fmt.Errorf("the script ran longer than %s", l.Time)
	}
	return fmt.Errorf("the script was interrupted: %w", cause)
}
