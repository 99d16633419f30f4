// Package codemode runs a bounded JavaScript function body whose only door to the world is the functions it was given.
package codemode

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound one script.
type Limits struct {
	Source int           // bytes of source; 64 KiB
	Calls  int           // tool calls; 200
	Time   time.Duration // wall time, calls included; 60 s
	Memory int           // engine heap; 32 MiB
	Stack  int           // engine stack
	Result int           // bytes of one call's result as the script sees it; 1 MiB
	Return int           // bytes of what the script returns as JSON; 256 KiB
}

// DefaultLimits are those of the requirements.
func DefaultLimits() Limits { panic("to be built") }

// ToolInfo is what a script learns about a tool.
type ToolInfo struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      jsontext.Value `json:"inputSchema,omitempty"` // describe only
}

// Outcome of one inner call, as the script sees it: {success, content} or {success:false, error}.
type Outcome struct {
	Success bool           `json:"success"`
	Content jsontext.Value `json:"content,omitempty"` // a JSON string for text, or an object/array for structured content
	Error   string         `json:"error,omitempty"`
}

// Host is the world of a script.
type Host struct {
	Tools []ToolInfo // what can be called, in order
	// Call makes one call on the very path of direct calls. It never panics and may be called concurrently (callAll).
	Call func(ctx context.Context, name string, input jsontext.Value) Outcome
}

// Run executes source as a function body and returns what it returned as JSON (null for undefined). Errors say in one
// sentence what the script did wrong or which limit ended it, with line numbers of the script.
// Console output (console.log) is returned too, bounded.
func Run(ctx context.Context, source string, h Host, l Limits) (value jsontext.Value, console string, err error) {
	panic("to be built")
}
