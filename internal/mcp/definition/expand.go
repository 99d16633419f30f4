package definition

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"magi-code/internal/secret"
)

// MaxTimeout is the longest timeout of a request, in seconds.
const MaxTimeout = 300

// Expand expands ${VAR} and ${VAR:-default} once in command, args, env values, url and header values, and checks the
// result: commands, URLs, headers, timeout, and the OAuth settings. The error joins one *Error per fault; they name
// server, field and variable, never a value.
func (s Server) Expand(lookup func(name string) (string, bool)) (Launch, error) {
	x := &expander{server: s, lookup: lookup}
	l := Launch{Name: s.Name, Source: s.Source, Type: s.Type, Timeout: time.Duration(x.timeout()) * time.Second}
	switch s.Type {
	case Stdio:
		x.stdio(&l)
	case HTTP:
		x.http(&l)
	default:
		x.fail("type", "the definition has no type", "")
	}
	if len(x.errs) > 0 {
		return Launch{}, errors.Join(x.errs...)
	}
	l.learned = x.learned()
	return l, nil
}

// expander expands and checks one definition.
type expander struct {
	server Server
	lookup func(string) (string, bool)
	errs   []error
	values []value // every expanded value, for Secrets
}

// value is an expanded value and where it came from.
type value struct {
	kind string // "env", "header", "arg", "command", "url"
	name string // of the variable or header
	text string
	refs []reference
}

// reference is what one ${...} became.
type reference struct {
	name, text string
	fromEnv    bool // and not from its fallback
}

// fail records a fault of a field.
func (x *expander) fail(field, text, hint string) {
	s := x.server
	x.errs = append(x.errs, &Error{
		Source: s.Source, Line: s.line, Column: s.column, Server: s.Name, Field: field, Text: text, Hint: hint,
	})
}

// expand returns a value with its references replaced, once; ok is false when something was wrong and recorded.
func (x *expander) expand(kind, name, field, raw string) (text string, ok bool) {
	parts, err := split(raw)
	if err != nil {
		x.fail(field, err.Error(), "a name has letters, digits and _ and begins with no digit")
		return "", false
	}
	v := value{kind: kind, name: name}
	var b strings.Builder
	ok = true
	for _, p := range parts {
		if p.name == "" {
			b.WriteString(p.literal)
			continue
		}
		r, found := x.resolve(p, field)
		ok = ok && found
		b.WriteString(r.text)
		v.refs = append(v.refs, r)
	}
	v.text = b.String()
	if ok && strings.ContainsRune(v.text, 0) {
		x.fail(field, "the value holds a NUL character", "remove it from the definition or the variable")
		ok = false
	}
	x.values = append(x.values, v)
	return v.text, ok
}

// resolve looks up one reference. An empty variable stays empty.
func (x *expander) resolve(p part, field string) (reference, bool) {
	if x.lookup != nil {
		if v, set := x.lookup(p.name); set {
			return reference{p.name, v, true}, true
		}
	}
	if p.hasElse {
		return reference{p.name, p.fallback, false}, true
	}
	x.fail(field, "the variable "+p.name+" is not set and has no default", "set it, or write ${"+p.name+":-default}")
	return reference{name: p.name}, false
}

// timeout checks the timeout and returns it in seconds.
func (x *expander) timeout() int {
	const hint = "write a whole number from 1 to 300"
	s := x.server
	switch {
	case s.oddTimeout != "":
		x.fail("timeout", "the timeout is not a whole number of seconds from 1 to 300", hint)
	case s.Timeout < 1 || s.Timeout > MaxTimeout:
		x.fail("timeout", fmt.Sprintf("the timeout is %d seconds and must be from 1 to %d", s.Timeout, MaxTimeout), hint)
	default:
		return s.Timeout
	}
	return 0
}

// stdio expands and checks what starts a child process.
func (x *expander) stdio(l *Launch) {
	command, ok := x.expand("command", "", "command", x.server.Command)
	if ok && strings.TrimSpace(command) == "" {
		x.fail("command", "the command is empty", "name the program to start")
	}
	if ok && strings.HasPrefix(command, "~/") {
		x.fail("command", "nobody expands the ~ of the command, because no shell runs it", "write ${HOME}/ in its place")
	}
	l.Command = secret.New(command)
	for i, a := range x.server.Args {
		text, _ := x.expand("arg", "", fmt.Sprintf("args[%d]", i), a)
		l.Args = append(l.Args, secret.New(text))
	}
	seen := map[string]bool{}
	for _, p := range x.server.Env {
		field := "env." + p.Name
		switch folded := strings.ToUpper(p.Name); {
		case p.Name == "":
			x.fail("env", "a variable has an empty name", "name it or remove it")
		case strings.ContainsAny(p.Name, "=\x00"):
			x.fail(field, "the name of a variable must not contain = or NUL", "rename it")
		case runtime.GOOS == "windows" && seen[folded]:
			x.fail(field, "the variable stands twice, in different case", "keep one of the two")
		default:
			seen[folded] = true
		}
		text, _ := x.expand("env", p.Name, field, p.Value)
		l.Env = append(l.Env, EnvVar{p.Name, secret.New(text)})
	}
}

// http expands and checks what reaches an endpoint.
func (x *expander) http(l *Launch) {
	before := len(x.errs)
	text, ok := x.expand("url", "", "url", x.server.URL)
	if ok {
		x.checkURL("url", text)
	}
	if len(x.errs) == before {
		l.URL = secret.New(withoutFragment(text))
		l.ShowURL = x.showURL(text)
	}
	for _, p := range x.server.Headers {
		text, ok := x.expand("header", p.Name, "headers."+p.Name, p.Value)
		x.checkHeader(p.Name, text, ok)
		l.Headers = append(l.Headers, EnvVar{p.Name, secret.New(text)})
	}
	if o := x.server.OAuth; o != nil {
		x.checkOAuth(*o)
		l.OAuth = &OAuth{o.ClientID, append([]string(nil), o.Scopes...), o.AuthorizationServer}
	}
}
