// Package builtin holds our own tools: read, list_files, find, grep, write, edit, bash.
//
// Paths are relative to the workspace or absolute; whatever they name after all symbolic links lies inside the
// workspace or one of the extra roots, which os.Root enforces when a file is opened. bash is a shell and has no such
// walls: permissions decide about it.
package builtin

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/tool"
)

// Names of the tools.
const (
	nameRead      = "read"
	nameListFiles = "list_files"
	nameFind      = "find"
	nameGrep      = "grep"
	nameWrite     = "write"
	nameEdit      = "edit"
	nameBash      = "bash"
)

// Options say where the tools work.
type Options struct {
	Dir        string   // the workspace: absolute
	ExtraRoots []string // further absolute folders allowed by settings
	Env        []string // environment of bash, already without provider keys
	// Files, when not nil, replaces reading and writing of whole text files (an editor's unsaved buffers); path is absolute.
	Files Files
	// Protected are absolute files and folders that hold our own state, such as MC_HOME: searches pass them over, and
	// TouchesProtected tells of every call that names them.
	Protected []string
}

// Files reads and writes text files somewhere else than on disk.
type Files interface {
	ReadText(ctx context.Context, path string) (string, error)
	WriteText(ctx context.Context, path, text string) error
}

// toolset is what the tools of one workspace share.
type toolset struct {
	o Options
	// changing is held from reading a file to writing it, so that calls that run side by side lose no change.
	changing sync.Mutex
}

// Tools returns the tools, their schemas complete with intent.
func Tools(o Options) []tool.Tool {
	t := &toolset{o: o}
	one := func(name, description, schema string, readOnly bool, run func(context.Context, tool.Call) (tool.Result, error)) tool.Tool {
		return tool.Tool{
			Name: name, Description: description, Schema: jsontext.Value(schema),
			Origin: tool.Builtin, ReadOnly: readOnly, Run: run,
		}
	}
	return []tool.Tool{
		one(nameRead, readDescription, readSchema, true, t.read),
		one(nameListFiles, listDescription, listSchema, true, t.list),
		one(nameFind, findDescription, findSchema, true, t.find),
		one(nameGrep, grepDescription, grepSchema, true, t.grep),
		one(nameWrite, writeDescription, writeSchema, false, t.write),
		one(nameEdit, editDescription, editSchema, false, t.edit),
		one(nameBash, bashDescription, bashSchema, false, t.bash),
	}
}

// intentProperty is the member of every schema that says why.
const intentProperty = `"intent":{"type":"string","description":"why, in one sentence"}`

// failed is the result of a call that could not do what was asked, in a sentence for the model.
func failed(err error) (tool.Result, error) { return tool.ErrorResult(err.Error()), nil }
