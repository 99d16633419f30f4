package cli

import "golang.org/x/sys/unix"

// beClosed keeps other programs of the same user, the servers that we start among them, from reading our memory and our
// environment in /proc, where keys and tokens are, and them from a core dump (PR_SET_DUMPABLE in prctl(2)). Root may still.
func beClosed() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // an old kernel or a filter that refuses it leaves us as open as before
}
