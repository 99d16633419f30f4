package approval

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"magi-code/internal/mcp/definition"
)

// roleVar makes the test binary a process that reviews a definition, and so makes the key.
const roleVar = "APPROVAL_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) == "review" {
		reviewRole()
		return
	}
	os.Exit(m.Run())
}

// reviewRole prints the fingerprint of a fixed definition in the MC_HOME os.Args[1].
func reviewRole() {
	v, err := NewStore(os.Args[1]).Review(context.Background(), definition.Server{Name: "a", Source: "/p", Type: definition.Stdio, Command: "c", Timeout: 30})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Print(v.Fingerprint)
}

// scene is an MC_HOME and a folder with a definition file.
type scene struct {
	t     *testing.T
	home  string
	file  string
	store *Store
}

// stage makes a scene with the one server "s".
func stage(t *testing.T, entry string) *scene {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, home: filepath.Join(root, "home"), file: filepath.Join(root, "p", definition.FileName)}
	s.store = NewStore(s.home)
	if err := os.Mkdir(filepath.Dir(s.file), 0o700); err != nil {
		t.Fatal(err)
	}
	s.define(entry)
	return s
}

// define writes the definition file with the one server "s".
func (s *scene) define(entry string) { s.write(s.file, `{"mcpServers":{"s":`+entry+`}}`) }

// write writes a file.
func (s *scene) write(path, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// servers loads the definitions.
func (s *scene) servers() []definition.Server {
	s.t.Helper()
	list, _, err := definition.LoadSource(s.file, definition.Project)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// review is what a person sees of "s" now.
func (s *scene) review() View {
	s.t.Helper()
	v, err := s.store.Review(s.t.Context(), s.servers()[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// approve approves "s" as it is.
func (s *scene) approve() View {
	s.t.Helper()
	v := s.review()
	if err := s.store.Approve(s.t.Context(), v, none); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// state is the state of "s", and fails when the proof does not go with it.
func (s *scene) state() State {
	s.t.Helper()
	entries, err := s.store.Check(s.servers())
	if err != nil {
		s.t.Fatal(err)
	}
	e := entries[0]
	a, ok := e.Approved()
	d, valid := a.Definition()
	if ok != (e.State == IsApproved) || valid != ok || ok && !bytes.Equal(d.Canonical(), e.Server.Canonical()) {
		s.t.Errorf("state %v and proof %v, %v do not agree", e.State, ok, valid)
	}
	return e.State
}

// record puts a raw record for "s" into the settings.
func (s *scene) record(raw string) {
	s.write(s.store.settingsPath(), fmt.Sprintf(`{"capabilities":{"mcp_approvals":{%q:{"s":%s}}}}`, s.file, raw))
}

// settings is the text of the settings file.
func (s *scene) settings() string {
	data, err := os.ReadFile(s.store.settingsPath())
	if err != nil {
		return ""
	}
	return string(data)
}

// none is an environment without variables.
func none(string) (string, bool) { return "", false }

// want fails unless the state is the given one.
func (s *scene) want(what string, want State) {
	s.t.Helper()
	if got := s.state(); got != want {
		s.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// R-A1, R-A3: the way of a server through the states.
func TestStates(t *testing.T) {
	s := stage(t, `{"command":"c","enabled":true}`)
	s.want("at first", NeverApproved)
	if _, err := os.Stat(s.store.keyPath()); err == nil {
		t.Error("Check makes a key")
	}
	if v := s.review(); v.State != NeverApproved || !isDigest(v.Fingerprint) {
		t.Errorf("view %+v", v)
	}
	s.approve()
	s.want("approved", IsApproved)
	if v := s.review(); v.State != IsApproved {
		t.Errorf("view %v", v.State)
	}
	s.define(`{"env":{}, "enabled":false, "timeout":30, "type":"stdio", "args":[], "command":"c"}`)
	s.want("a neutral edit", IsApproved)
	s.define(`{"command":"d"}`)
	s.want("another command", Changed)
	s.define(`{"command":"c"}`)
	s.want("the command again", IsApproved)
	if err := s.store.Revoke(t.Context(), s.file, "s"); err != nil {
		t.Fatal(err)
	}
	s.want("revoked", Revoked)
	s.approve()
	s.want("approved again", IsApproved)
	if err := os.Remove(s.store.keyPath()); err != nil {
		t.Fatal(err)
	}
	s.want("the key is gone", RenewalRequired)
	if v := s.review(); v.State != RenewalRequired {
		t.Errorf("view %v", v.State)
	}
	s.want("a new key", Changed)
	s.approve()
	s.want("renewed", IsApproved)
}

// R-A4, S2: source and name are part of what is approved; two spellings of one file are one source.
func TestBinding(t *testing.T) {
	s := stage(t, `{"command":"c"}`)
	s.approve()
	d := s.servers()[0]
	key, err := s.store.key()
	if err != nil {
		t.Fatal(err)
	}
	base := digest(key, d)
	other := d
	other.Name = "t"
	moved := d
	moved.Source = "/elsewhere/.mcp.json"
	for _, x := range []definition.Server{other, moved} {
		if digest(key, x) == base {
			t.Errorf("%v has the digest of another", x)
		}
		if entries, err := s.store.Check([]definition.Server{x}); err != nil || entries[0].State != NeverApproved {
			t.Errorf("%v: %v, %v", x, entries, err)
		}
	}
	shifted := d
	shifted.Source, shifted.Name = d.Source+"s", ""
	if digest(key, shifted) == base {
		t.Error("source and name run into each other")
	}
	if digest(bytes.Repeat([]byte{1}, keyBytes), d) == base {
		t.Error("the key does not matter")
	}
	if runtime.GOOS == "windows" {
		return
	}
	link := filepath.Join(filepath.Dir(filepath.Dir(s.file)), "link")
	if err := os.Symlink(filepath.Dir(s.file), link); err != nil {
		t.Fatal(err)
	}
	s.file = filepath.Join(link, definition.FileName)
	s.want("through a link", IsApproved)
}

// S1: each bound field, changed one at a time, ends the approval; S5: a proof keeps what was checked.
func TestEveryFieldIsBound(t *testing.T) {
	const full = `{"type":"http","url":"https://h/p?q=1#f","headers":{"X-A":"1","X-B":"${T:-u}"},"timeout":60,"oauth":{"client_id":"i","scopes":["r","w"],"authorization_server":"https://as"}}`
	const local = `{"type":"stdio","command":"c","args":["a","b"],"env":{"A":"1","B":"2"},"timeout":60}`
	edits := map[string][][2]string{
		full: {{"https://h/", "https://i/"}, {"/p?", "/P?"}, {"q=1", "q=2"}, {"#f", "#g"}, {`"X-A":"1"`, `"X-A":"2"`}, {"X-A", "X-C"}, {"${T:-u}", "${T}"}, {"${T:-u}", "${T:-v}"}, {"${T:-u}", "${S:-u}"},
			{"60", "61"}, {`"i"`, `"j"`}, {`["r","w"]`, `["w","r"]`}, {`["r","w"]`, `["r"]`}, {"https://as", "https://at"}, {`,"oauth":{"client_id":"i","scopes":["r","w"],"authorization_server":"https://as"}`, ""}},
		local: {{`"c"`, `"d"`}, {`["a","b"]`, `["b","a"]`}, {`["a","b"]`, `["a","b","c"]`}, {`"A":"1"`, `"A":"2"`}, {`"A":"1"`, `"C":"1"`}, {`"A":"1","B":"2"`, `"A":"2","B":"1"`}, {"60", "0.6e2"},
			{local, `{"type":"http","url":"https://h"}`}},
	}
	for entry, list := range edits {
		s := stage(t, entry)
		s.approve()
		entries, err := s.store.Check(s.servers())
		if err != nil {
			t.Fatal(err)
		}
		proof, _ := entries[0].Approved()
		for _, e := range list {
			edited := strings.Replace(entry, e[0], e[1], 1)
			if edited == entry {
				t.Fatalf("%s is not in %s", e[0], entry)
			}
			s.define(edited)
			s.want(edited, Changed)
		}
		if d, _ := proof.Definition(); !bytes.Equal(d.Canonical(), entries[0].Server.Canonical()) {
			t.Error("the proof changed with the file")
		}
		s.define(entry)
		s.want("as it was", IsApproved)
	}
}

// S2: a link that leads to another file of the same text leads to another source.
func TestRetargetedLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // links need a privilege there
	}
	s := stage(t, `{"command":"c"}`)
	dir := filepath.Dir(s.file)
	one, two := filepath.Join(dir, "one.json"), filepath.Join(dir, "two.json")
	for _, path := range []string{one, two} {
		s.write(path, `{"mcpServers":{"s":{"command":"c"}}}`)
	}
	for i, target := range []string{one, two} {
		_ = os.Remove(s.file)
		if err := os.Symlink(target, s.file); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			s.approve()
			s.want("approved", IsApproved)
		} else {
			s.want("leads elsewhere", NeverApproved)
		}
	}
}

// House rule 11: zero values authorize nothing, and no state has the name of another.
func TestZeroValues(t *testing.T) {
	if _, ok := (Entry{}).Approved(); ok {
		t.Error("the zero entry is approved")
	}
	if _, ok := (Entry{State: IsApproved, Server: definition.Server{Name: "x"}}).Approved(); ok {
		t.Error("an entry made elsewhere is approved")
	}
	if _, ok := (Approved{}).Definition(); ok {
		t.Error("the zero proof holds a definition")
	}
	var zero State
	if zero != NeverApproved {
		t.Error("the zero state is not never approved")
	}
	names := map[State]string{NeverApproved: "never approved", IsApproved: "approved", Revoked: "revoked", Changed: "definition changed", RenewalRequired: "renewal required", Invalid: "invalid", State(99): "invalid"}
	for s, want := range names {
		if s.String() != want {
			t.Errorf("%d is called %s", s, s)
		}
	}
}

// R-D5: a formatted proof, entry or view tells nothing of the definition's texts.
func TestFormatTellsNothing(t *testing.T) {
	const canary = "c4naryLiteral"
	s := stage(t, `{"command":"c","env":{"A":"`+canary+`"}}`)
	v := s.approve()
	entries, err := s.store.Check(s.servers())
	if err != nil {
		t.Fatal(err)
	}
	a, ok := entries[0].Approved()
	if !ok {
		t.Fatal("not approved")
	}
	for _, x := range []any{v, &v, entries, entries[0], a, &a, []Approved{a}} {
		if got := fmt.Sprintf("%v %+v %#v %s", x, x, x, x); strings.Contains(got, canary) {
			t.Errorf("%T tells %s", x, got)
		}
	}
}
