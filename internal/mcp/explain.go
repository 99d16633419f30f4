package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/mcp/stdio"
	"magi-code/internal/untrusted"
)

const (
	// Bounds in bytes of what is shown. An error is a sentence, whatever a server writes into it.
	maxText   = 2 << 10
	maxSample = 512
	maxStray  = 200 // of a sample inside a sentence
	// maxStderr is how much of a stderr tail is shown; the transport keeps more.
	maxStderr = 16 << 10
	// maxWithheld bounds how many withheld variables a hint names.
	maxWithheld = 8
	// longestTimeout is the largest that a definition may set.
	longestTimeout = 300 * time.Second
)

// line makes foreign text one safe line. Sanitizing can join what stood apart, so that secrets are looked for twice.
func (s *server) line(t string, limit int) string {
	t = s.o.Scrub.Text(untrusted.Line(s.o.Scrub.Text(t)))
	return untrusted.Head(strings.TrimSpace(t), limit)
}

// page is line for several lines.
func (s *server) page(t string, limit int) string {
	return untrusted.Head(s.o.Scrub.Text(untrusted.Text(s.o.Scrub.Text(t))), limit)
}

// stderrTail is the end of what the server wrote to stderr, safe to show. A tail that was cut begins with a whole line:
// half a line could hold half a secret.
func (s *server) stderrTail(c *client) string {
	t := c.link.stderr()
	if len(t) > maxStderr {
		t = t[len(t)-maxStderr:]
		if _, rest, ok := strings.Cut(t, "\n"); ok {
			t = rest
		}
	}
	return strings.TrimSpace(s.o.Scrub.Text(untrusted.Text(s.o.Scrub.Text(t))))
}

// explain turns whatever went wrong into what people are told. c may be nil.
func (s *server) explain(err error, c *client) *Error {
	if done, ok := errors.AsType[*Error](err); ok {
		return done
	}
	e := &Error{Server: s.name, Phase: PhaseCall}
	if p, ok := err.(*phaseError); ok {
		e.Phase, err = p.phase, p.cause
	}
	e.Cause = err
	if errors.Is(err, ErrClosed) && !errors.Is(err, ErrSibling) {
		e.Text = ErrClosed.Error()
		return e
	}
	if faults := definitionErrors(err); len(faults) > 0 {
		e.Text, e.Hint = s.line(strings.Join(faults, "; "), maxText), s.line(definitionHint(err), maxText)
		return e
	}
	e.Text = s.line(err.Error(), maxText)
	e.Hint = s.line(s.hint(e.Phase, err, c), maxText)
	ours := errors.Is(err, ErrSibling) || errors.Is(err, ErrAborted) // of which the server's stderr tells nothing
	if c != nil && !ours && (e.Phase != PhaseCall || c.dead()) {
		e.Stderr = s.stderrTail(c)
	}
	return e
}

// definitionErrors lists what is wrong with a definition, each with its field; the server is named before them.
func definitionErrors(err error) (faults []string) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			faults = append(faults, definitionErrors(one)...)
		}
		return faults
	}
	d, ok := errors.AsType[*definition.Error](err)
	switch {
	case !ok:
		return nil
	case d.Field != "":
		return []string{d.Field + ": " + d.Text}
	}
	return []string{d.Text}
}

// definitionHint is the first cure.
func definitionHint(err error) string {
	d, _ := errors.AsType[*definition.Error](err)
	return d.Hint
}

// hint is the cure for err, or "".
func (s *server) hint(p Phase, err error, c *client) string {
	var own interface{ Hint() string }
	if errors.As(err, &own) && own.Hint() != "" {
		return own.Hint()
	}
	stray := s.strayHint(p, c)
	if errors.Is(err, ErrTimeout) {
		return joinHints(stray, s.timeoutHint())
	}
	if start, ok := errors.AsType[*stdio.StartError](err); ok && start.Reason == stdio.NotFound {
		return `give "command" as an absolute path, or set PATH in "env"`
	}
	if (p == PhaseInitialize || p == PhaseList) && s.diedEarly(err, c) {
		return joinHints(stray, s.environmentHint())
	}
	if p == PhaseConnect && s.def.Type == definition.HTTP && !errors.Is(err, ErrAborted) {
		return `check that the server is running and that "url" is right`
	}
	return ""
}

// joinHints makes one of two, either of which may be empty.
func joinHints(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// strayHint tells what a child wrote to stdout instead of messages before it was initialized (R-T2): a usage text, or the log of a
// program that is no server on stdio.
func (s *server) strayHint(p Phase, c *client) string {
	if c == nil || p != PhaseInitialize || s.def.Type != definition.Stdio {
		return ""
	}
	n, sample := c.link.skipped()
	if sample = s.line(sample, maxStray); n == 0 || sample == "" {
		return ""
	}
	return fmt.Sprintf("what it wrote to stdout is no MCP message (%s): check that this command is an MCP server on stdio", sample)
}

// timeoutHint names the setting that raises the limit that was met (B9).
func (s *server) timeoutHint() string {
	if s.launch.Timeout >= longestTimeout {
		return "this server has the longest timeout there is, 300 seconds"
	}
	return fmt.Sprintf(`raise "timeout" of this server in %s (now %d s, at most 300)`, s.def.Source, int(s.launch.Timeout/time.Second))
}

// diedEarly reports whether a child ended by itself before it was ready.
func (s *server) diedEarly(err error, c *client) bool {
	if c == nil || s.def.Type != definition.Stdio {
		return false
	}
	if _, tooLarge := errors.AsType[*jsonrpc.TooLargeError](err); tooLarge || errors.Is(err, context.Canceled) {
		return false
	}
	if _, exited := errors.AsType[*stdio.ExitError](err); exited { // its connection is about to know
		return true
	}
	select {
	case <-c.link.ended:
		return true
	default:
		return false
	}
}

// environmentHint says what the child did not get (R-C9, B12): names only, of variables that servers commonly need.
func (s *server) environmentHint() string {
	given := map[string]bool{}
	for _, v := range s.def.Env {
		given[strings.ToUpper(v.Name)] = true
	}
	var withheld []string
	for _, name := range commonVariables() {
		if given[strings.ToUpper(name)] {
			continue
		}
		if _, ok := s.o.Lookup(name); ok && len(withheld) < maxWithheld {
			withheld = append(withheld, name)
		}
	}
	var hint string
	if !given["HOME"] {
		hint = `the server gets no HOME: if it needs one, add "HOME": "${HOME}" to its "env"`
	}
	if len(withheld) > 0 {
		if hint != "" {
			hint += "; "
		}
		hint += "also set here but not passed on: " + strings.Join(withheld, ", ")
	}
	return hint
}

// commonVariables are those whose absence makes servers end at start.
func commonVariables() []string {
	return []string{
		"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
		"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
		"APPDATA", "LOCALAPPDATA", "USERPROFILE", "USER", "TMPDIR",
		"NVM_DIR", "VIRTUAL_ENV", "JAVA_HOME", "GOPATH", "CARGO_HOME", "DOCKER_HOST", "KUBECONFIG",
		"DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
	}
}

// maxLastWords is how much of a stderr tail goes into the sentence that a run gets, in bytes.
const maxLastWords = 600

// withLastWords puts the end of the server's stderr into the sentence itself, for runs, which get nothing but that (R-T5).
func withLastWords(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Stderr == "" {
		return err
	}
	told := *e
	tail := strings.TrimSpace(e.Stderr)
	if len(tail) > maxLastWords {
		tail = strings.ToValidUTF8(tail[len(tail)-maxLastWords:], "")
	}
	told.Text += "; its last words on stderr: " + untrusted.Line(tail)
	return &told
}
