package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
)

const (
	// patience bounds one command of a test: what takes longer hangs.
	patience = 10 * time.Second * slack
	// atOnce is how many tests run side by side. Most of them wait for other processes.
	atOnce = 8
)

// suite runs the tests with a folder for what they share.
type suite struct{ m *testing.M }

// testOnlyFolder is that folder.
var testOnlyFolder string

// Run implements testscript.TestingM.
func (s suite) Run() int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set(strconv.Itoa(atOnce))
	}
	dir, err := os.MkdirTemp("", "magi-code-cli-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	testOnlyFolder = dir
	return s.m.Run()
}

// testOnlyBuild builds the hostile servers once.
var testOnlyBuild = sync.OnceValues(func() (string, error) {
	path := filepath.Join(testOnlyFolder, "zoo")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", path, "magi-code/test/zoo").CombinedOutput()
	if err != nil {
		return "", errors.New(err.Error() + "\n" + string(out))
	}
	return path, nil
})

// buildZoo returns the program of the hostile servers.
func buildZoo(t *testing.T) string {
	t.Helper()
	path, err := testOnlyBuild()
	if err != nil {
		t.Fatalf("the zoo does not build: %v", err)
	}
	return path
}

// place is a home, a project and a zoo for one test.
type place struct {
	home, user, project string
	zoo                 string   // a link of its own, so that the processes of this test can be told from others
	env                 []string // added to the environment of commands
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{filepath.Join(dir, "home"), filepath.Join(dir, "user"), filepath.Join(dir, "project"), filepath.Join(dir, "zoo"+filepath.Ext(buildZoo(t))), nil}
	for _, d := range []string{p.home, p.user, p.project} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(buildZoo(t), p.zoo); err != nil {
		t.Fatal(err)
	}
	return p
}

// define writes .mcp.json with the given servers; a command of "" is the zoo.
func (p *place) define(t *testing.T, servers map[string]map[string]any) {
	t.Helper()
	for _, s := range servers {
		if s["command"] == nil && s["url"] == nil {
			s["command"] = p.zoo
		}
	}
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(p.project, ".mcp.json"), string(b))
}

// approve approves servers of the project as mcp get and mcp approve would, without starting either.
func (p *place) approve(t *testing.T, names ...string) {
	t.Helper()
	config, err := definition.Load(p.home, p.project)
	if err != nil {
		t.Fatal(err)
	}
	store := approval.NewStore(p.home)
	for _, d := range config.Servers {
		for _, n := range names {
			if d.Name != n {
				continue
			}
			v, err := store.Review(t.Context(), d)
			if err == nil {
				err = store.Approve(t.Context(), v, p.lookup)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (p *place) lookup(name string) (string, bool) {
	for _, kv := range p.environ() {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return v, true
		}
	}
	return "", false
}

// environ is the environment of commands: small, so that tests do not depend on who runs them.
func (p *place) environ() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.user, "MC_HOME=" + p.home, "TMPDIR=" + os.TempDir(),
		"GORACE=atexit_sleep_ms=0"} // the race detector lets a process sleep for a second before it exits
	if runtime.GOOS == "windows" {
		env = append(os.Environ(), env...)
	}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return append(env, p.env...)
}

// command prepares magi-code in the project.
func (p *place) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "magi-code", args...)
	cmd.Dir, cmd.Env = p.project, p.environ()
	return cmd
}

// outcome is how a command ended.
type outcome struct {
	code     int
	out, err string
	took     time.Duration
}

func (o outcome) String() string {
	return "exit " + strconv.Itoa(o.code) + " after " + o.took.String() + "\nstdout: " + clip(o.out) + "\nstderr: " + clip(o.err)
}

func clip(s string) string { return s[:min(len(s), 3000)] }

// run runs magi-code to its end.
func (p *place) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return p.runWith(t, "", args...)
}

// runWith gives the command something to read.
func (p *place) runWith(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := p.command(ctx, args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	return finish(t, cmd)
}

// finish runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, errs.String())
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String(), took}
}

// left are the processes of this test's zoo (Linux; elsewhere it finds none, since there is no /proc).
func (p *place) left() []string { return processes(p.zoo) }
