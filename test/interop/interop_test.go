//go:build interop

// Package interop drives the real binary against servers and clients that others wrote. It needs the npm packages
// of package.json (INTEROP_MODULES) and their Node (INTEROP_NODE); .ci/interop installs both and runs it.
package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bin is the binary under test, bench the peers in the benchmark folder's style, built once.
type world struct {
	t             *testing.T
	home, project string
	env           []string
}

var testOnlyBinary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "interop-")
	if err != nil {
		panic(err)
	}
	testOnlyBinary = filepath.Join(dir, "magi-code")
	if out, err := exec.Command("go", "build", "-o", testOnlyBinary, "magi-code").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func modules(t *testing.T) (dir, node string) {
	t.Helper()
	dir, node = os.Getenv("INTEROP_MODULES"), os.Getenv("INTEROP_NODE")
	if dir == "" || node == "" {
		t.Fatal("INTEROP_MODULES and INTEROP_NODE are not set: run .ci/interop")
	}
	return dir, node
}

// newWorld makes a home and a project with the given servers, approved.
func newWorld(t *testing.T, servers map[string]any, env ...string) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir(), project: t.TempDir()}
	w.env = append(os.Environ(), append(env, "MC_HOME="+w.home)...)
	doc, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.project, ".mcp.json"), doc, 0o600); err != nil {
		t.Fatal(err)
	}
	for name := range servers {
		var got struct{ Fingerprint string }
		out := w.ok("mcp", "get", name, "--json")
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		w.ok("mcp", "approve", name, "--fingerprint", got.Fingerprint)
	}
	return w
}

// run runs the binary in the project and returns stdout, stderr and the exit code.
func (w *world) run(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	cmd := exec.Command(testOnlyBinary, args...)
	cmd.Dir, cmd.Env = w.project, w.env
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// ok runs the binary and fails the test on any other exit code than 0.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	stdout, stderr, code := w.run(args...)
	if code != 0 {
		w.t.Fatalf("magi-code %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// background starts a program that listens on addr, and ends it with the test.
func background(t *testing.T, addr string, env []string, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	deadline := time.Now().Add(30 * time.Second)
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v does not listen on %s: %s", argv, addr, out.String())
		}
		<-time.After(50 * time.Millisecond)
	}
}

// freeAddr is a loopback address that was free a moment ago.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
