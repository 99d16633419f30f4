// Package settings reads settings.json (global in $MC_HOME, project in <cwd>/.magi-code) and patches one
// path of it, keeping everything else byte for byte.
//
// The file is strict JSON without comments. Unknown keys are ignored with a warning; a key that differs from a known one in case alone is
// an error, because a rule that is read over (deny) would fail open. A null is never a value: leave a key out instead.
package settings

import (
	"errors"
	"fmt"
	"io/fs"

	"magi-code/internal/jsondoc"
	"magi-code/internal/safefile"
)

// MaxBytes bounds a settings file.
const MaxBytes = 1 << 20

const (
	defaultResultLimit = 100 << 10 // bytes of text of a result shown to the model
	maxResultLimit     = 16 << 20  // as large as a message may be
	defaultMaxTurns    = 100       // provider round trips of one turn
	maxMaxTurns        = 10_000
	defaultHookTimeout = 10_000 // ms
	maxHookTimeout     = 60_000 // ms
)

// Settings is the merged, typed view. Project values override global ones except where a field says global only;
// lists of rules are joined, and a project can add deny and ask rules but no allow rules.
type Settings struct {
	Provider  string              // default provider
	Model     string              // default model
	Endpoints map[string]Endpoint // custom Chat Completions endpoints, by name (global only)
	Allow     []string            // permissions.allow (global only)
	Ask       []string            // permissions.ask
	Deny      []string            // permissions.deny
	// ExcludeDirect is capabilities.tools.disabled, ExcludeCodeMode is capabilities.tools.code_mode.disabled: tool name patterns.
	ExcludeDirect, ExcludeCodeMode []string
	Hooks                          []Hook   // hooks (global only)
	WorkspaceRoots                 []string // workspace.extra_roots (global only): absolute folders that built-in tools may use besides the cwd
	ResultLimit                    int      // capabilities.mcp_result_bytes: text bytes of a result shown to the model; default 102400
	MaxTurns                       int      // max_turns: provider round trips of one turn; default 100
}

// Endpoint is an OpenAI-compatible Chat Completions service.
type Endpoint struct {
	BaseURL   string // https, or http to loopback
	APIKeyEnv string // name of the environment variable with the key; empty when none is needed
	Model     string // default model
}

// Hook is a configured command around tools.
type Hook struct {
	Event     string   // before_tool, after_tool
	Tools     []string // tool name patterns; empty means all
	Command   []string // argv, no shell
	TimeoutMs int      // default 10000, at most 60000
	OnFailure string   // warn (default) or block
}

// Warning is something in a settings file that was ignored. Key and Text are safe to show.
type Warning struct{ Path, Key, Text string }

// Error is a mistake in a settings file.
type Error struct {
	Path         string
	Line, Column int    // 0: not known
	Key          string // dotted; "" for the whole file
	Text         string // one sentence
	Hint         string // the cure, may be empty
	Cause        error
}

// Error returns `path:line:column: key: text`.
func (e *Error) Error() string {
	place := e.Path
	if e.Line > 0 {
		place += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	if e.Key != "" {
		place += ": " + e.Key
	}
	return place + ": " + e.Text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Load reads both files. A missing file is no error; a malformed one is, with file, line and column (errors.Join of *Error).
// capabilities.mcp_approvals in the project file is ignored with a Warning. Where both paths are one file it is the global one.
func Load(globalPath, projectPath string) (Settings, []Warning, error) {
	global, err1 := loadFile(globalPath, false)
	project := &reader{}
	var err2 error
	if projectPath != globalPath {
		project, err2 = loadFile(projectPath, true)
	}
	s := merge(global.s, project.s)
	return s, append(global.warnings, project.warnings...), errors.Join(err1, err2)
}

// loadFile reads one file; the reader is empty when it is missing.
func loadFile(path string, project bool) (*reader, error) {
	r := &reader{path: path, project: project}
	data, root, err := parse(path)
	if err != nil || root == nil {
		return r, err
	}
	r.data = data
	r.document(root)
	return r, errors.Join(r.errs...)
}

// parse reads a file's JSON; root is nil when the file is missing or has nothing in it.
func parse(path string) (data []byte, root *jsondoc.Value, err error) {
	data, err = safefile.Read(path, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, &Error{Path: path, Text: "the file cannot be read", Hint: "it must be a regular file of at most 1 MiB that you may read", Cause: err}
	}
	root, err = parseBytes(path, data)
	return data, root, err
}

// parseBytes reads JSON; nil when there is nothing but white space.
func parseBytes(path string, data []byte) (*jsondoc.Value, error) {
	if isBlank(data) {
		return nil, nil
	}
	root, err := jsondoc.Parse(data)
	if err == nil {
		return root, nil
	}
	e := &Error{Path: path, Text: "the file is not JSON", Cause: err}
	if syn, ok := errors.AsType[*jsondoc.SyntaxError](err); ok {
		e.Line, e.Column, e.Text, e.Hint = syn.Line, syn.Column, syn.Text, syn.Hint
	}
	return nil, e
}

// isBlank reports whether data has nothing but white space.
func isBlank(data []byte) bool {
	for _, c := range data {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// merge puts a project's values over the global ones and fills in the defaults. What is global only is not in project.
func merge(s, project Settings) Settings {
	if project.Provider != "" {
		s.Provider, s.Model = project.Provider, "" // a model belongs to its provider
	}
	if project.Model != "" {
		s.Model = project.Model
	}
	s.Ask = append(s.Ask, project.Ask...)
	s.Deny = append(s.Deny, project.Deny...)
	s.ExcludeDirect = append(s.ExcludeDirect, project.ExcludeDirect...)
	s.ExcludeCodeMode = append(s.ExcludeCodeMode, project.ExcludeCodeMode...)
	for _, n := range []struct {
		to         *int
		from, none int
	}{{&s.ResultLimit, project.ResultLimit, defaultResultLimit}, {&s.MaxTurns, project.MaxTurns, defaultMaxTurns}} {
		if n.from != 0 {
			*n.to = n.from
		}
		if *n.to == 0 {
			*n.to = n.none
		}
	}
	return s
}
