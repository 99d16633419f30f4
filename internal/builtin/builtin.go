// Package builtin holds our own tools: read, list_files, find, grep, write, edit, bash.
package builtin

import (
	"context"

	"magi-code/internal/tool"
)

// Options say where the tools work.
type Options struct {
	Dir        string   // the workspace: absolute
	ExtraRoots []string // further absolute folders allowed by settings
	Env        []string // environment of bash, already without provider keys
	// Files, when not nil, replaces reading and writing of whole text files (an editor's unsaved buffers); path is absolute.
	Files Files
}

// Files reads and writes text files somewhere else than on disk.
type Files interface {
	ReadText(ctx context.Context, path string) (string, error)
	WriteText(ctx context.Context, path, text string) error
}

// Tools returns the tools, their schemas complete with intent.
func Tools(o Options) []tool.Tool { panic("to be built") }

// Preview returns the unified diff that a write or edit call would make, for the permission question; "" when the
// call is of another tool or would fail.
func Preview(ctx context.Context, o Options, c tool.Call) string { panic("to be built") }
