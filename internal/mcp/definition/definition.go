// Package definition says what .mcp.json says: strict parsing, structural errors, the redacted view, the
// canonical encoding that approvals commit to, ${VAR} expansion, and runtime checks.
//
// Parsing finds what is structurally wrong in every entry, approved or not, and keeps the text of values as written.
// Expand, for approved entries only, replaces references and checks what will really be used. A null is never a value
// here: leave a field out instead. The field enabled is read over; approval alone decides.
package definition

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// FileName is the name of a definition file in its folder.
const FileName = ".mcp.json"

// Transport is how a server is reached.
type Transport string

const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
)

// Scope is which of the two files a definition came from.
type Scope string

const (
	Global  Scope = "global"
	Project Scope = "project"
)

// Pair is a name with its unexpanded value. Formatting it tells no value.
type Pair struct{ Name, Value string }

// Format writes the name alone, for every verb.
func (p Pair) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(untrusted.Line(p.Name) + "=" + secret.Redacted))
}

// OAuth are the settings of login, never expanded.
type OAuth struct {
	ClientID            string
	Scopes              []string
	AuthorizationServer string
}

// Server is one parsed, unexpanded definition, defaults filled in. It is a value; nobody changes its slices.
// Formatting it tells name, type and source alone.
type Server struct {
	Name    string
	Source  string // canonical absolute path of its file (symlinks resolved)
	Scope   Scope
	Type    Transport
	Command string
	Args    []string
	Env     []Pair // sorted by name
	URL     string
	Headers []Pair // sorted by lower-case name, then name
	Timeout int    // seconds, default 30; its range is a runtime check
	OAuth   *OAuth // nil: none

	oddTimeout   string // the literal of a timeout that is no whole number of 32 bits; Timeout is 0 then
	line, column int    // where the entry stands; 0: not known
}

// Format writes name, type and source, for every verb: the rest may hold literal secrets.
func (s Server) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.summary())) }

// LogValue is what a log says of a definition.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.summary()) }

// summary names a definition.
func (s Server) summary() string {
	return untrusted.Line(fmt.Sprintf("server %q (%s, %s)", s.Name, s.Type, s.Source))
}

// Warning is something ignored in a file: unknown keys, a lookalike mistake. All but Source is safe to show.
type Warning struct{ Source, Server, Field, Text string }

// Config is both files together.
type Config struct {
	Servers  []Server // effective, sorted by name: a project server replaces the whole global one of that name
	Shadowed []Server // global definitions that a project server replaced
	Warnings []Warning
}

// MaxBytes bounds a .mcp.json.
const MaxBytes = 1 << 20

// Error is a structural or runtime error of a definition.
type Error struct {
	Source       string
	Line, Column int // 0: not known
	Server       string
	Field        string
	Text         string // what is wrong, one sentence, no value of an expanded reference in it
	Hint         string // the cure, ours as Text is
	Cause        error  // nil unless the file could not be read
}

// shownName bounds the foreign names in an error.
const shownName = 80

// Error returns `path:line:column: server "x": field: text`, leaving out what is not known.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Source)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Server != "" {
		fmt.Fprintf(&b, "server %q: ", untrusted.Head(e.Server, shownName))
	}
	if e.Field != "" {
		b.WriteString(untrusted.Visible(untrusted.Head(e.Field, shownName)) + ": ")
	}
	b.WriteString(e.Text)
	return untrusted.Line(b.String())
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Line is one line of a redacted definition as a person reads it: Flag is set where they should look twice
// (loader variables, hidden characters, a plain http URL).
type Line struct{ Label, Value, Flag string }

// Launch is a definition expanded and checked: ready to run. Formatting it tells no value.
type Launch struct {
	Name    string
	Source  string
	Type    Transport
	Command secret.String
	Args    []secret.String
	Env     []EnvVar
	URL     secret.String // parsed and checked; fragment removed
	ShowURL string        // scheme, host, port, path; a reference within the path stands by its name
	Headers []EnvVar
	Timeout time.Duration
	OAuth   *OAuth

	learned []secret.String // what Secrets returns
}

// EnvVar is a name with its expanded value.
type EnvVar struct {
	Name  string
	Value secret.String
}
