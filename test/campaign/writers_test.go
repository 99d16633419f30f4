//go:build campaign && linux

package campaign

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/oauth"
	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/session"
	"magi-code/internal/settings"
)

// roleVar makes the test binary another process instead of a test.
const roleVar = "CAMPAIGN_ROLE"

// play is a process of the given role. A writer prints one line for each step that is done, and ends before the next one when its
// stdin ends. A line is the promise that a kill must not break.
func play(role string, args []string) int {
	step, ok := map[string]func([]string) (func(int) (string, error), error){
		"settings": settingsWriter, "approvals": approvalsWriter, "key": keyWriter, "tokens": tokensWriter, "session": sessionWriter,
	}[role]
	if role == "web" {
		return playWeb(args)
	}
	if !ok {
		fmt.Fprintln(os.Stderr, "no such role:", role)
		return 2
	}
	first, err := strconv.Atoi(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	do, err := step(args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	fmt.Println("ready")
	for i := first; ; i++ {
		select {
		case <-over:
			return 0
		default:
		}
		text, err := do(i)
		if err != nil {
			fmt.Fprintf(os.Stderr, "step %d: %v\n", i, err)
			return 1
		}
		fmt.Printf("%d %s\n", i, text)
	}
}

// filler is text whose length and look depend on i, so that files grow and shrink.
func filler(i int) string {
	return strings.Repeat(string(rune('a'+i%26)), (i*7919)%20_000)
}

// settingsWriter writes the number of its step under its own name: home, name.
func settingsWriter(args []string) (func(int) (string, error), error) {
	path, name := filepath.Join(args[0], "settings.json"), args[1]
	return func(i int) (string, error) {
		value := jsontext.Value(fmt.Sprintf(`{"step":%d,"filler":%q}`, i, filler(i)))
		return "", settings.Patch(context.Background(), path, []string{"campaign", name}, value)
	}, nil
}

// names are the servers that the writer of approvals decides about, in turn.
var names = []string{"one", "two", "three"}

// shouldBe is the state of server j after the first n steps of the writer of approvals: it approves and revokes each in turn.
func shouldBe(j, n int) approval.State {
	state := approval.NeverApproved
	for i := j; i < n; i += len(names) {
		if state = approval.IsApproved; (i/len(names))%2 == 1 {
			state = approval.Revoked
		}
	}
	return state
}

// approvalsWriter approves and revokes: home, project.
func approvalsWriter(args []string) (func(int) (string, error), error) {
	store, project := approval.NewStore(args[0]), args[1]
	return func(i int) (string, error) {
		d, err := find(args[0], project, names[i%len(names)])
		if err != nil {
			return "", err
		}
		if (i/len(names))%2 == 1 {
			return "", store.Revoke(context.Background(), d.Source, d.Name)
		}
		v, err := store.Review(context.Background(), d)
		if err != nil {
			return "", err
		}
		return v.Fingerprint, store.Approve(context.Background(), v, os.LookupEnv)
	}, nil
}

// find loads one definition.
func find(home, project, name string) (definition.Server, error) {
	config, err := definition.Load(home, project)
	if err != nil {
		return definition.Server{}, err
	}
	for _, d := range config.Servers {
		if d.Name == name {
			return d, nil
		}
	}
	return definition.Server{}, fmt.Errorf("no server %q", name)
}

// keyWriter makes the key in step 0 and tells the fingerprint under it: home, project.
func keyWriter(args []string) (func(int) (string, error), error) {
	d, err := find(args[0], args[1], names[0])
	return func(i int) (string, error) {
		if i > 0 { // the key is there: no hurry any more
			<-time.After(5 * time.Millisecond)
		}
		v, err := approval.NewStore(args[0]).Review(context.Background(), d)
		return v.Fingerprint, err
	}, err
}

// tokenServer is the HTTP server whose tokens are written.
func tokenServer(url string) oauth.Server {
	return oauth.Server{Name: "remote", URL: secret.New(url)}
}

// hoursPerStep is how far the clock of the writer of tokens goes on with each step: every token has expired by then.
const hoursPerStep = 2

// clock is the time at a step.
func clock(i int) func() time.Time {
	return func() time.Time { return time.Now().Add(time.Duration(i) * hoursPerStep * time.Hour) }
}

// tokensWriter refreshes a token in each step and tells it: home, URL.
func tokensWriter(args []string) (func(int) (string, error), error) {
	return func(i int) (string, error) {
		source := oauth.NewSource(oauth.Options{Home: args[0], Server: tokenServer(args[1]), Now: clock(i)})
		header, err := source.Header(context.Background())
		return strings.TrimPrefix(header.Reveal(), "Bearer "), err
	}, nil
}

// sessionWriter appends to a session: folder, id or "new".
func sessionWriter(args []string) (func(int) (string, error), error) {
	store := session.NewStore(args[0])
	var s *session.Session
	var err error
	if args[1] == "new" {
		s, err = store.Create("/campaign")
	} else {
		s, err = store.Open(context.Background(), args[1])
	}
	if err != nil {
		return nil, err
	}
	return func(i int) (string, error) {
		return s.ID(), s.Append(sessionEntry(i))
	}, nil
}

// sessionEntry is the entry of a step: a message, or the result of a call, which is large now and then.
func sessionEntry(i int) session.Entry {
	text := fmt.Sprintf("step %d %s", i, filler(i))
	if i%5 == 4 {
		text += strings.Repeat("x", 300<<10)
	}
	if i%2 == 0 {
		return session.Entry{Kind: session.Message, Message: &provider.Message{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: text}}}}
	}
	return session.Entry{Kind: session.Result, CallID: fmt.Sprint("call-", i), Tool: "echo", Text: text}
}

// writer is a process of a role, seen from the test.
type writer struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr strings.Builder
	read   chan struct{} // closed when stdout has been read to its end
	more   chan struct{} // gets a value when a line came

	mu    sync.Mutex
	lines []string // without "ready"
	ready bool
}

// start starts the test binary in a role.
func start(t *testing.T, role string, args ...string) *writer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, cmd: exec.Command(exe, args...), read: make(chan struct{}), more: make(chan struct{}, 1)}
	w.cmd.Env = append(os.Environ(), roleVar+"="+role)
	w.cmd.Stderr = &w.stderr
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go w.listen(stdout)
	return w
}

// listen collects lines. Half a line is none: its promise was not given.
func (w *writer) listen(stdout io.Reader) {
	defer close(w.read)
	in := bufio.NewReader(stdout)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		w.mu.Lock()
		if line = strings.TrimSpace(line); !w.ready {
			w.ready = line == "ready"
		} else {
			w.lines = append(w.lines, line)
		}
		w.mu.Unlock()
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

// done are the lines so far.
func (w *writer) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines
}

// await waits until the process is ready and n steps are done.
func (w *writer) await(n int) {
	w.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		w.mu.Lock()
		enough := w.ready && len(w.lines) >= n
		w.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-w.more:
		case <-w.read:
			if len(w.done()) < n {
				_ = w.cmd.Wait()
				w.t.Fatalf("the writer ended by itself after %d steps: %s", len(w.done()), w.stderr.String())
			}
		case <-late.C:
			w.t.Fatalf("the writer has done %d of %d steps after %s: %s", len(w.done()), n, patience, w.stderr.String())
		}
	}
}

// kill ends the process by SIGKILL and returns what it had promised by then.
func (w *writer) kill() []string {
	w.t.Helper()
	_ = w.cmd.Process.Kill()
	<-w.read
	if err := w.cmd.Wait(); err == nil || w.stderr.Len() > 0 {
		w.t.Errorf("the writer ended before it was killed: %v: %s", err, w.stderr.String())
	}
	return w.done()
}

// stop lets the process end after its present step.
func (w *writer) stop() []string {
	w.t.Helper()
	_ = w.stdin.Close()
	late := time.AfterFunc(patience, func() { _ = w.cmd.Process.Kill() })
	defer late.Stop()
	<-w.read
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("the writer failed: %v: %s", err, w.stderr.String())
	}
	return w.done()
}

// world is a home and a project with the three servers.
type world struct{ home, project string }

func newWorld(t *testing.T, servers map[string]any) *world {
	t.Helper()
	w := &world{home: t.TempDir(), project: t.TempDir()}
	doc, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.project, ".mcp.json"), doc, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// threeServers are definitions that nobody starts.
func threeServers() map[string]any {
	servers := map[string]any{}
	for _, n := range names {
		servers[n] = map[string]any{"command": "zoo", "args": []string{"good"}}
	}
	return servers
}

// leftovers are the entries of a folder besides those that belong there.
func leftovers(t *testing.T, dir string, belong ...string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, b := range belong {
		known[b] = true
	}
	for _, e := range entries {
		if !known[e.Name()] {
			out = append(out, e.Name())
		}
	}
	return out
}

// checkLeftovers fails when a kill left anything but a temporary file or a lock file of the files that belong there.
func checkLeftovers(t *testing.T, dir string, belong ...string) (temps int) {
	t.Helper()
	for _, name := range leftovers(t, dir, belong...) {
		ok := false
		for _, b := range belong {
			temp := strings.HasPrefix(name, "."+b+".new-")
			ok = ok || temp || name == b+".lock"
			if temp {
				temps++
			}
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		if !ok || err != nil || info.Mode().Perm()&0o007 != 0 { // it has the mode of its file
			t.Errorf("a kill left %s in %s (%v)", name, dir, err)
		}
	}
	return temps
}

// checkClean fails when the next writer left anything of the killed ones.
func checkClean(t *testing.T, dir string, belong ...string) {
	t.Helper()
	if left := leftovers(t, dir, belong...); len(left) > 0 {
		t.Errorf("after the next writer %s still holds %v", dir, left)
	}
}
