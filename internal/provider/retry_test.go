package provider

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type pair struct {
	e   Event
	err error
}

// run collects what Retry yields.
func run(ctx context.Context, attempt func(n int, emit func(Event) bool) error) []pair {
	var got []pair
	n := 0
	Retry(ctx, Endpoint{Name: "p", BaseURL: "http://h"}, "m", func(e Event, err error) bool {
		got = append(got, pair{e, err})
		return true
	}, func(_ context.Context, emit func(Event) bool) error {
		n++
		return attempt(n, emit)
	})
	return got
}

func kinds(got []pair) string {
	var s []string
	for _, p := range got {
		if p.err != nil {
			s = append(s, "error")
		} else {
			s = append(s, string(p.e.Kind))
		}
	}
	return strings.Join(s, " ")
}

func TestRetryHonoursRetryAfter(t *testing.T) { // R-G1
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := run(t.Context(), func(n int, emit func(Event) bool) error {
			if n == 1 {
				emit(Event{Kind: TextDelta, Text: "half"})
				return &Failure{Status: 429, retryAfter: 7 * time.Second, Message: "slow down"}
			}
			emit(Event{Kind: Done})
			return nil
		})
		if kinds(got) != "text retry done" {
			t.Fatalf("got %s", kinds(got))
		}
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("waited %s, the service asked for 7s", took)
		}
		if text := got[1].e.Text; !strings.Contains(text, "429") || !strings.Contains(text, "slow down") || !strings.Contains(text, "7s (2 of 5)") {
			t.Errorf("retry text %q", text)
		}
	})
}

func TestRetryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, n := time.Now(), 0
		got := run(t.Context(), func(int, func(Event) bool) error { n++; return &Failure{Status: 529} })
		if n != maxAttempts || kinds(got) != "retry retry retry retry error" {
			t.Fatalf("%d attempts, %s", n, kinds(got))
		}
		// Backoff doubles from half a second; jitter takes at most half of it.
		if took := time.Since(start); took < 3750*time.Millisecond || took > 7500*time.Millisecond {
			t.Errorf("waited %s in all", took)
		}
		failed, ok := errors.AsType[*Error](got[len(got)-1].err)
		if !ok || failed.Status != 529 || !failed.Retryable {
			t.Errorf("error %+v", failed)
		}
	})
}

func TestRetryLeavesLongWaitsToPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := run(t.Context(), func(int, func(Event) bool) error { return &Failure{Status: 429, retryAfter: time.Hour} })
		failed, _ := errors.AsType[*Error](got[0].err)
		if kinds(got) != "error" || failed.RetryAfter != time.Hour || time.Since(start) != 0 {
			t.Errorf("got %s after %s: %+v", kinds(got), time.Since(start), failed)
		}
	})
}

func TestRetryNotForFinalFailures(t *testing.T) {
	for _, f := range []*Failure{{Status: 400}, {Status: 401}, {Status: 403}, {Status: 404}, {Status: 413}, {Status: 307},
		{Status: 429, Code: "insufficient_quota"}, {Status: 500, shouldRetry: "false"}, {Code: "context_length_exceeded"}} {
		n := 0
		got := run(t.Context(), func(int, func(Event) bool) error { n++; return f })
		if n != 1 || kinds(got) != "error" {
			t.Errorf("%+v: %d attempts, %s", f, n, kinds(got))
		}
	}
}

func TestRetryStopsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, n := time.Now(), 0
		got := run(ctx, func(int, func(Event) bool) error { n++; return &Failure{Status: 503, retryAfter: time.Minute} })
		last := got[len(got)-1].err
		if n != 1 || kinds(got) != "retry error" || !errors.Is(last, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%d attempts, %s, %v after %s", n, kinds(got), last, time.Since(start))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	got := run(ctx, func(int, func(Event) bool) error { n++; return nil })
	if n != 0 || !errors.Is(got[0].err, context.Canceled) {
		t.Errorf("a cancelled context made %d attempts: %v", n, got)
	}
}

func TestRetryStopsWhenNobodyListens(t *testing.T) {
	for _, leave := range []EventKind{TextDelta, Retrying, Done} {
		synctest.Test(t, func(t *testing.T) {
			n, after := 0, 0
			left := false
			Retry(t.Context(), Endpoint{}, "", func(e Event, err error) bool {
				if left {
					after++
				}
				left = err == nil && e.Kind == leave
				return !left
			}, func(_ context.Context, emit func(Event) bool) error {
				n++
				emit(Event{Kind: TextDelta})
				if n == 1 {
					return ErrBroken
				}
				emit(Event{Kind: Done})
				emit(Event{Kind: TextDelta}) // nothing may follow the last event
				return ErrBroken
			})
			if after != 0 {
				t.Errorf("left at %s: %d events after it", leave, after)
			}
		})
	}
}

func TestRetryAnswerWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := run(t.Context(), func(n int, emit func(Event) bool) error {
			if n == 2 {
				emit(Event{Kind: Done})
			}
			return nil
		})
		if kinds(got) != "retry done" {
			t.Errorf("got %s", kinds(got))
		}
	})
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"Retry-After", "1.5", 1500 * time.Millisecond},
		{"Retry-After", "0", 0},
		{"Retry-After", "-4", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "Inf", 365 * 24 * time.Hour},
		{"Retry-After", "1e300", 365 * 24 * time.Hour},
		{"Retry-After", "Tue, 01 Dec 2026 10:00:20 GMT", 20 * time.Second},
		{"Retry-After", "Tue, 01 Dec 2026 09:00:00 GMT", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After-Ms", "x", 0},
		{"X-Other", "3", 0},
	} {
		h := http.Header{}
		h.Set(c.header, c.value)
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%s: %s: got %s, want %s", c.header, c.value, got, c.want)
		}
	}
	both := http.Header{"Retry-After": {"9"}, "Retry-After-Ms": {"10"}}
	if got := retryAfter(both, now); got != 10*time.Millisecond {
		t.Errorf("the finer header counts, got %s", got)
	}
}
