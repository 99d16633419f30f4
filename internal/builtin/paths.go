package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"magi-code/internal/tool"
)

// errOutside is wrapped when a path leads out of every allowed folder.
var errOutside = errors.New("outside the workspace; add the folder to workspace.extra_roots in $MC_HOME/settings.json to allow it")

// place is a file or folder inside an allowed root, all symbolic links resolved. It need not exist.
type place struct {
	root  string // absolute, to be opened with os.OpenRoot
	rel   string // below root; "." is root itself
	abs   string
	shown string // how results name it: relative to the workspace when inside it, with slashes
}

// locate finds the place that a model's path names. What it finds is only a promise: os.Root holds it when the
// file is opened, should a link have changed meanwhile.
func (o Options) locate(path string) (place, error) {
	if path == "" {
		return place{}, errors.New("path is empty")
	}
	if strings.ContainsRune(path, 0) {
		return place{}, errors.New("path contains a NUL character")
	}
	if path == "~" || strings.HasPrefix(path, "~/") {
		return place{}, errors.New("path begins with ~, which is not expanded; write a path inside the workspace")
	}
	abs := path
	if !filepath.IsAbs(abs) {
		if filepath.VolumeName(path) != "" || os.IsPathSeparator(path[0]) { // on Windows, of a drive's current folder or top
			return place{}, fmt.Errorf("%q is %w", clip(path, maxShownPath), errOutside)
		}
		abs = filepath.Join(o.Dir, abs)
	}
	abs, err := realPath(filepath.Clean(abs))
	if err != nil {
		return place{}, explain(err, path)
	}
	for i, root := range append([]string{o.Dir}, o.ExtraRoots...) {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue // an extra root that is gone allows nothing
		}
		rel, ok := below(root, abs)
		if !ok {
			continue
		}
		shown := abs
		if i == 0 {
			shown = rel
		}
		return place{root: root, rel: rel, abs: abs, shown: filepath.ToSlash(shown)}, nil
	}
	return place{}, fmt.Errorf("%q is %w", clip(path, maxShownPath), errOutside)
}

// maxShownPath bounds in bytes how much of a path an error repeats.
const maxShownPath = 512

// below returns path relative to root when it is root or inside it.
func below(root, path string) (string, bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

// realPath resolves the symbolic links of as much of a path as exists. A link to nothing is an error: to write "through"
// it would replace it.
func realPath(abs string) (string, error) {
	rest := ""
	for at := abs; ; {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if _, lerr := os.Lstat(at); lerr == nil {
			return "", errors.New("is a symbolic link to something that does not exist")
		}
		up := filepath.Dir(at)
		if up == at {
			return "", err
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = up
	}
}

// explain turns an error of the file system into one sentence that names the path as the model wrote it.
func explain(err error, path string) error {
	path = clip(path, maxShownPath)
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q does not exist", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%q: permission denied", path)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%q: a part of the path is not a folder", path)
	case errors.As(err, &pe):
		return fmt.Errorf("%q: %w", path, pe.Err)
	}
	return fmt.Errorf("%q: %w", path, err)
}

// kindOf says what something that is not a regular file is.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder; use list_files"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}

// openRegular opens a regular file of a root for reading; it never waits for the other end of a pipe. Links are not
// followed when the name was found in a folder, since their targets are found by themselves.
func openRegular(root *os.Root, rel string) (*os.File, fs.FileInfo, error) {
	st, err := root.Stat(rel)
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, errors.New("is " + kindOf(st.Mode()))
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() {
		err = errors.New("is " + kindOf(st.Mode()))
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// TouchesProtected reports whether a call of a file tool names something that no rule may allow in advance, so that
// a person has to be asked: for write and edit the files that decide what runs (.mcp.json, .magi-code, .git), and for all
// file tools what Options.Protected lists. A call that would fail is false. It knows nothing of what bash does.
func TouchesProtected(o Options, c tool.Call) bool {
	writes := false
	switch c.Name {
	case nameWrite, nameEdit:
		writes = true
	case nameRead, nameListFiles, nameFind, nameGrep:
	default:
		return false
	}
	path := pathOf(c)
	if path == "" {
		return false
	}
	at, err := o.locate(path)
	if err != nil {
		return false
	}
	// The name is looked at both as written and with links resolved: replacing either changes what runs.
	asWritten := filepath.Clean(path)
	if !filepath.IsAbs(asWritten) {
		asWritten = filepath.Join(o.Dir, asWritten)
	}
	if writes {
		lexical, in := below(o.Dir, asWritten)
		if decidesWhatRuns(at.rel) || in && decidesWhatRuns(lexical) {
			return true
		}
	}
	return o.protected(at.abs) || o.protected(asWritten)
}

// decidesWhatRuns reports whether a path inside a root is one of the files that start programs or grant rights. Case is
// ignored, as some file systems do.
func decidesWhatRuns(rel string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		switch fold(part) {
		case ".mcp.json", ".magi-code", ".git":
			return true
		}
	}
	return false
}

// fold makes names equal that a file system without case takes for one: through upper case, because the long s is an S there.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// protected reports whether path is, or lies in, one of Options.Protected, under whatever name.
func (o Options) protected(path string) bool {
	for _, p := range o.Protected {
		for _, name := range []string{p, realOr(p)} {
			if _, in := below(fold(name), fold(path)); in {
				return true
			}
		}
		if a, err := os.Stat(p); err == nil {
			if b, err := os.Stat(path); err == nil && os.SameFile(a, b) {
				return true
			}
		}
	}
	return false
}

func realOr(path string) string {
	if real, err := realPath(path); err == nil {
		return real
	}
	return path
}

// pathOf is the path argument of a call of a file tool, "" when there is none.
func pathOf(c tool.Call) string {
	text := c.Arguments
	if len(text) == 0 {
		text = c.Input
	}
	var a struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(text, &a) != nil {
		return ""
	}
	return a.Path
}
