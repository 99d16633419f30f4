package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"magi-code/internal/jsondoc"
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

// R-A2: the record is exactly as specified, and tells nothing.
func TestRecordForm(t *testing.T) {
	s := stage(t, `{"command":"c4nary-command"}`)
	s.write(s.store.settingsPath(), "{\n  \"provider\": \"x\",\n  \"later\":[1,  2]\n}\n")
	v := s.approve()
	want := "{\n  \"provider\": \"x\",\n  \"later\":[1,  2],\n  \"capabilities\": {\n    \"mcp_approvals\": {\n      " +
		fmt.Sprintf("%q", s.file) + ": {\n        \"s\": {\"version\":1,\"digest\":\"" + v.Fingerprint + "\"}\n      }\n    }\n  }\n}\n"
	if got := s.settings(); got != want {
		t.Errorf("settings\n%s\nwant\n%s", got, want)
	}
	if err := s.store.Revoke(t.Context(), s.file, "s"); err != nil {
		t.Fatal(err)
	}
	if got := s.settings(); !strings.Contains(got, `"s": false`) {
		t.Errorf("revoked: %s", got)
	}
}

// R-A3, S8: malformed records of every kind authorize nothing.
func TestMalformedRecords(t *testing.T) {
	s := stage(t, `{"command":"c"}`)
	digest := s.approve().Fingerprint
	s.record(`{"version":1,"digest":"` + digest + `"}`)
	s.want("the control", IsApproved)
	tests := map[string]State{
		`null`: Invalid, `1`: Invalid, `0`: Invalid, `"x"`: Invalid, `""`: Invalid, `[]`: Invalid, `{}`: Invalid,
		`true`: RenewalRequired, `false`: Revoked,
		`"` + digest + `"`:                                                               Invalid,
		`["` + digest + `"]`:                                                             Invalid,
		`{"version":1}`:                                                                  Invalid,
		`{"version":1,"x":true}`:                                                         Invalid,
		`{"digest":"` + digest + `"}`:                                                    Invalid,
		`{"version":"1","digest":"` + digest + `"}`:                                      Invalid,
		`{"version":null,"digest":"` + digest + `"}`:                                     Invalid,
		`{"version":true,"digest":"` + digest + `"}`:                                     Invalid,
		`{"version":[1],"digest":"` + digest + `"}`:                                      Invalid,
		`{"version":1.0,"digest":"` + digest + `"}`:                                      Invalid,
		`{"version":1e0,"digest":"` + digest + `"}`:                                      Invalid,
		`{"version":2,"digest":"` + digest + `"}`:                                        RenewalRequired,
		`{"version":0,"digest":"` + digest + `"}`:                                        RenewalRequired,
		`{"version":-1,"digest":"` + digest + `"}`:                                       RenewalRequired,
		`{"version":2}`:                                                                  RenewalRequired,
		`{"version":18446744073709551617,"digest":"` + digest + `"}`:                     RenewalRequired,
		`{"version":1,"digest":"` + digest[1:] + `"}`:                                    Invalid,
		`{"version":1,"digest":"` + digest + `0"}`:                                       Invalid,
		`{"version":1,"digest":""}`:                                                      Invalid,
		`{"version":1,"digest":"` + strings.ToUpper(digest[:63]) + `F"}`:                 Invalid,
		`{"version":1,"digest":"` + digest[:63] + `g"}`:                                  Invalid,
		`{"version":1,"digest":"` + digest[:63] + ` "}`:                                  Invalid,
		`{"version":1,"digest":" ` + digest[:63] + `"}`:                                  Invalid,
		`{"version":1,"digest":null}`:                                                    Invalid,
		`{"version":1,"digest":1}`:                                                       Invalid,
		`{"version":1,"digest":true}`:                                                    Invalid,
		`{"version":1,"digest":["` + digest + `"]}`:                                      Invalid,
		`{"version":1,"Digest":"` + digest + `"}`:                                        Invalid,
		`{"Version":1,"digest":"` + digest + `"}`:                                        Invalid,
		`{"version":1,"digest":"` + digest + `","x":1}`:                                  Invalid,
		`{"version":1,"digest":"` + flip(digest) + `"}`:                                  Changed,
		`{"version":1,"digest":"` + strings.Repeat("0", 64) + `"}`:                       Changed,
		`{"digest":"` + digest + `","version":1}`:                                        IsApproved,
		`{"version":1,"digest":"\u00` + fmt.Sprintf("%x", digest[0]) + digest[1:] + `"}`: IsApproved, // the same text
	}
	for raw, want := range tests {
		s.record(raw)
		s.want(raw, want)
	}
	for _, text := range []string{
		`{"capabilities":{"mcp_approvals":%s}}`, `{"capabilities":{"mcp_approvals":{"` + filepath.ToSlash(s.file) + `":%s}}}`,
	} {
		for _, raw := range []string{"true", "null", "1", `"x"`, "[]"} {
			s.write(s.store.settingsPath(), fmt.Sprintf(text, raw))
			if got := s.state(); got == IsApproved || got == NeverApproved || got == Revoked {
				t.Errorf("%s with %s: %v", text, raw, got)
			}
		}
	}
	for _, text := range []string{`{"capabilities":true}`, `{}`, ``, `{"Capabilities":{"mcp_approvals":{"` + s.file + `":{"s":{"version":1,"digest":"` + digest + `"}}}}}`} {
		s.write(s.store.settingsPath(), text)
		s.want(text, NeverApproved)
	}
	dup := fmt.Sprintf(`{"capabilities":{"mcp_approvals":{%q:{"s":false,"s":{"version":1,"digest":"%s"}}}}}`, s.file, digest)
	s.write(s.store.settingsPath(), dup)
	if _, err := s.store.Check(s.servers()); err == nil {
		t.Error("duplicate records are read")
	}
}

// flip changes one digit.
func flip(digest string) string {
	if digest[0] == '0' {
		return "1" + digest[1:]
	}
	return "0" + digest[1:]
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

// R-A6, S5: an action on something that changed since it was shown saves nothing.
func TestStaleApproval(t *testing.T) {
	s := stage(t, `{"command":"c"}`)
	shown := s.review()
	changes := map[string]func(){
		"another definition": func() { s.define(`{"command":"evil"}`) },
		"another name":       func() { s.write(s.file, `{"mcpServers":{"t":{"command":"c"}}}`) },
		"no file":            func() { _ = os.Remove(s.file) },
		"another key":        func() { s.define(`{"command":"c"}`); s.write(s.store.keyPath(), strings.Repeat("k", keyBytes)) },
		"no key":             func() { s.define(`{"command":"c"}`); _ = os.Remove(s.store.keyPath()) },
	}
	for _, name := range []string{"another definition", "another name", "no file", "another key", "no key"} {
		changes[name]()
		err := s.store.Approve(t.Context(), shown, none)
		var stale *StaleError
		if !errors.As(err, &stale) || stale.Server != "s" || !strings.Contains(err.Error(), "look at it again") {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.settings(); got != "" {
			t.Errorf("%s: saved %s", name, got)
		}
	}
	s.write(s.file, `{"mcpServers":{"s":{"command":7}}}`)
	if err := s.store.Approve(t.Context(), shown, none); err == nil || s.settings() != "" {
		t.Errorf("a broken definition: %v", err)
	}
	s.define(`{"command":"c"}`)
	fresh := s.review()
	for _, fingerprint := range []string{"", fresh.Fingerprint[:63], flip(fresh.Fingerprint), strings.ToUpper(fresh.Fingerprint)} {
		v := fresh
		v.Fingerprint = fingerprint
		if err := s.store.Approve(t.Context(), v, none); err == nil {
			t.Errorf("fingerprint %q is accepted", fingerprint)
		}
	}
	swapped := fresh
	swapped.Server.Command = "shown to nobody" // what counts is the file and the fingerprint
	if err := s.store.Approve(t.Context(), swapped, none); err != nil {
		t.Fatal(err)
	}
	s.want("approved from the file", IsApproved)
}

// R-A6: what cannot run is not approved, and what was saved before stays.
func TestApprovalChecksFirst(t *testing.T) {
	const canary = "c4naryValue"
	lookup := func(name string) (string, bool) { return canary + "\n", name == "LF" }
	for entry, want := range map[string]string{
		`{"command":"${MISSING}"}`:                                     "MISSING is not set",
		`{"command":"c","timeout":0}`:                                  "timeout",
		`{"command":"c","args":["${"]}`:                                "no closing",
		`{"type":"http","url":"http://far.example"}`:                   "plain http",
		`{"type":"http","url":"https://h","headers":{"X":"${LF}"}}`:    "headers.X",
		`{"type":"http","url":"https://u:p@h"}`:                        "user name",
		`{"type":"http","url":"https://h","headers":{"Host":"h"}}`:     "headers.Host",
		`{"type":"http","url":"https://h","oauth":{"scopes":["a b"]}}`: "oauth.scopes[0]",
	} {
		s := stage(t, entry)
		if err := s.store.Revoke(t.Context(), s.file, "s"); err != nil {
			t.Fatal(err)
		}
		before := s.settings()
		err := s.store.Approve(t.Context(), s.review(), lookup)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", entry, err)
		}
		if s.settings() != before || s.state() != Revoked {
			t.Errorf("%s: the saved decision changed", entry)
		}
	}
}

// R-A10: what no longer parses or exists can be revoked.
func TestRevokeWithoutDefinition(t *testing.T) {
	s := stage(t, `{"command":"c"}`)
	s.approve()
	s.write(s.file, "{broken")
	if err := s.store.Revoke(t.Context(), s.file, "s"); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Revoke(t.Context(), "/gone/.mcp.json", "g"); err != nil {
		t.Fatal(err)
	}
	s.define(`{"command":"c"}`)
	s.want("revoked", Revoked)
	left, err := s.store.Leftover(s.servers())
	if err != nil || len(left) != 1 || left[0] != (Record{"/gone/.mcp.json", "g"}) {
		t.Errorf("left over: %v, %v", left, err)
	}
	for _, pair := range [][2]string{{"", "s"}, {s.file, ""}} {
		if err := s.store.Revoke(t.Context(), pair[0], pair[1]); err == nil {
			t.Errorf("%q is revoked", pair)
		}
	}
}

// R-A3, R-A6: settings that cannot be read or written give an error, never an approval.
func TestBrokenSettings(t *testing.T) {
	s := stage(t, `{"command":"c"}`)
	v := s.approve()
	s.write(s.store.settingsPath(), "{\n// mine\n}")
	if _, err := s.store.Check(s.servers()); err == nil || !strings.Contains(err.Error(), ":2:1: comments") {
		t.Errorf("Check: %v", err)
	}
	if err := s.store.Approve(t.Context(), v, none); err == nil || !strings.Contains(err.Error(), ":2:1: comments") {
		t.Errorf("Approve: %v", err)
	}
	if got := s.settings(); got != "{\n// mine\n}" {
		t.Errorf("the file changed to %q", got)
	}
}

// R-A5, S8: the key file.
func TestKeyFile(t *testing.T) {
	s := stage(t, `{"command":"c"}`)
	s.approve()
	path := s.store.keyPath()
	key, err := os.ReadFile(path)
	if err != nil || len(key) != keyBytes || bytes.Equal(key, make([]byte, keyBytes)) {
		t.Fatalf("key %x, %v", key, err)
	}
	refuse := func(what string) {
		t.Helper()
		_, err := s.store.Check(s.servers())
		if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: Check says %v", what, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), string(key)) {
			t.Errorf("%s: the key is told", what)
		}
		if _, err := s.store.Review(t.Context(), s.servers()[0]); !errors.Is(err, ErrKey) {
			t.Errorf("%s: Review says %v", what, err)
		}
		if err := s.store.Approve(t.Context(), View{Server: s.servers()[0]}, none); !errors.Is(err, ErrKey) {
			t.Errorf("%s: Approve says %v", what, err)
		}
	}
	for what, text := range map[string][]byte{"short": key[:31], "long": append(bytes.Clone(key), '\n'), "empty": nil, "huge": make([]byte, 1<<20)} {
		s.write(path, string(text))
		refuse(what)
	}
	_ = os.Remove(path)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	refuse("a folder")
	_ = os.Remove(path)
	if entries, err := s.store.Check(nil); err != nil || len(entries) != 0 {
		t.Errorf("no servers: %v, %v", entries, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	s.write(path+".other", string(key))
	if err := os.Symlink(path+".other", path); err != nil {
		t.Fatal(err)
	}
	refuse("a link")
	_ = os.Remove(path)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o606, 0o644, 0o666, 0o610} {
		s.write(path, string(key))
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		refuse(mode.String())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s.want("mended", IsApproved)
	if info, _ := os.Stat(s.home); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v", info.Mode())
	}
}

// R-A5: processes that make the key at once end with one.
func TestKeyRace(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	results := make([]string, 6)
	var wg sync.WaitGroup
	for i := range results {
		cmd := exec.Command(exe, home)
		cmd.Env = append(os.Environ(), roleVar+"=review")
		wg.Go(func() {
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			results[i] = string(out)
		})
	}
	wg.Wait()
	for _, r := range results {
		if !isDigest(r) || r != results[0] {
			t.Errorf("fingerprints %q and %q", r, results[0])
		}
	}
	if info, err := os.Stat(filepath.Join(home, "mcp-approval.key")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
	entries, _ := os.ReadDir(home)
	if len(entries) != 1 {
		t.Errorf("more than the key is left: %v", entries)
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

// FuzzRecord: no record but the right one authorizes.
func FuzzRecord(f *testing.F) {
	key := bytes.Repeat([]byte("k"), keyBytes)
	d := definition.Server{Name: "s", Source: "/p", Type: definition.Stdio, Command: "c", Timeout: 30}
	right := digest(key, d)
	for _, raw := range []string{"true", "false", "null", `{"version":1,"digest":"` + right + `"}`, `{"version":2}`, `{"digest":[],"version":1}`} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := jsondoc.Parse([]byte(raw))
		if err != nil {
			return
		}
		got := judge(v, key, d)
		if got == IsApproved && !(v.Get("digest").Text == right && string(v.Get("version").Raw) == "1" && len(v.Members) == 2) {
			t.Fatalf("%s authorizes", raw)
		}
		if got == NeverApproved {
			t.Fatalf("%s counts as nothing", raw)
		}
		if judge(v, nil, d) == IsApproved {
			t.Fatalf("%s authorizes without a key", raw)
		}
	})
}
