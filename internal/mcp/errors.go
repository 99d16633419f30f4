package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Phase is where a server failed. The set is closed.
type Phase string

const (
	PhaseConfig     Phase = "config"
	PhaseApproval   Phase = "approval"
	PhaseExpand     Phase = "expand"
	PhaseConnect    Phase = "connect"
	PhaseInitialize Phase = "initialize"
	PhaseList       Phase = "list"
	PhaseCall       Phase = "call"
	PhaseClose      Phase = "close"
)

// What ended a request, for errors.Is. A *Error unwraps to one of them, or to the transport's or the server's own error.
var (
	// ErrTimeout: the server did not answer within the definition's timeout.
	ErrTimeout = errors.New("no answer in time")
	// ErrAborted: the caller's context ended. The caller's cause is in the chain too.
	ErrAborted = errors.New("cancelled")
	// ErrSibling: another call was cancelled or timed out, which closes the connection that both shared.
	ErrSibling = errors.New("connection closed because another call to this server was cancelled")
	// ErrClosed: the manager was closed.
	ErrClosed = errors.New("the connection was closed at shutdown")
	// ErrUnapproved: Open or Probe was given the zero Approved.
	ErrUnapproved = errors.New("a server without proof of approval cannot be started")
	// ErrUnknownServer: no such server is run by this manager.
	ErrUnknownServer = errors.New("no such server is running")
	// ErrUnknownTool: the server has no such tool.
	ErrUnknownTool = errors.New("no such tool")
)

// Error is a failure of one server: `server "x": phase: text`, sanitized, without secrets.
type Error struct {
	Server string
	Phase  Phase
	Text   string // one sentence, lower case
	Hint   string // the cure, one sentence; may be empty
	Stderr string // the tail of the server's stderr, sanitized and scrubbed; may be empty
	Cause  error  // for errors.Is and errors.As only: its own text is neither sanitized nor scrubbed
}

// Error returns the sentence without hint and stderr.
func (e *Error) Error() string {
	return `server "` + e.Server + `": ` + string(e.Phase) + ": " + e.Text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Format writes the sentence for every verb, so that no verb reaches the cause.
func (e *Error) Format(f fmt.State, verb rune) {
	if e == nil {
		_, _ = f.Write([]byte("<nil>"))
		return
	}
	s := e.Error()
	if verb == 'q' {
		s = strconv.Quote(s)
	}
	_, _ = f.Write([]byte(s))
}

// timeoutError is a request that got no answer in time.
type timeoutError struct {
	method string
	limit  time.Duration
	unsent bool
}

func (e *timeoutError) Error() string {
	return "no answer to " + e.method + " within " + e.limit.String()
}

// NotSent reports whether the time went by before anything left, as when nobody answers the dialling.
func (e *timeoutError) NotSent() bool { return e.unsent }

func (e *timeoutError) Unwrap() []error { return []error{ErrTimeout, context.DeadlineExceeded} }

// abortedError is a request whose caller gave up.
type abortedError struct{ cause error }

// aborted explains the end of a caller's context. A limit of ours over several requests is a timeout, not an abort.
func aborted(ctx context.Context) error {
	if late, ok := errors.AsType[*timeoutError](context.Cause(ctx)); ok {
		return late
	}
	return &abortedError{cause: context.Cause(ctx)}
}

func (e *abortedError) Error() string { return "cancelled" }

func (e *abortedError) Unwrap() []error { return []error{ErrAborted, e.cause} }

// siblingError is a request that another one's end took with it.
type siblingError struct{ timedOut bool }

func (e *siblingError) Error() string {
	if e.timedOut {
		return "connection closed because another call to this server timed out"
	}
	return ErrSibling.Error()
}

func (e *siblingError) Unwrap() error { return ErrSibling }

// droppedError is what a sibling error is to the server itself.
type droppedError struct{ cause *siblingError }

func (e *droppedError) Error() string {
	if e.cause.timedOut {
		return "the connection was closed because a call timed out"
	}
	return "the connection was closed because a call was cancelled"
}

func (e *droppedError) Unwrap() error { return ErrSibling }

// unsentError is a request that met a closed connection before anything of it was sent.
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }

func (e *unsentError) Unwrap() error { return e.cause }

// NotSent is true: the request may be sent again on another connection.
func (e *unsentError) NotSent() bool { return true }

// phaseError is a failure on the way to a ready server, with its phase.
type phaseError struct {
	phase Phase
	cause error
}

func (e *phaseError) Error() string { return string(e.phase) + ": " + e.cause.Error() }

func (e *phaseError) Unwrap() error { return e.cause }

// inPhase marks err with the phase it happened in; nil stays nil.
func inPhase(p Phase, err error) error {
	if err == nil {
		return nil
	}
	return &phaseError{phase: p, cause: err}
}
