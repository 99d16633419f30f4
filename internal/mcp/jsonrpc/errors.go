package jsonrpc

import (
	"errors"
	"strconv"
)

// ErrClosed is why a connection ended that we closed.
var ErrClosed = errors.New("connection closed")

// MaxFrame bounds one message in bytes, ours and theirs: the longest line seen in the wild is 2 MB, peers bound their
// events at 16 MiB.
const MaxFrame = 16 << 20

// TooLargeError is a message longer than Limit bytes. One that arrives ends the connection.
type TooLargeError struct {
	Limit int
	ours  bool
}

// Error names the limit.
func (e *TooLargeError) Error() string {
	return "message larger than " + strconv.Itoa(e.Limit>>20) + " MiB"
}

// NotSent reports whether the message was ours.
func (e *TooLargeError) NotSent() bool { return e.ours }

// EndedError is why a call failed whose connection has ended.
type EndedError struct {
	Cause error
	sent  bool
}

// Error says that the connection ended, and why.
func (e *EndedError) Error() string {
	if errors.Is(e.Cause, ErrClosed) {
		return e.Cause.Error()
	}
	return "connection ended: " + e.Cause.Error()
}

// Unwrap returns why the connection ended.
func (e *EndedError) Unwrap() error { return e.Cause }

// NotSent reports whether the connection had ended before the call.
func (e *EndedError) NotSent() bool { return !e.sent }

// InterruptedError is the end of a call by its context. It unwraps to the context's error and to its cause.
type InterruptedError struct {
	Err   error // context.Canceled or context.DeadlineExceeded
	Cause error // context.Cause
	sent  bool
}

// Error returns the cause.
func (e *InterruptedError) Error() string { return e.Cause.Error() }

// Unwrap returns the context's error and its cause.
func (e *InterruptedError) Unwrap() []error { return []error{e.Err, e.Cause} }

// NotSent reports whether the context ended before the first byte was written.
func (e *InterruptedError) NotSent() bool { return !e.sent }

// requestError is a request that cannot be sent at all: a mistake of the caller.
type requestError struct{ text string }

func (e *requestError) Error() string { return e.text }

// NotSent is true.
func (e *requestError) NotSent() bool { return true }
