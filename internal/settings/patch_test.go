package settings

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/jsondoc"
)

// roleVar makes the test binary a writer process instead.
const roleVar = "SETTINGS_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) == "writer" {
		writerRole()
		return
	}
	os.Exit(m.Run())
}

// writerRole sets os.Args[2]+number in os.Args[1] for ever or os.Args[3] times, telling each number when it is saved.
func writerRole() {
	times, _ := strconv.Atoi(os.Args[3])
	for i := 0; times == 0 || i < times; i++ {
		keys := []string{"capabilities", "mcp_approvals", "/p/" + os.Args[2], "n" + strconv.Itoa(i)}
		if err := Patch(context.Background(), os.Args[1], keys, jsontext.Value(strconv.Itoa(i))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// writer starts the test binary as a writer process.
func writer(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), roleVar+"=writer")
	cmd.Stderr = os.Stderr
	return cmd
}

// R-A8: one path changes, every other byte stays.
func TestPatchFormatting(t *testing.T) {
	tests := []struct{ name, in, keys, value, want string }{
		{"new file", "", "a.b.c", `1`, "{\n  \"a\": {\n    \"b\": {\n      \"c\": 1\n    }\n  }\n}\n"},
		{"empty object", "{}", "a", `true`, "{\n  \"a\": true\n}"},
		{"empty object with space", "{ \n }\n", "a", `true`, "{\n  \"a\": true\n}\n"},
		{"replace", `{ "a" : 1 ,"b":2}`, "a", `"x"`, `{ "a" : "x" ,"b":2}`},
		{"replace deep", "{\n\t\"x\": {\"y\": [1,\n2]}\n}", "x.y", `{}`, "{\n\t\"x\": {\"y\": {}}\n}"},
		{"append compact", `{"a":1}`, "b", `2`, `{"a":1,"b":2}`},
		{"append compact with space", `{"a": 1, "c": 3}`, "b", `2`, `{"a": 1, "c": 3, "b": 2}`},
		{"append after an only member", `{ "a": 1 }`, "b", `2`, `{ "a": 1, "b": 2 }`},
		{"append compact nested", `{"a":1}`, "b.c.d", `2`, `{"a":1,"b":{"c":{"d":2}}}`},
		{"append lines", "{\n    \"a\": 1\n}\n", "b.c", `2`, "{\n    \"a\": 1,\n    \"b\": {\n        \"c\": 2\n    }\n}\n"},
		{"append tabs", "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}", "a.c", `2`, "{\n\t\"a\": {\n\t\t\"b\": 1,\n\t\t\"c\": 2\n\t}\n}"},
		{"append to inline object of a lined file", "{\n  \"a\": {\"b\": 1},\n  \"z\": 0\n}", "a.c.d", `2`, "{\n  \"a\": {\"b\": 1, \"c\": {\"d\": 2}},\n  \"z\": 0\n}"},
		{"into empty inner object", "{\n  \"a\": {},\n  \"z\": 0\n}", "a.c", `2`, "{\n  \"a\": {\n    \"c\": 2\n  },\n  \"z\": 0\n}"},
		{"into empty inner object, compact", `{"a":{}}`, "a.c", `2`, `{"a":{"c":2}}`},
		{"CRLF", "{\r\n  \"a\": 1\r\n}\r\n", "b.c", `2`, "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"c\": 2\r\n  }\r\n}\r\n"},
		{"mark at the start", "\xef\xbb\xbf{\"a\":1}", "b", `2`, "\xef\xbb\xbf{\"a\":1,\"b\":2}"},
		{"odd colons", "{\n \"a\" : 1\n}", "b", `2`, "{\n \"a\" : 1,\n \"b\": 2\n}"},
		{"escaped name found", `{"\u0061":1}`, "a", `2`, `{"\u0061":2}`},
		{"name needing escapes", `{"x":1}`, "a\"\\\n", `2`, `{"x":1,"a\"\\\n":2}`},
		{"value trimmed", `{"x":1}`, "x", " 2\n", `{"x":2}`},
		{"number kept to the digit", `{"x":1.000,"y":1e400}`, "z", `12345678901234567890`, `{"x":1.000,"y":1e400,"z":12345678901234567890}`},
		{"remove first", "{\n  \"a\": 1,\n  \"b\": 2\n}", "a", "", "{\n  \"b\": 2\n}"},
		{"remove last", "{\n  \"a\": 1,\n  \"b\": 2\n}", "b", "", "{\n  \"a\": 1\n}"},
		{"remove middle", `{"a":1, "b":2, "c":3}`, "b", "", `{"a":1, "c":3}`},
		{"remove only", "{\n  \"a\": {\n    \"b\": 2\n  }\n}", "a.b", "", "{\n  \"a\": {}\n}"},
		{"remove what is not there", "{ }", "a.b", "", "{ }"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := put(t, tt.in)
			var value jsontext.Value
			if tt.value != "" {
				value = jsontext.Value(tt.value)
			}
			if err := Patch(t.Context(), path, strings.Split(tt.keys, "."), value); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %q\nwant %q (%v)", got, tt.want, err)
			}
		})
	}
}

func TestPatchRefuses(t *testing.T) {
	tests := []struct{ name, in, value, want string }{
		{"comments", "{\n  // mine\n  \"a\": 1\n}", "1", ":2:3: comments are not part of JSON"},
		{"trailing comma", "{\"a\":1,}", "1", ":1:7: there is a comma"},
		{"no object", "[]", "1", ":1:1: must be an object"},
		{"no object inside", `{"x":7}`, "1", ":1:6: x: must be an object and is a number"},
		{"broken value", `{}`, "{", "the new value is not JSON"},
		{"empty value", `{}`, " ", "the new value is not JSON"},
		{"two values", `{}`, "1 2", "the new value is not JSON"},
		{"too large", `{}`, `"` + strings.Repeat("x", MaxBytes) + `"`, "larger than 1 MiB"},
	}
	for _, tt := range tests {
		path := put(t, tt.in)
		err := Patch(t.Context(), path, []string{"x", "y"}, jsontext.Value(tt.value))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		if got, _ := os.ReadFile(path); string(got) != tt.in {
			t.Errorf("%s: the file changed to %q", tt.name, got)
		}
	}
	path := put(t, "{}")
	if err := Patch(t.Context(), path, nil, jsontext.Value("1")); err == nil {
		t.Error("no keys are accepted")
	}
	if err := Patch(t.Context(), path, []string{"\xff"}, jsontext.Value("1")); err == nil {
		t.Error("a name that no file can hold is accepted")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Patch(ended, path, []string{"a"}, jsontext.Value("1")); err == nil {
		t.Error("an ended context is not noticed")
	}
}

// R-A8: modes are kept, a new file and its folder are private, a link stays a link.
func TestPatchModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there modes are not what protects a file
	}
	fresh := filepath.Join(t.TempDir(), "home", "settings.json")
	old := put(t, "{}")
	if err := os.Chmod(old, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(old, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fresh, old, link} {
		if err := Patch(t.Context(), path, []string{"a"}, jsontext.Value("1")); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]os.FileMode{fresh: 0o600, filepath.Dir(fresh): 0o700, old: 0o640} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
}

func TestRaw(t *testing.T) {
	path := put(t, `{"a":{"b":[1, 2]},"n":null}`)
	for keys, want := range map[string]string{"a.b": "[1, 2]", "a": `{"b":[1, 2]}`, "n": "null", "x": "", "a.x": "", "n.x": "", "a.b.c": ""} {
		got, err := Raw(path, strings.Split(keys, ".")...)
		if err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%s: %q, %v", keys, got, err)
		}
	}
	if got, err := Raw(filepath.Join(t.TempDir(), "none"), "a"); got != nil || err != nil {
		t.Errorf("missing file: %q, %v", got, err)
	}
	if _, err := Raw(put(t, "{"), "a"); err == nil {
		t.Error("a broken file is read")
	}
}

// R-A8: concurrent writers, processes and goroutines, lose nothing.
func TestConcurrentWriters(t *testing.T) {
	path := put(t, "{\n  \"keep\": [1,   2]\n}\n")
	const processes, each = 3, 15
	var wg sync.WaitGroup
	for p := range processes {
		cmd := writer(t, path, strconv.Itoa(p), strconv.Itoa(each))
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for i := range each {
				if err := Patch(t.Context(), path, []string{"here", strconv.Itoa(p), strconv.Itoa(i)}, jsontext.Value(strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for p := range processes {
		for i := range each {
			for _, keys := range [][]string{{"capabilities", "mcp_approvals", "/p/" + strconv.Itoa(p), "n" + strconv.Itoa(i)}, {"here", strconv.Itoa(p), strconv.Itoa(i)}} {
				if got, err := Raw(path, keys...); err != nil || string(got) != strconv.Itoa(i) {
					t.Fatalf("%v is lost: %q, %v", keys, got, err)
				}
			}
		}
	}
	if data, _ := os.ReadFile(path); !bytes.Contains(data, []byte("\"keep\": [1,   2]")) {
		t.Error("what was there changed")
	}
}

// R-A8: of those that change one value at once, by the file's name or by that of a link to it, none loses what it did.
func TestConcurrentUpdates(t *testing.T) {
	path := put(t, "{}")
	link := filepath.Join(t.TempDir(), "settings.json")
	if err := os.Symlink(path, link); err != nil {
		if runtime.GOOS == "windows" {
			link = path // links need a privilege there
		} else {
			t.Fatal(err)
		}
	}
	const writers, each = 4, 10
	var wg sync.WaitGroup
	for w := range writers {
		name := []string{path, link}[w%2]
		wg.Go(func() {
			for i := range each {
				err := Update(t.Context(), name, []string{"list"}, func(old jsontext.Value) (jsontext.Value, error) {
					if old == nil {
						return jsontext.Value(fmt.Sprintf(`["%d-%d"]`, w, i)), nil
					}
					return jsontext.Value(fmt.Sprintf(`%s, "%d-%d"]`, strings.TrimSuffix(string(old), "]"), w, i)), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := Raw(path, "list")
	if err != nil || strings.Count(string(got), "-") != writers*each {
		t.Errorf("of %d changes these are left: %s, %v", writers*each, got, err)
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(link)} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s holds %v, %v", dir, entries, err)
		}
	}
	refuse := func(jsontext.Value) (jsontext.Value, error) { return nil, fs.ErrInvalid }
	if err := Update(t.Context(), path, []string{"list"}, refuse); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("the refusal became %v", err)
	}
	if after, _ := Raw(path, "list"); string(after) != string(got) {
		t.Errorf("a refused change wrote %s", after)
	}
}

// R-A8: a writer killed at any point leaves the old or the new file, and everything that it said was saved.
func TestKilledWriters(t *testing.T) {
	path := put(t, "{}")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".settings.json.new-1"), nil, 0o600); err != nil {
		t.Fatal(err) // what a killed writer may leave
	}
	for round := range 6 {
		cmd := writer(t, path, strconv.Itoa(round), "0")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		saved := -1
		for range 2 + 3*round {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
			saved, _ = strconv.Atoi(lines.Text())
		}
		_ = cmd.Process.Kill()
		for lines.Scan() {
			saved, _ = strconv.Atoi(lines.Text())
		}
		_ = cmd.Wait()
		for i := range saved + 1 {
			if got, err := Raw(path, "capabilities", "mcp_approvals", "/p/"+strconv.Itoa(round), "n"+strconv.Itoa(i)); err != nil || string(got) != strconv.Itoa(i) {
				t.Fatalf("round %d: %d of %d is lost: %q, %v", round, i, saved, got, err)
			}
		}
		if err := Patch(t.Context(), path, []string{"after", strconv.Itoa(round)}, jsontext.Value("1")); err != nil {
			t.Fatalf("a killed writer holds the lock: %v", err)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Fatalf("more is left than the file: %v, %v", entries, err)
		}
	}
}

// FuzzPatch: whatever strict JSON a file holds, a change arrives, and taking it back leaves the other values as they were.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, "{\n\t\"a\": {},\r\n\t\"b\" :2 }", `{"a":{"b":{"c":1}}}`, "\xef\xbb\xbf{\"x\":[]}", "{\"a\"\n:\n1}"} {
		f.Add([]byte(s), "a", "b")
	}
	f.Fuzz(func(t *testing.T, data []byte, k1, k2 string) {
		root, err := parseBytes("/p", data)
		if err != nil || root == nil || !jsontextValid(k1) || !jsontextValid(k2) {
			return
		}
		keys := []string{k1, k2}
		e := &editor{path: "/p", data: data}
		changed, err := e.set(root, keys, jsontext.Value(`{"v": 1}`))
		if err != nil {
			return
		}
		if err := validate("/p", changed, keys, jsontext.Value(`{"v": 1}`)); err != nil {
			t.Fatalf("%q: %v", changed, err)
		}
		again, err := parseBytes("/p", changed)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range root.Members {
			if m.Name != k1 && !bytes.Equal(again.Get(m.Name).Raw, m.Value.Raw) {
				t.Fatalf("%q changed", m.Name)
			}
		}
		removed, err := (&editor{path: "/p", data: changed}).set(again, keys, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate("/p", removed, keys, nil); err != nil {
			t.Fatalf("%q: %v", removed, err)
		}
	})
}

// jsontextValid reports whether a name can stand in JSON.
func jsontextValid(s string) bool {
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return false
	}
	_, err = jsondoc.Parse(q)
	return err == nil
}
