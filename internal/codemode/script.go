package codemode

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"modernc.org/quickjs"
)

//go:embed prelude.js
var prelude string

// script is one run of one source in an engine of its own.
type script struct {
	host   Host
	limits Limits
	clock  *clock

	calls int // made so far; used by the engine's goroutine alone
	index *catalog

	mu     sync.Mutex
	out    strings.Builder
	outCut bool
}

const (
	// bridgeName is where the prelude finds the host's function; it takes it away before the user's code runs.
	bridgeName = "__bridge"
	// before stands before the user's source; it is one line, see relative.
	before, after = "(function (tools, console) {\n", "\n})"
	// pokeEvery is how often a script that must stop is told so: a request that comes while no JavaScript is
	// evaluated gets lost.
	pokeEvery = 5 * time.Millisecond
)

// run makes the engine, runs the source and ends the engine.
func (s *script) run(ctx context.Context, source string) (value jsontext.Value, err error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, fmt.Errorf("start the script engine: %w", err)
	}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { interruptWhenDone(ctx, vm, ended) })
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("the script engine failed: %v", p)
		}
		close(ended)
		watch.Wait()
		err = errors.Join(err, vm.Close())
	}()
	vm.SetMemoryLimit(uintptr(s.limits.Memory))
	vm.SetMaxStackSize(uintptr(s.limits.Stack))
	vm.SetCanBlock(false)
	value, err = s.evaluate(ctx, vm, source)
	if ctx.Err() != nil {
		return nil, reason(ctx, s.limits)
	}
	return value, err
}

func (s *script) evaluate(ctx context.Context, vm *quickjs.VM, source string) (jsontext.Value, error) {
	if err := vm.RegisterHostFunc(bridgeName, func(args []any) (any, error) { return s.bridge(ctx, args) }); err != nil {
		return nil, fmt.Errorf("start the script engine: %w", err)
	}
	start, err := vm.EvalValue(strings.ReplaceAll(prelude, "\n", " "), quickjs.EvalGlobal)
	if err != nil {
		return nil, fmt.Errorf("start the script engine: %w", err)
	}
	defer start.Free()
	body, err := vm.EvalValue(before+source+after, quickjs.EvalGlobal)
	if err != nil {
		return nil, s.explain(err, source)
	}
	defer body.Free()
	result, err := start.Call(quickjs.UndefinedValue, body)
	if err != nil {
		return nil, s.explain(err, source)
	}
	text, ok := result.(string)
	if !ok {
		return nil, errors.New("the script returned nothing that can be read: it ran out of memory or stack while it ended")
	}
	if len(text) > s.limits.Return {
		return nil, fmt.Errorf("the script returned %d bytes of JSON, more than the %d that it may return; return less, or use console.log for a part", len(text), s.limits.Return)
	}
	value := jsontext.Value(text)
	// Half a character that a script cut off becomes U+FFFD, so that whoever reads the value can take it.
	if err := value.Format(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, errors.New("the script returned something that is not JSON")
	}
	return value, nil
}

// interruptWhenDone stops the engine when ctx ends, and again until it has stopped. The engine asks only at every ten thousandth
// loop or call whether it should stop. When each of them makes a large object or number that takes minutes, so it gets no more
// memory: what it would make then fails at once. The limit is one word that the engine reads whenever it allocates.
func interruptWhenDone(ctx context.Context, vm *quickjs.VM, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	tick := time.NewTicker(pokeEvery)
	defer tick.Stop()
	for {
		vm.SetMemoryLimit(1)
		vm.Interrupt()
		select {
		case <-ended:
			return
		case <-tick.C:
		}
	}
}

// print keeps a line of console output as far as there is room.
func (s *script) print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outCut {
		return
	}
	if room := s.limits.Console - s.out.Len(); len(line)+1 > room {
		s.outCut = true
		line = strings.ToValidUTF8(line[:min(len(line), max(0, room))], "") + fmt.Sprintf("\n... console output is cut at %d bytes", s.limits.Console)
	}
	s.out.WriteString(line)
	s.out.WriteByte('\n')
}

func (s *script) console() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}
