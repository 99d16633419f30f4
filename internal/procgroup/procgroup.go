// Package procgroup ends a command with everything that it started: bash of the agent's own tools, and hooks. (The
// servers' transport has one of its own, which also watches its leader unreaped.)
package procgroup

import "time"

const (
	killWait  = 2 * time.Second       // for the system to end a killed group; a process that hangs in the kernel takes longer
	groupPoll = 10 * time.Millisecond // how often a group is looked at while it ends
)

// End asks the group to end, ends it when the grace has passed, and waits for that, at most two seconds more.
func (g Group) End(grace time.Duration) {
	g.terminate()
	if !g.gone(grace) {
		g.kill()
		g.gone(killWait)
	}
}

// gone waits until no process of the group runs, at most for the given time.
func (g Group) gone(wait time.Duration) bool {
	tick := time.NewTicker(groupPoll)
	defer tick.Stop()
	for deadline := time.Now().Add(wait); g.Alive(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// Passed reports whether done was closed within the given time.
func Passed(done <-chan struct{}, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
