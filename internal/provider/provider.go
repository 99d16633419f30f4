package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Provider streams answers of one service.
type Provider interface {
	// Name is the provider's name as users write it: "anthropic", "openai", "offline", or a custom endpoint's.
	Name() string
	// Stream sends the request and yields events until Done or an error, which is the last pair. Leaving the
	// loop or ending ctx ends the request. Retries happen inside, as Retrying events.
	Stream(ctx context.Context, r Request) iter.Seq2[Event, error]
}

// ErrContextOverflow is wrapped by an Error when the conversation is longer than the model's context.
var ErrContextOverflow = errors.New("the conversation is longer than the model's context window")

// Error is a failure of a provider in our words. It never holds a key or a whole foreign body.
type Error struct {
	Provider   string
	Status     int           // HTTP status, 0 when there was none
	Message    string        // one sentence: the provider's own message, sanitized and cut, or ours
	Hint       string        // the cure, one sentence, may be empty
	RetryAfter time.Duration // what the provider asked for, 0 when nothing
	Retryable  bool
	Cause      error
}

// Error returns `provider "anthropic": message`.
func (e *Error) Error() string { return fmt.Sprintf("provider %q: %s", e.Provider, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
