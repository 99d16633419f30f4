// Package definition says what .mcp.json says: strict parsing, structural errors, the redacted view, the
// canonical encoding that approvals commit to, ${VAR} expansion, and runtime checks.
package definition

import (
	"time"

	"magi-code/internal/secret"
)

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

// Pair is a name with its unexpanded value.
type Pair struct{ Name, Value string }

// OAuth are the settings of login, never expanded.
type OAuth struct {
	ClientID            string
	Scopes              []string
	AuthorizationServer string
}

// Server is one parsed, unexpanded definition, defaults filled in. It is a value; nobody changes its slices.
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
}

// Warning is something ignored in a file: unknown keys, a lookalike mistake.
type Warning struct{ Source, Server, Field, Text string }

// Config is both files together.
type Config struct {
	Servers  []Server // effective, sorted by name: a project server replaces the whole global one of that name
	Shadowed []Server // global definitions that a project server replaced
	Warnings []Warning
}

// MaxBytes bounds a .mcp.json.
const MaxBytes = 1 << 20

// Load reads configDir/.mcp.json and cwd/.mcp.json. A missing file is no error. Every structural error of both files
// is collected into the returned error (errors.Join of *Error), each naming file, line, column, server and field.
// When some entries are sound, Config holds them all the same, so that diagnostics can show them.
func Load(configDir, cwd string) (Config, error) { panic("to be built") }

// Error is a structural or runtime error of a definition.
type Error struct {
	Source       string
	Line, Column int // 0: not known
	Server       string
	Field        string
	Text         string // what is wrong, one sentence, no value of an expanded reference in it
	Hint         string // the cure
}

// Error returns `path:line:column: server "x": field: text`.
func (e *Error) Error() string { panic("to be built") }

// Canonical is the unambiguous, versioned, length-prefixed encoding of the definition, without source and
// name; approvals commit to it together with those.
func (s Server) Canonical() []byte { panic("to be built") }

// Line is one line of a redacted definition as a person reads it: Flag is set where they should look twice
// (loader variables, hidden characters, a plain http URL).
type Line struct{ Label, Value, Flag string }

// Redacted returns the unexpanded definition for display: references shown by name, literal env and header
// values masked, URL query masked, arguments that look like credentials masked, hidden characters visible.
func (s Server) Redacted() []Line { panic("to be built") }

// DisplayURL is scheme, host, port and path of an HTTP definition, sanitized; "" for stdio.
func (s Server) DisplayURL() string { panic("to be built") }

// Launch is a definition expanded and checked: ready to run. Formatting it tells no value.
type Launch struct {
	Name    string
	Source  string
	Type    Transport
	Command secret.String
	Args    []secret.String
	Env     []EnvVar
	URL     secret.String // parsed and checked; fragment removed
	ShowURL string        // scheme, host, port, path
	Headers []EnvVar
	Timeout time.Duration
	OAuth   *OAuth
}

// EnvVar is a name with its expanded value.
type EnvVar struct {
	Name  string
	Value secret.String
}

// Expand expands ${VAR} and ${VAR:-default} once in command, args, env values, url and header values, and checks the
// result: commands, URLs, headers, timeout. Errors name server, field and variable, never a value.
func (s Server) Expand(lookup func(name string) (string, bool)) (Launch, error) { panic("to be built") }

// Secrets returns the values that a scrubber must know: header values, env values and URL query values, as well as
// arguments that came from a reference; without those that are plainly no secret (absolute paths, numbers,
// booleans, well-known variables such as HOME, PATH, LANG, USER).
func (l Launch) Secrets() []secret.String { panic("to be built") }
