package codemode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxOverlap is how many calls of one callAll are under way at once.
	maxOverlap = 16
	// maxAtOnce is how many calls one callAll may be given; each that is not made costs us an answer.
	maxAtOnce = 10_000
	// resultsShare is the part of the engine's memory that the results of one callAll may have: it holds them as UTF-8, as JSON
	// text and as values, and the script has something of its own.
	resultsShare = 6
)

// bridge is the one function that the engine can call. It takes the name of an operation and a text, and returns JSON.
// What comes in was written by a script, so nothing about it is taken for granted.
func (s *script) bridge(ctx context.Context, args []any) (any, error) {
	if len(args) != 2 {
		return nil, errors.New("wrong use of the bridge")
	}
	op, okOp := args[0].(string)
	payload, okPayload := args[1].(string)
	if !okOp || !okPayload {
		return nil, errors.New("wrong use of the bridge")
	}
	if ctx.Err() != nil {
		return nil, reason(ctx, s.limits)
	}
	switch op {
	case "log":
		s.print(payload)
		return "null", nil
	case "budget":
		return fmt.Sprintf(`{"callsLeft":%d,"millisecondsLeft":%d}`, s.limits.Calls-s.calls, s.clock.remaining().Milliseconds()), nil
	case "call":
		return s.callAll(ctx, payload)
	case "list":
		return marshal(s.catalog().list())
	case "search":
		var q struct {
			Query string  `json:"query"`
			Limit float64 `json:"limit"`
		}
		if err := json.Unmarshal([]byte(payload), &q); err != nil {
			return nil, errors.New("search takes a text and a number")
		}
		return marshal(s.catalog().search(q.Query, q.Limit))
	case "describe":
		t, err := s.catalog().describe(payload)
		if err != nil {
			return nil, err
		}
		return marshal(t)
	default:
		return nil, errors.New("wrong use of the bridge")
	}
}

func marshal(v any) (any, error) {
	text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return string(text), nil
}

// innerCall is one call as the prelude writes it.
type innerCall struct {
	Name  string         `json:"name"`
	Input jsontext.Value `json:"input"`
}

// callAll makes calls that overlap and returns their outcomes in order. Calls beyond the limit fail without being made.
func (s *script) callAll(ctx context.Context, payload string) (any, error) {
	var calls []innerCall
	// Half a character in a string is for the tool's own validation to refuse, as in a direct call.
	if err := json.Unmarshal([]byte(payload), &calls, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("the calls are not JSON that can be read: %w", err)
	}
	if len(calls) > maxAtOnce {
		return nil, fmt.Errorf("callAll takes at most %d calls, of which a script may make %d", maxAtOnce, s.limits.Calls)
	}
	outcomes := make([]Outcome, len(calls))
	var kept atomic.Int64 // bytes of results
	places := make(chan struct{}, maxOverlap)
	var work sync.WaitGroup
	for i, c := range calls {
		if s.calls >= s.limits.Calls {
			outcomes[i] = Outcome{Error: fmt.Sprintf("not made: a script may make %d calls", s.limits.Calls)}
			continue
		}
		s.calls++
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			o := s.bounded(s.host.Call(ctx, c.Name, c.Input))
			if kept.Add(int64(len(o.Content)+len(o.Error))) > int64(s.limits.Memory/resultsShare) {
				o = Outcome{Error: fmt.Sprintf("the call was made, but the results of this callAll have together more than %d MiB; ask for less at once", s.limits.Memory/resultsShare>>20)}
			}
			outcomes[i] = o
		})
	}
	work.Wait()
	return marshal(outcomes)
}

// bounded holds an outcome to what a script may get.
func (s *script) bounded(o Outcome) Outcome {
	if n := len(o.Content) + len(o.Error); n > s.limits.Result {
		return Outcome{Error: fmt.Sprintf("the result has %d bytes, more than the %d that a script may get; ask for less", n, s.limits.Result)}
	}
	if o.Success && len(o.Content) == 0 {
		o.Content = jsontext.Value("null")
	}
	if !o.Success && o.Error == "" {
		o.Error = "the tool failed without saying why"
	}
	if o.Success && (!utf8.Valid(o.Content) || !o.Content.IsValid()) {
		return Outcome{Error: "the result is not JSON"}
	}
	return o
}
