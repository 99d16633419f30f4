package approval

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

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
