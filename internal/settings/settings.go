// Package settings reads settings.json (global in $MC_HOME, project in <cwd>/.magi-code) and patches one
// path of it, keeping everything else byte for byte.
package settings

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxBytes bounds a settings file.
const MaxBytes = 1 << 20

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

// Warning is something in a settings file that was ignored.
type Warning struct{ Path, Key, Text string }

// Load reads both files. A missing file is no error; a malformed one is, with file, line and column.
// capabilities.mcp_approvals in the project file is ignored with a Warning.
func Load(globalPath, projectPath string) (Settings, []Warning, error) { panic("to be built") }

// Raw returns the value at a key path of one file, or nil when it is not there.
func Raw(path string, keys ...string) (jsontext.Value, error) { panic("to be built") }

// Patch sets one key path of a settings file to value (a JSON value; nil removes the key), under a
// cross-process lock, in the newest contents, keeping unknown fields, order, comments-free formatting and mode.
// The result is validated before sync-and-rename. A missing file is created 0600.
func Patch(ctx context.Context, path string, keys []string, value jsontext.Value) error {
	panic("to be built")
}
