package jsonrpc

import "errors"

// NotSent reports whether err guarantees that no byte of the request left the process, so that it may be sent again.
// The error itself answers, by a method NotSent.
func NotSent(err error) bool {
	var e interface{ NotSent() bool }
	return errors.As(err, &e) && e.NotSent()
}
