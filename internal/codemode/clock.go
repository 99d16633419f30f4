package codemode

import (
	"context"
	"sync"
	"time"
)

// clock counts down the time of one script.
type clock struct {
	mu    sync.Mutex
	left  time.Duration // at since
	since time.Time
	holds int
	timer *time.Timer
}

type clockKey struct{}

func newClock(d time.Duration, fire func()) *clock {
	return &clock{left: d, since: time.Now(), timer: time.AfterFunc(d, fire)}
}

func (c *clock) stop() { c.timer.Stop() }

func (c *clock) remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds > 0 {
		return c.left
	}
	return max(0, c.left-time.Since(c.since))
}

func (c *clock) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds++
	if c.holds == 1 {
		c.timer.Stop()
		c.left -= time.Since(c.since)
	}
}

func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds--
	if c.holds == 0 {
		c.since = time.Now()
		c.timer.Reset(max(0, c.left))
	}
}

// Hold stops the clock of the script that a call with ctx belongs to, until release: the time in which a person thinks
// about a question is not the script's. Outside a script it does nothing.
func Hold(ctx context.Context) (release func()) {
	c, ok := ctx.Value(clockKey{}).(*clock)
	if !ok {
		return func() {}
	}
	c.hold()
	return sync.OnceFunc(c.release)
}

// Inside reports whether a call with ctx belongs to a script.
func Inside(ctx context.Context) bool { return ctx.Value(clockKey{}) != nil }
