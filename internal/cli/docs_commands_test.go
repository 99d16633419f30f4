package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
)

// TestDocsCommands runs the shell blocks of each document, in their order, in a home and a project of its own. The provider is the
// offline planner, every local server is the demo server in place of what npx would download, and no proxy leads out.
func TestDocsCommands(t *testing.T) {
	for _, p := range readPages(t) {
		if !slices.ContainsFunc(p.blocks, func(b block) bool { return b.language == "sh" }) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, p.name)
			for _, b := range p.blocks {
				if b.language == "sh" && !strings.HasPrefix(b.text, "#!") {
					w.runBlock(t, p.name, b)
				}
			}
		})
	}
}

// notRun says which commands are only checked: a beginning of their words, and why. An earlier entry wins.
var notRun = []struct{ begin, why string }{
	{"magi-code mcp login", "opens a browser"},
	{"magi-code mcp test search", "is on the network"},
	{"magi-code mcp call filesystem", "needs the server that npm has"},
	{"magi-code run --provider ollama", "needs Ollama"},
	{"go test", "is what runs this"},
	{"go install", "is what .ci/release checks"},
	{"go build", "is what .ci/release checks"},
	{"go tool", "reads what a measurement wrote"},
	{".ci/", "takes minutes"},
	{"git clone", "is on the network"},
	{"sha256sum", "belongs to the machine"},
	{"tar", "belongs to the machine"},
	{"install", "belongs to the machine"},
	{"man", "belongs to the machine"},
	{"chmod", "belongs to the machine"},
}

// world is where the commands of one document run.
type world struct {
	*place
	runner *interp.Runner
	out    docsOutput
}

// docsOutput is what a line prints; the parts of a pipe write at the same time.
type docsOutput struct {
	mu   sync.Mutex
	text []byte
}

func (o *docsOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	return len(b), nil
}

// take returns what was printed and forgets it.
func (o *docsOutput) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.text = nil }()
	return string(o.text)
}

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{place: &place{home: filepath.Join(dir, "home"), user: filepath.Join(dir, "user"), project: filepath.Join(dir, "project")}}
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{w.home, w.user, w.project, bin, filepath.Join(dir, "runner")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	npx := map[bool][2]string{false: {"npx", "#!/bin/sh\nexec magi-code demo-server\n"}, true: {"npx.cmd", "@magi-code demo-server\r\n"}}[runtime.GOOS == "windows"]
	if err := os.WriteFile(filepath.Join(bin, npx[0]), []byte(npx[1]), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		filepath.Join(w.home, "settings.json"): `{"provider": "offline", "endpoints": {"ollama": {"base_url": "http://127.0.0.1:11434/v1", "model": "m"}}}`,
		filepath.Join(w.home, ".mcp.json"):     `{"mcpServers": {"NAME": {"command": "magi-code", "args": ["demo-server"]}}}`,
		filepath.Join(w.project, "NOTES.md"):   "Green tea at 80 degrees.\n",
		filepath.Join(w.project, "go.mod"):     "module kettle\n",
	} {
		writeFile(t, file, text)
	}
	w.env = []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "SEARCH_TOKEN=no-token-at-all", "LOG_LEVEL=warn",
		"HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "RUNNER_TEMP=" + filepath.Join(dir, "runner"),
	}
	w.prepare(t, name)
	w.runner, err = interp.New(interp.Dir(w.project), interp.Env(expand.ListEnviron(w.environ()...)), interp.StdIO(nil, &w.out, &w.out), interp.Params("-o", "pipefail"),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return w.exec }))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// prepare makes what a document takes for granted.
func (w *world) prepare(t *testing.T, name string) {
	t.Helper()
	switch name {
	case "docs/release.md":
		if err := os.Mkdir(filepath.Join(w.project, "dist"), 0o700); err != nil {
			t.Fatal(err)
		}
	case "docs/remote.md":
		w.define(t, map[string]map[string]any{"tracker": {"type": "http", "url": "https://mcp.example.com/mcp", "oauth": map[string]any{"scopes": []string{"read"}}}})
	case "docs/headless.md":
		w.define(t, map[string]map[string]any{"files": {"command": "npx", "args": []string{"files"}}})
		w.env = append(w.env, "FILES_FINGERPRINT="+w.fingerprint(t, filepath.Join(filepath.Dir(w.home), "runner", "magi"), "files"))
	case "docs/approval.md":
		w.env = append(w.env, "SEEN_FINGERPRINT="+w.fingerprint(t, w.home, "NAME"))
	}
}

// fingerprint is that of a server by the key of a home.
func (w *world) fingerprint(t *testing.T, home, name string) string {
	t.Helper()
	config, err := definition.Load(w.home, w.project)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range config.Servers {
		if d.Name == name {
			v, err := approval.NewStore(home).Review(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			return v.Fingerprint
		}
	}
	t.Fatalf("no server %q", name)
	return ""
}

// runBlock runs a block statement by statement; each has to end well.
func (w *world) runBlock(t *testing.T, name string, b block) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(b.text), name)
	if err != nil {
		t.Errorf("%s:%d: %v", name, b.line, err)
		return
	}
	for _, s := range file.Stmts {
		line := b.text[s.Pos().Offset():s.End().Offset()]
		if err := w.runLine(t.Context(), line); err != nil {
			t.Errorf("%s:%d: %s: %v\n%s", name, b.line+int(s.Pos().Line())-1, line, err, clip(w.out.take()))
		}
	}
}

// runLine runs one statement in the shell of this world, which remembers its folder and variables.
func (w *world) runLine(ctx context.Context, line string) error {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.out.take()
	return w.runner.Run(ctx, file.Stmts[0])
}

// exec runs one command of a document.
func (w *world) exec(ctx context.Context, args []string) error {
	in := interp.HandlerCtx(ctx)
	if args[0] == "go" && len(args) > 2 && args[1] == "run" && args[2] == "." {
		args = append([]string{"magi-code"}, args[3:]...)
	}
	if args[0] == "magi-code" {
		if err := checkCommand(args[1:]); err != nil {
			return err
		}
		if cmd, _, _ := newRoot(&app{}).Find(args[1:]); cmd.Name() == "magi-code" && !slices.Contains(args, "--version") && !slices.Contains(args, "--help") {
			return nil // Mission Control needs a terminal
		}
	}
	line := strings.Join(args, " ")
	for _, n := range notRun {
		if strings.HasPrefix(line, n.begin) {
			if strings.HasPrefix(args[0], ".") {
				_, err := os.Stat(filepath.Join("../..", args[0]))
				return err
			}
			return nil
		}
	}
	switch args[0] {
	case "magi-code":
		return w.magiCode(ctx, in, args[1:])
	case "jq":
		return jq(in.Stdin, in.Stdout, args[len(args)-1])
	case "git", "make":
		_, err := fmt.Fprintln(in.Stdout, "what "+line+" prints")
		return err
	}
	return fmt.Errorf("no command %q is known here: run it in this test, or name it in notRun with the reason", args[0])
}

// magiCode runs magi-code. Where it would ask on a terminal, it is given the fingerprint instead, as the documents say.
func (w *world) magiCode(ctx context.Context, in interp.HandlerContext, args []string) error {
	run := func(stdout io.Writer, args ...string) error {
		cmd := exec.CommandContext(ctx, "magi-code", args...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = in.Dir, in.Stdin, stdout, in.Stderr
		in.Env.Each(func(name string, v expand.Variable) bool {
			if v.Exported {
				cmd.Env = append(cmd.Env, name+"="+v.String())
			}
			return true
		})
		return cmd.Run()
	}
	if len(args) == 3 && args[0] == "mcp" && args[1] == "approve" {
		var view struct{ Fingerprint string }
		var out bytes.Buffer
		if err := errors.Join(run(&out, "mcp", "get", args[2], "--json"), json.Unmarshal(out.Bytes(), &view)); err != nil {
			return err
		}
		args = append(args, "--fingerprint", view.Fingerprint)
	}
	return run(in.Stdout, args...)
}

var (
	jqSelect = regexp.MustCompile(`^select\(\.(\w+) == ("[^"]*")\)$`)
	jqNot    = regexp.MustCompile(`^select\(\.(\w+) \| not\)$`)
	jqPath   = regexp.MustCompile(`^\.(\w+)(\[\])?$`)
)

// jq is as much of jq as the documents use, so that the tests need none.
func jq(in io.Reader, out io.Writer, filter string) error {
	filter = strings.ReplaceAll(filter, " | not)", "\x00")
	for d := json.NewDecoder(in); ; {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		values := []any{v}
		for _, stage := range strings.Split(filter, " | ") {
			stage = strings.ReplaceAll(stage, "\x00", " | not)")
			var next []any
			for _, v := range values {
				m, _ := v.(map[string]any)
				if s := jqSelect.FindStringSubmatch(stage); s != nil {
					if text, _ := json.Marshal(m[s[1]]); string(text) == s[2] {
						next = append(next, v)
					}
				} else if s := jqNot.FindStringSubmatch(stage); s != nil {
					if yes, _ := m[s[1]].(bool); !yes {
						next = append(next, v)
					}
				} else if s := jqPath.FindStringSubmatch(stage); s == nil {
					return fmt.Errorf("this jq does not know %q", stage)
				} else if list, _ := m[s[1]].([]any); s[2] != "" {
					next = append(next, list...)
				} else if m[s[1]] == nil {
					return fmt.Errorf("there is no %q in %v", s[1], v)
				} else {
					next = append(next, m[s[1]])
				}
			}
			values = next
		}
		for _, v := range values {
			fmt.Fprintln(out, v)
		}
	}
}

// TestDocsHooks runs the hooks that docs/hooks.md shows with the document that it shows.
func TestDocsHooks(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil && runtime.GOOS == "windows" {
		return // a hook is a shell script there only where somebody installed a shell
	}
	var hooks, payloads []string
	for _, p := range readPages(t) {
		for _, b := range p.blocks {
			switch {
			case p.name != "docs/hooks.md":
			case strings.HasPrefix(b.text, "#!/bin/sh"):
				hooks = append(hooks, b.text)
			case b.language == "json" && strings.Contains(b.text, `"callId"`):
				payloads = append(payloads, b.text)
			}
		}
	}
	if len(hooks) != 2 || len(payloads) != 1 {
		t.Fatalf("%d hooks and %d payloads", len(hooks), len(payloads))
	}
	home := t.TempDir()
	for _, c := range []struct {
		hook, payload string
		code          int
	}{{hooks[0], payloads[0], 2}, {hooks[0], `{"event":"before_tool"}`, 0}, {hooks[1], payloads[0], 0}} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.hook)
		cmd.Env = append(os.Environ(), "HOME="+home)
		cmd.Stdin = strings.NewReader(c.payload)
		if o := finish(t, cmd); o.code != c.code || (c.code == 2) != (o.err != "") {
			t.Errorf("%s\n%s", c.hook, o)
		}
	}
	if b, err := os.ReadFile(filepath.Join(home, "magi-code-calls.jsonl")); err != nil || string(b) != payloads[0] {
		t.Errorf("the record is %q, %v", b, err)
	}
}
