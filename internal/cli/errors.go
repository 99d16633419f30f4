package cli

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/settings"
	"magi-code/internal/untrusted"
)

// Exit codes. docs/exit-codes.md lists them for users.
const (
	exitOK          = 0
	exitFailure     = 1   // anything without a code of its own
	exitUsage       = 2   // unknown command, flag or argument
	exitNotApproved = 3   // the server is not approved in this form
	exitConnect     = 4   // a server cannot be expanded, started or connected to
	exitInitialize  = 5   // a server failed in initialize
	exitList        = 6   // a server failed in tools/list
	exitTool        = 7   // the tool reported an error, or the call failed
	exitConfig      = 8   // a malformed file, a missing server, an unusable home
	exitProvider    = 9   // the model's service failed, or no provider is set up
	exitIncomplete  = 10  // a turn ended before its answer: the limit of rounds or tokens, or a refusal
	exitInterrupted = 130 // Ctrl-C or SIGTERM
	exitPipe        = 141 // the reader of stdout went away: what a shell reports of a program that SIGPIPE ends
)

// coded is an error with its exit code and cure. Told is set when it was printed already.
type coded struct {
	code int
	err  error
	hint string
	told bool
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

func hinted(code int, err error, hint string) error { return &coded{code: code, err: err, hint: hint} }

func usage(format string, args ...any) error {
	return &coded{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// silent carries an exit code for what was told already.
func silent(code int, err error) error { return &coded{code: code, err: err, told: true} }

// report prints an error, if any, with its hint, and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		a.say("interrupted")
		return exitInterrupted
	}
	var c *coded
	if errors.As(err, &c) && c.told {
		return c.code
	}
	code := exitFailure
	for _, e := range flatten(err) {
		text, hint, n := explain(e)
		a.say("error: %s", untrusted.Line(text))
		if hint != "" {
			a.say("hint: %s", untrusted.Line(hint))
		}
		if code == exitFailure {
			code = n
		}
	}
	return code
}

// flatten takes joined errors apart. An error that wraps two in one sentence of its own is none of those.
func flatten(err error) []error {
	joined := reflect.TypeOf(errors.Join(context.Canceled))
	if j, ok := err.(interface{ Unwrap() []error }); ok && reflect.TypeOf(err) == joined {
		var all []error
		for _, e := range j.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	var c *coded
	if errors.As(err, &c) && c == err && c.hint == "" {
		if inner := flatten(c.err); len(inner) > 1 {
			for i := range inner {
				inner[i] = &coded{code: c.code, err: inner[i]}
			}
			return inner
		}
	}
	return []error{err}
}

// explain returns the sentence, the cure and the exit code of one error.
func explain(err error) (text, hint string, code int) {
	text, code = err.Error(), exitFailure
	var c *coded
	var m *mcp.Error
	var d *definition.Error
	var p *provider.Error
	var s *approval.StaleError
	var set *settings.Error
	var history *session.WriteError
	switch {
	case errors.As(err, &m):
		hint, code = m.Hint, phaseCode(m.Phase)
		if m.Stderr != "" {
			text += "; its last words on stderr: " + untrusted.Line(lastLines(m.Stderr, 3))
		}
	case errors.As(err, &d):
		hint, code = d.Hint, exitConfig
	case errors.As(err, &p):
		hint, code = p.Hint, exitProvider
	case errors.As(err, &set):
		hint, code = set.Hint, exitConfig
	case errors.As(err, &history):
		hint, code = "make "+untrusted.Visible(history.Dir)+" a folder that can be written to, with space left, or keep no history with --no-session", exitConfig
	case errors.Is(err, session.ErrInUse):
		code = exitConfig // it says itself who holds the session and what to do
	case errors.Is(err, session.ErrNotFound):
		hint, code = "look for it in /sessions of Mission Control, or leave --resume out to start a new one", exitConfig
	case errors.As(err, &s):
		hint, code = "look at it again with magi-code mcp get "+s.Server, exitNotApproved
	}
	if errors.As(err, &c) {
		code = c.code
		if c.hint != "" {
			hint = c.hint
		}
	}
	return text, hint, code
}

func phaseCode(p mcp.Phase) int {
	switch p {
	case mcp.PhaseConfig:
		return exitConfig
	case mcp.PhaseApproval:
		return exitNotApproved
	case mcp.PhaseExpand, mcp.PhaseConnect:
		return exitConnect
	case mcp.PhaseInitialize:
		return exitInitialize
	case mcp.PhaseList:
		return exitList
	case mcp.PhaseCall:
		return exitTool
	}
	return exitFailure
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
