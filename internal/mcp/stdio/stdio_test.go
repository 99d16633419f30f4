//go:build unix

package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

// options run the test binary as a child.
func options(t *testing.T, mode string, args ...string) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The race detector would let each child sleep for a second before it exits.
	o := Options{Command: secret.New(self), Dir: t.TempDir(), Env: []EnvVar{{"GORACE", secret.New("atexit_sleep_ms=0")}}}
	for _, a := range append([]string{childArg, mode}, args...) {
		o.Args = append(o.Args, secret.New(a))
	}
	return o
}

// run starts a child; the test ends with it closed and nothing left.
func run(t *testing.T, o Options) *Transport {
	t.Helper()
	tr, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, tr) })
	return tr
}

// closeNow closes and proves that everything has ended.
func closeNow(t *testing.T, tr *Transport) {
	t.Helper()
	if err := tr.Close(context.Background()); err != nil {
		t.Error(err)
	}
	<-tr.Done()
	tr.wg.Wait()
	if running(tr.PID()) {
		t.Errorf("process %d lives", tr.PID())
	}
}

// call makes a call and returns its result.
func call(t *testing.T, tr *Transport, id int, method, params string) (string, error) {
	t.Helper()
	r := jsonrpc.Request{ID: jsonrpc.ID(fmt.Sprint(id)), Method: method}
	if params != "" {
		r.Params = []byte(params)
	}
	out, err := tr.Call(t.Context(), r)
	return string(out.Result), err
}

// TestRoundTrip: a child gets its arguments as they are, its folder and exactly its environment: R-T1, R-C9, S11.
func TestRoundTrip(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "canary")
	o := options(t, "serve", "$HOME", "a b;c", "")
	o.Env = []EnvVar{{"TOKEN", secret.New("s3cret")}, {"EMPTY", secret.New("")}}
	o.Lookup = func(name string) (string, bool) {
		v, ok := map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/root"}[name]
		return v, ok
	}
	tr := run(t, o)
	var env, where []string
	for i, into := range map[string]*[]string{"env": &env, "where": &where} {
		out, err := call(t, tr, len(i), i, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(env)
	if got := strings.Join(env, " "); got != "EMPTY= PATH=/usr/bin:/bin TOKEN=s3cret" {
		t.Errorf("environment %s", got)
	}
	if len(where) < 3 || where[0] != o.Dir || !slices.Equal(where[len(where)-3:], []string{"$HOME", "a b;c", ""}) {
		t.Errorf("folder and arguments %q", where)
	}
}

// TestNoEnvironment: no overlay and no PATH of ours means no variable at all.
func TestNoEnvironment(t *testing.T) {
	o := options(t, "serve")
	o.Env = nil
	tr := run(t, o)
	if out, err := call(t, tr, 1, "env", ""); err != nil || out != "[]" && out != "null" {
		t.Error(out, err)
	}
}

// TestDeath: every pending call fails at once with how the child ended, and with what it said: R-T5, B8.
func TestDeath(t *testing.T) {
	tr := run(t, options(t, "serve"))
	stalled := make(chan error, 1)
	go func() {
		_, err := tr.Call(t.Context(), jsonrpc.Request{ID: jsonrpc.ID("1"), Method: "stall"})
		stalled <- err
	}()
	_, err := call(t, tr, 2, "exit", "")
	for _, err := range []error{err, <-stalled} {
		exit, ok := errors.AsType[*ExitError](err)
		if !ok || exit.Code != 7 || jsonrpc.NotSent(err) {
			t.Fatalf("got %v", err)
		}
	}
	if got := tr.Stderr(); got != "last words\n" {
		t.Errorf("stderr %q", got)
	}
	<-tr.Done()
	if _, err := call(t, tr, 3, "echo", ""); !jsonrpc.NotSent(err) {
		t.Error(err)
	}
}

// TestLastAnswer: what a child answers before it exits still counts.
func TestLastAnswer(t *testing.T) {
	for range 20 {
		tr := run(t, options(t, "serve"))
		if out, err := call(t, tr, 1, "answer-and-exit", ""); err != nil || out != `"bye"` {
			t.Fatal(out, err)
		}
	}
}

// TestClosePaths: each kind of child ends within its bounds, at once when it wants to: R-T4, W2.
func TestClosePaths(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode     string
		from, to time.Duration
	}{
		{"serve", 0, time.Second},
		{"ignore-eof", exitPatience, exitPatience + time.Second},
		{"ignore-term", 2 * exitPatience, 2*exitPatience + time.Second},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			tr := run(t, options(t, tt.mode))
			if _, err := call(t, tr, 1, "echo", "{}"); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			closeNow(t, tr)
			if took := time.Since(began); took < tt.from || took > tt.to {
				t.Errorf("took %s, want %s to %s", took, tt.from, tt.to)
			}
			if !errors.Is(tr.Err(), jsonrpc.ErrClosed) {
				t.Error(tr.Err())
			}
		})
	}
}
