package definition

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"magi-code/internal/jsondoc"
	"magi-code/internal/safefile"
)

// Load reads configDir/.mcp.json and cwd/.mcp.json. A missing file is no error. Every structural error of both files
// is collected into the returned error (errors.Join of *Error), each naming file, line, column, server and field.
// When some entries are sound, Config holds them all the same, so that diagnostics can show them.
// Where both paths lead to one file it counts as the global one.
func Load(configDir, cwd string) (Config, error) {
	global := load(filepath.Join(configDir, FileName), Global)
	project := load(filepath.Join(cwd, FileName), Project)
	if project.real != "" && project.real == global.real {
		project = file{}
	}
	var c Config
	for _, s := range global.servers {
		if project.has(s.Name) { // a broken project entry too: falling back would run what was replaced
			c.Shadowed = append(c.Shadowed, s)
		} else {
			c.Servers = append(c.Servers, s)
		}
	}
	c.Servers = append(c.Servers, project.servers...)
	for _, s := range [][]Server{c.Servers, c.Shadowed} {
		slices.SortFunc(s, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	}
	c.Warnings = append(global.warnings, project.warnings...)
	c.Warnings = append(c.Warnings, twinsAcross(global, project)...)
	return c, errors.Join(append(global.errs, project.errs...)...)
}

// LoadSource reads one definition file: its sound entries in the file's order, its warnings, and all its structural errors as Load
// gives them. A missing file yields nothing.
func LoadSource(path string, scope Scope) ([]Server, []Warning, error) {
	f := load(path, scope)
	return f.servers, f.warnings, errors.Join(f.errs...)
}

// CheckText returns the structural errors that the text of a definition file has, as Load would find them in it.
func CheckText(data []byte) error { return errors.Join(parse(data, FileName, Project).errs...) }

// file is what one definition file gave.
type file struct {
	path     string // canonical; "" when there is no file
	real     string // all links resolved; "" when there is no file
	names    []string
	servers  []Server
	warnings []Warning
	errs     []error
}

// has reports whether the file defines name, soundly or not.
func (f file) has(name string) bool { return slices.Contains(f.names, name) }

// load reads and parses the file at path under its canonical name.
func load(path string, scope Scope) file {
	source, real, err := canonical(path, scope)
	if errors.Is(err, fs.ErrNotExist) {
		return missing(path)
	}
	if err != nil {
		return file{path: path, real: path, errs: []error{unreadable(path, err)}}
	}
	data, err := safefile.Read(real, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return file{}
	}
	if err != nil {
		return file{path: source, real: real, errs: []error{unreadable(real, err)}}
	}
	f := parse(data, source, scope)
	f.real = real
	return f
}

// CanonicalPath returns the absolute path of a definition file with symbolic links resolved, under which its servers
// are approved; two spellings of one file give one path.
//
// A project's file that is itself a link out of its folder keeps its own name: a repository that links to the file of another
// project would else be given that one's approvals, and its programs would run in the wrong folder.
func CanonicalPath(path string, scope Scope) (string, error) {
	source, _, err := canonical(path, scope)
	return source, err
}

// canonical is CanonicalPath with the path that is read.
func canonical(path string, scope Scope) (source, real string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	if real, err = filepath.EvalSymlinks(abs); err != nil || scope != Project {
		return real, real, err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", "", err
	}
	if rel, err := filepath.Rel(folder, real); err != nil || !filepath.IsLocal(rel) {
		return filepath.Join(folder, filepath.Base(abs)), real, nil
	}
	return real, real, nil
}

// missing is a file that is not there; of a link that leads nowhere it warns.
func missing(path string) file {
	var f file
	if _, err := os.Lstat(path); err == nil {
		f.warnings = append(f.warnings, Warning{Source: path, Text: "a symbolic link whose target does not exist, ignored"})
	}
	return f
}

// unreadable says why a file that is there cannot be read.
func unreadable(path string, err error) *Error {
	e := &Error{Source: path, Text: "the file cannot be read", Cause: err}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		e.Text += ": " + pe.Err.Error()
	} else if no, ok := errors.AsType[syscall.Errno](err); ok {
		e.Text += ": " + no.Error()
	}
	switch {
	case errors.Is(err, safefile.ErrNotRegular):
		e.Text = "it is not a regular file"
	case errors.Is(err, safefile.ErrTooLarge):
		e.Text = "the file is larger than 1 MiB"
	case errors.Is(err, fs.ErrPermission):
		e.Text, e.Hint = "the file may not be read", "check its permissions"
	default:
		e.Hint = "check that its folder is one that you may read"
	}
	return e
}

// parse reads the text of one file.
func parse(data []byte, source string, scope Scope) file {
	f := file{path: source}
	root, err := jsondoc.Parse(data)
	if err != nil {
		e := &Error{Source: source, Text: err.Error()}
		if syn, ok := errors.AsType[*jsondoc.SyntaxError](err); ok {
			e.Line, e.Column, e.Text, e.Hint = syn.Line, syn.Column, syn.Text, syn.Hint
		}
		f.errs = append(f.errs, e)
		return f
	}
	p := &parser{file: &f, places: jsondoc.NewPlaces(data), scope: scope}
	p.document(root)
	return f
}

// twinsAcross warns of names that differ between the files in case alone: on some systems they share a token file.
func twinsAcross(global, project file) []Warning {
	folded := map[string]string{}
	for _, name := range global.names {
		folded[strings.ToLower(name)] = name
	}
	var out []Warning
	for _, name := range project.names {
		if twin, found := folded[strings.ToLower(name)]; found && twin != name {
			out = append(out, Warning{project.path, name, "", "the global file defines a server whose name differs in case alone; both count"})
		}
	}
	return out
}
