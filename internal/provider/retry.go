package provider

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Limits of retrying. They add up to about half a minute without a word from the service.
const (
	maxAttempts   = 5                      // requests per answer, the first included
	firstBackoff  = 500 * time.Millisecond // before the second request; doubled each time
	maxBackoff    = 16 * time.Second       // the longest wait that we choose by ourselves
	maxRetryAfter = 2 * time.Minute        // the longest wait that we accept from a service; more is for a person to decide
)

// Retry makes attempts until one streams a Done event, one fails for good, or ctx ends. An attempt emits its events
// and returns early when emit returns false. What fails is translated by e.Fail; a failure that passes is
// announced by a Retrying event, which voids what the attempt streamed, and tried again after a wait.
func Retry(ctx context.Context, e Endpoint, model string, yield func(Event, error) bool, attempt func(ctx context.Context, emit func(Event) bool) error) {
	left, finished := false, false
	emit := func(ev Event) bool {
		if left || finished {
			return false
		}
		left = !yield(ev, nil)
		finished = ev.Kind == Done
		return !left
	}
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			yield(Event{}, e.ended(ctx))
			return
		}
		err := attempt(ctx, emit)
		if left || finished {
			return
		}
		if ctx.Err() != nil {
			yield(Event{}, e.ended(ctx))
			return
		}
		if err == nil {
			err = ErrBroken
		}
		failed := e.Fail(err, model)
		wait := failed.RetryAfter
		if wait == 0 {
			wait = backoff(n)
		}
		if !failed.Retryable || n == maxAttempts || wait > maxRetryAfter {
			yield(Event{}, failed)
			return
		}
		text := fmt.Sprintf("%s; trying again in %s (%d of %d)", failed.Message, shown(wait), n+1, maxAttempts)
		if !emit(Event{Kind: Retrying, Text: text}) {
			return
		}
		pause(ctx, wait)
	}
}

func (e Endpoint) ended(ctx context.Context) *Error {
	failed := &Error{Provider: e.Name, Message: "the request was cancelled", Cause: ctx.Err()}
	if ctx.Err() == context.DeadlineExceeded {
		failed.Message = "the request ran out of time"
	}
	return failed
}

// backoff is the wait after the nth failure: half of it fixed, half of it random, so that many clients spread out.
func backoff(n int) time.Duration {
	d := min(firstBackoff<<(n-1), maxBackoff)
	return d/2 + rand.N(d/2+1)
}

func shown(d time.Duration) string {
	if d < time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// retryAfter reads what a service asks for: milliseconds, seconds, or a date. Nonsense counts as nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	v := h.Get("Retry-After")
	if d, ok := number(v, time.Second); ok {
		return d
	}
	if t, err := http.ParseTime(strings.TrimSpace(v)); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// number reads a positive count of units. The result saturates far above every limit, so that it cannot overflow.
func number(s string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(f > 0) {
		return 0, false
	}
	const most = 365 * 24 * time.Hour
	if f > float64(most/unit) {
		return most, true
	}
	return time.Duration(f * float64(unit)), true
}
