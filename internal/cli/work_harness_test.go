package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/session"
)

// TestWork shows the whole program at work: real child servers, the parts wired as the commands wire them, and models
// that are scripted (issue 5).
func TestWork(t *testing.T) {
	zoo := buildZoo(t)
	for name, part := range map[string]func(*testing.T, string){
		"live": testLive, "codemode": testCodeMode, "hooks": testHooks, "subagents": testSubagents, "catalog": testCatalog,
	} {
		t.Run(name, func(t *testing.T) { part(t, zoo) })
	}
}

// site is a home and a project with running servers.
type site struct {
	t    testing.TB
	a    *app
	f    folders
	zoo  string // a link of this site's own, by which its processes are known
	env  map[string]string
	said *bytes.Buffer
	w    *workshop
	m    *mcp.Manager
}

// plan is what a site is made of.
type plan struct {
	servers   map[string][]string // arguments of the zoo by server name
	serverEnv map[string]string
	settings  string            // global
	project   string            // project settings
	env       map[string]string // of our own process
	files     map[string]string // in the home
	urls      map[string]string // of HTTP servers by name
	provider  string
	watched   bool // watchLeaks was called
}

// openSite makes a site: files, approvals, workshop, servers. Its end checks that no process and no goroutine is left.
func openSite(t testing.TB, zoo string, p plan) *site {
	t.Helper()
	if !p.watched {
		watchLeaks(t)
	}
	dir := t.TempDir()
	s := &site{t: t, f: folders{home: filepath.Join(dir, "home"), cwd: filepath.Join(dir, "project")}, env: map[string]string{"PATH": os.Getenv("PATH")}, said: &bytes.Buffer{}}
	s.zoo = filepath.Join(dir, "own-"+filepath.Base(zoo))
	for _, d := range []string{s.f.home, filepath.Join(s.f.home, "subagents"), filepath.Join(s.f.cwd, ".magi-code")} {
		s.must(os.MkdirAll(d, 0o700))
	}
	s.must(os.Link(zoo, s.zoo))
	maps.Copy(s.env, p.env)
	servers := map[string]any{}
	for name, args := range p.servers {
		d := map[string]any{"command": s.zoo, "args": args, "timeout": 20}
		if p.serverEnv != nil {
			d["env"] = p.serverEnv
		}
		servers[name] = d
	}
	for name, url := range p.urls {
		servers[name] = map[string]any{"type": "http", "url": url, "timeout": 20}
	}
	doc, err := json.Marshal(map[string]any{"mcpServers": servers})
	s.must(err)
	s.write(s.f.projectMCP(), string(doc))
	for name, text := range p.files {
		s.write(filepath.Join(s.f.home, name), text)
	}
	s.write(s.f.globalSettings(), s.expand(cmp.Or(p.settings, "{}")))
	if p.project != "" {
		s.write(s.f.projectSettings(), s.expand(p.project))
	}
	var environ []string
	for k, v := range s.env {
		environ = append(environ, k+"="+v)
	}
	s.a = &app{
		in: strings.NewReader(""), out: s.said, err: s.said, environ: environ, scrub: secret.NewScrubber(),
		lookup: func(name string) (string, bool) { v, ok := s.env[name]; return v, ok },
	}
	s.approveAll()
	s.w, err = s.a.workshop(s.f, conversationFlags{provider: cmp.Or(p.provider, "offline")})
	s.must(err)
	s.m, err = s.a.startServers(t.Context(), s.w, nil)
	s.must(err)
	t.Cleanup(func() {
		closeManager(context.Background(), s.m)
		if left := processes(s.zoo); runtime.GOOS == "linux" && len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	})
	return s
}

// watchLeaks checks at the test's end that no goroutine is left of those that start from now on.
func watchLeaks(t testing.TB) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// expand writes the zoo's path, quoted for JSON, where $ZOO stands.
func (s *site) expand(text string) string {
	quoted, err := json.Marshal(s.zoo)
	s.must(err)
	return strings.ReplaceAll(text, "$ZOO", strings.Trim(string(quoted), `"`))
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) write(path, text string) {
	s.t.Helper()
	s.must(os.WriteFile(path, []byte(text), 0o600))
}

// approveAll approves every server as it stands.
func (s *site) approveAll() {
	s.t.Helper()
	all, err := loadServers(s.f)
	s.must(err)
	for _, e := range all.entries {
		v, err := all.store.Review(s.t.Context(), e.Server)
		s.must(err)
		s.must(all.store.Approve(s.t.Context(), v, s.a.lookup))
	}
}

// ask calls a tool of a server beside any conversation, as people do.
func (s *site) ask(server, name, arguments string) string {
	s.t.Helper()
	r, err := s.m.Call(s.t.Context(), server, name, jsontext.Value(arguments))
	s.must(err)
	return r.Plain()
}

// status is that of one server.
func (s *site) status(server string) mcp.Status {
	s.t.Helper()
	for _, st := range s.m.Status() {
		if st.Name == server {
			return st
		}
	}
	s.t.Fatalf("no server %q", server)
	return mcp.Status{}
}

// talk is one conversation with what came out of it.
type talk struct {
	s     *site
	c     *agent.Conversation
	model *scripted
	sess  *session.Session

	mu     sync.Mutex
	events []agent.Event
	also   func(agent.Event)
}

// talk opens a conversation on the site's servers. p nil takes the workshop's own provider.
func (s *site) talk(p *scripted, ask permission.Asker) *talk {
	s.t.Helper()
	k := &talk{s: s, model: p}
	if p != nil {
		s.w.provider = p
	}
	var err error
	k.sess, err = s.w.sessions.Create(s.f.cwd)
	s.must(err)
	k.c = s.w.conversation(these(s.m), k.sess, ask, k.hear)
	s.t.Cleanup(func() {
		if err := k.c.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	return k
}

func (k *talk) hear(e agent.Event) {
	k.mu.Lock()
	k.events = append(k.events, e)
	also := k.also
	k.mu.Unlock()
	if also != nil {
		also(e)
	}
}

// of are the events of some kinds so far.
func (k *talk) of(kinds ...agent.EventKind) (out []agent.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.events {
		if slices.Contains(kinds, e.Kind) {
			out = append(out, e)
		}
	}
	return out
}

// forget drops the events so far.
func (k *talk) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = nil
}

// notices are the texts of the notices since forget.
func (k *talk) notices() (out []string) {
	for _, e := range k.of(agent.EventNotice) {
		out = append(out, e.Text)
	}
	return out
}

// turn runs one turn that must end well.
func (k *talk) turn(prompt string) agent.Turn {
	k.s.t.Helper()
	turn, err := k.c.Send(k.s.t.Context(), []provider.Block{{Kind: provider.Text, Text: prompt}})
	if err != nil || turn.Stop != agent.StopDone {
		k.s.t.Fatalf("the turn ended with %s: %v", turn.Stop, err)
	}
	return turn
}

// entries reads the session as it stands on disk now.
func (k *talk) entries() (out []session.Entry) {
	k.s.t.Helper()
	for line := range strings.Lines(k.file()) {
		var e session.Entry
		k.s.must(json.Unmarshal([]byte(line), &e))
		out = append(out, e)
	}
	return out
}

// file is the text of the session on disk.
func (k *talk) file() string {
	k.s.t.Helper()
	b, err := os.ReadFile(filepath.Join(k.s.f.sessionsDir(), k.sess.ID()+".jsonl"))
	k.s.must(err)
	return string(b)
}
