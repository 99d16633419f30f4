package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"magi-code/internal/tool"
)

const (
	listDescription = "List a folder. Folders end in /. .git and node_modules are not entered unless path names them."
	listSchema      = `{"type":"object","properties":{` + intentProperty + `,` +
		`"path":{"type":"string","description":"Folder; default the workspace."},` +
		`"depth":{"type":"integer","description":"Levels; default 1, at most 8."},` +
		`"limit":{"type":"integer","description":"Entries; default 500, at most 2000."}},` +
		`"required":["intent"],"additionalProperties":false}`

	findDescription = "Find files and folders by a glob such as *.go or src/**/*_test.{ts,tsx}; a pattern without / matches names at any depth. " +
		".git and node_modules are not searched unless path names them."
	findSchema = `{"type":"object","properties":{` + intentProperty + `,` +
		`"pattern":{"type":"string"},` +
		`"path":{"type":"string","description":"Folder that the pattern is relative to; default the workspace."},` +
		`"limit":{"type":"integer","description":"Results; default 200, at most 2000."}},` +
		`"required":["intent","pattern"],"additionalProperties":false}`

	defaultDepth  = 1
	maxListDepth  = 8
	defaultListed = 500
	defaultFound  = 200
	maxListed     = 2000
	maxListBytes  = 100 << 10 // of the result
	maxLinkTarget = 256       // bytes shown of where a link leads
)

type listArgs struct {
	Path  string `json:"path"`
	Depth number `json:"depth"`
	Limit number `json:"limit"`
}

type findArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Limit   number `json:"limit"`
}

func (t *toolset) list(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := arguments[listArgs](c)
	if err != nil {
		return failed(err)
	}
	depth := a.Depth.or(defaultDepth)
	if err := within("depth", depth, 1, maxListDepth); err != nil {
		return failed(err)
	}
	return t.collect(ctx, a.Path, depth, a.Limit.or(defaultListed), "the folder is empty", func(entry) bool { return true })
}

func (t *toolset) find(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := arguments[findArgs](c)
	if err != nil {
		return failed(err)
	}
	g, err := compileGlob(a.Pattern)
	if err != nil {
		return failed(err)
	}
	return t.collect(ctx, a.Path, maxDepth, a.Limit.or(defaultFound), "nothing matches", func(e entry) bool { return g.match(e.rel) })
}

// collect lists what a walk finds and keep wants, one path a line.
func (t *toolset) collect(ctx context.Context, path string, depth, limit int, nothing string, keep func(entry) bool) (tool.Result, error) {
	if err := within("limit", limit, 1, maxListed); err != nil {
		return failed(err)
	}
	at, err := t.searchPlace(path)
	if err != nil {
		return failed(err)
	}
	var text strings.Builder
	found, more := 0, false
	w, err := t.o.walk(ctx, at, depth, func(e entry) error {
		if !keep(e) {
			return nil
		}
		if found == limit || text.Len() > maxListBytes {
			more = true
			return errStop
		}
		found++
		text.WriteString(describeEntry(at.under(e.rel), e))
		return nil
	})
	if err != nil {
		return failed(err)
	}
	if found == 0 {
		text.WriteString("[" + nothing + "]\n")
	}
	if more {
		fmt.Fprintf(&text, "[only the first %d are shown: give a narrower path or pattern, or a higher limit]\n", found)
	}
	text.WriteString(w.notes())
	return tool.TextResult(strings.TrimSuffix(text.String(), "\n")), nil
}

func describeEntry(shown string, e entry) string {
	shown = oneLine(shown)
	switch {
	case e.IsDir():
		return shown + "/\n"
	case e.Type()&fs.ModeSymlink != 0:
		if target, err := e.dir.Readlink(e.name); err == nil {
			return shown + " -> " + oneLine(clip(target, maxLinkTarget)) + "\n"
		}
	}
	return shown + "\n"
}

// searchPlace locates a folder or file to search; "" is the workspace.
func (t *toolset) searchPlace(path string) (place, error) {
	if path == "" {
		path = "."
	}
	at, err := t.o.locate(path)
	if err != nil {
		return place{}, err
	}
	st, err := os.Stat(at.abs)
	if err != nil {
		return place{}, explain(err, path)
	}
	if !st.IsDir() {
		return at, fmt.Errorf("%q: %w", clip(path, maxShownPath), errNoFolder)
	}
	return at, nil
}

// errNoFolder is wrapped when a folder was expected and something else is there.
var errNoFolder = errors.New("not a folder")
