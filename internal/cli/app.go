package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// app is what every command stands on: the streams, the environment and the folders of this process.
type app struct {
	in       io.Reader
	out, err io.Writer
	lookup   func(string) (string, bool)
	environ  []string
	scrub    *secret.Scrubber // knows every secret that this process has learnt
	inTTY    bool
	outTTY   bool
	terminal terminal
}

func newApp(out *output) *app {
	return &app{
		in: os.Stdin, out: out, err: os.Stderr,
		lookup: os.LookupEnv, environ: os.Environ(), scrub: secret.NewScrubber(),
		inTTY: term.IsTerminal(int(os.Stdin.Fd())), outTTY: term.IsTerminal(int(out.Fd())),
	}
}

// folders are the two places that configuration comes from.
type folders struct {
	home string // $MC_HOME
	cwd  string
}

func (f folders) globalSettings() string  { return filepath.Join(f.home, "settings.json") }
func (f folders) projectSettings() string { return filepath.Join(f.cwd, ".magi-code", "settings.json") }
func (f folders) globalMCP() string       { return filepath.Join(f.home, ".mcp.json") }
func (f folders) projectMCP() string      { return filepath.Join(f.cwd, ".mcp.json") }
func (f folders) sessionsDir() string     { return filepath.Join(f.home, "sessions") }

// folders are those of the working folder of this process.
func (a *app) folders() (folders, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return folders{}, hinted(exitConfig, fmt.Errorf("the working folder cannot be read: %w", err), "change to a folder that exists")
	}
	return a.foldersOf(cwd)
}

// foldersOf resolves MC_HOME for a working folder. A relative MC_HOME, or one inside the working folder, is
// refused: a repository must not bring its own approvals (R-C1, S3).
func (a *app) foldersOf(cwd string) (folders, error) {
	byDefault := ""
	if h, err := os.UserHomeDir(); err == nil {
		byDefault = filepath.Join(h, ".magi-code")
	}
	home, set := a.lookup("MC_HOME")
	if !set || home == "" {
		if byDefault == "" {
			return folders{}, hinted(exitConfig, fmt.Errorf("there is no home folder"), "set MC_HOME to an absolute path")
		}
		return folders{byDefault, cwd}, nil
	}
	if !filepath.IsAbs(home) {
		return folders{}, hinted(exitConfig, fmt.Errorf("MC_HOME is relative: %s", untrusted.Visible(home)), "set MC_HOME to an absolute path, or unset it to use ~/.magi-code")
	}
	home = filepath.Clean(home)
	if home != byDefault && inside(cwd, home) {
		return folders{}, hinted(exitConfig, fmt.Errorf("MC_HOME is or lies inside the working folder, where a repository could bring its own approvals: %s", untrusted.Visible(home)),
			"set MC_HOME to a folder of yours outside of the project, or unset it")
	}
	return folders{home, cwd}, nil
}

// inside reports whether path is dir or below it, symlinks resolved as far as they exist.
func inside(dir, path string) bool {
	for _, p := range []string{path, resolve(path)} {
		for _, d := range []string{dir, resolve(dir)} {
			rel, err := filepath.Rel(d, p)
			if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
				return true
			}
		}
	}
	return false
}

// resolve resolves the symlinks of the longest part of path that exists.
func resolve(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// say prints one line to stderr for the person. The text must already be safe for a terminal; known secrets are removed here.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.err, a.scrub.Text(fmt.Sprintf(format, args...)))
}
