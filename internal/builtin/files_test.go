package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"magi-code/internal/tool"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("é", 5000)
	o := workspace(t, map[string]string{
		"a.txt": "one\ntwo\r\nthree", "empty": "", "bom": "\xef\xbb\xbfx\n", "bad": "a\xff\n", "long": long + "\nshort\n",
		"binary": "a\x00b", "blank": "\n\n", "many": strings.Repeat("line\n", 5000), "wide": strings.Repeat(strings.Repeat("w", 1000)+"\n", 300),
		"noend": strings.Repeat("y", 70_000),
	})
	read := func(a args) string { t.Helper(); return good(t, o, "read", a) }
	wantText(t, read(args{"path": "a.txt"}), "1\tone\n2\ttwo\n3\tthree")
	wantText(t, read(args{"path": "a.txt", "offset": 2, "limit": 1}), "2\ttwo\n[the file goes on: continue with offset 3]")
	wantText(t, read(args{"path": "a.txt", "offset": 3}), "3\tthree")
	wantText(t, read(args{"path": "empty"}), "[the file is empty]")
	wantText(t, read(args{"path": "bom"}), "1\tx")
	wantText(t, read(args{"path": "bad"}), "1\ta\ufffd")
	wantText(t, read(args{"path": "blank"}), "1\t\n2\t")
	wantText(t, read(args{"path": "long"}), "1\t"+long[:2000]+" [8000 more bytes in this line]\n2\tshort")
	wantText(t, read(args{"path": "noend"}), "1\t"+strings.Repeat("y", 2000)+" [68000 more bytes in this line]")
	if text := read(args{"path": "many"}); !strings.HasSuffix(text, "\n2000\tline\n[the file goes on: continue with offset 2001]") {
		t.Errorf("%.100s", text[len(text)-100:])
	}
	if text := read(args{"path": "wide"}); len(text) > maxReadBytes+1000 || !strings.Contains(text, "continue with offset 10") {
		t.Errorf("%d bytes", len(text))
	}
	bad(t, o, "read", args{"path": "a.txt", "offset": 4}, "beyond the end", "3 lines")
	bad(t, o, "read", args{"path": "binary"}, "binary file of 3 bytes")
	bad(t, o, "read", args{"path": "none"}, "does not exist")
	bad(t, o, "read", args{"path": "."}, "a folder", "list_files")
	bad(t, o, "read", args{"path": "a.txt", "limit": 2001}, "limit must be between 1 and 2000")
}

// Only regular files: nothing hangs on a pipe or reads a device.
func TestSpecialFiles(t *testing.T) {
	o := workspace(t, nil)
	if out, err := exec.Command("mkfifo", filepath.Join(o.Dir, "pipe")).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %s", out)
	}
	bad(t, o, "read", args{"path": "pipe"}, "named pipe")
	bad(t, o, "write", args{"path": "pipe", "content": "x"}, "named pipe")
	bad(t, o, "edit", args{"path": "pipe", "old": "x", "new": "y"}, "named pipe")
	bad(t, o, "grep", args{"path": "pipe", "pattern": "x"}, "named pipe")
	wantText(t, good(t, o, "grep", args{"pattern": "x"}), "[nothing matches]")
	o.ExtraRoots = []string{"/dev"}
	bad(t, o, "read", args{"path": "/dev/zero"}, "a device")
}

func TestReadImages(t *testing.T) {
	o := workspace(t, map[string]string{
		"a.txt": "\x89PNG\r\n\x1a\nrest", "b": "\xff\xd8\xffrest", "c": "GIF89arest", "d": "RIFF1234WEBPrest",
		"big.png": "\x89PNG\r\n\x1a\n" + strings.Repeat("x", maxImage), "svg.svg": "<svg/>",
	})
	for path, mime := range map[string]string{"a.txt": "image/png", "b": "image/jpeg", "c": "image/gif", "d": "image/webp"} {
		r := call(t, o, "read", args{"path": path})
		if r.IsError || len(r.Content) != 2 || r.Content[1].Kind != tool.Image || r.Content[1].MIME != mime ||
			string(r.Content[1].Data) != get(t, filepath.Join(o.Dir, path)) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	bad(t, o, "read", args{"path": "big.png"}, "image of 5242888 bytes")
	wantText(t, good(t, o, "read", args{"path": "svg.svg"}), "1\t<svg/>")
}

func TestWrite(t *testing.T) {
	o := workspace(t, map[string]string{"run.sh": "old\n", "ro": "x"})
	path := func(name string) string { return filepath.Join(o.Dir, name) }
	if err := os.Chmod(path("run.sh"), 0o775); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path("ro"), 0o444); err != nil {
		t.Fatal(err)
	}
	wantText(t, good(t, o, "write", args{"path": "a/b/c.txt", "content": "one\ntwo"}), "[created a/b/c.txt: 2 lines, 7 bytes]")
	wantText(t, get(t, path("a/b/c.txt")), "one\ntwo")
	r := call(t, o, "write", args{"path": "run.sh", "content": "new\n"})
	wantText(t, r.Plain(), "[replaced run.sh: 1 lines, 4 bytes]")
	wantText(t, r.Diff, "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-old\n+new\n")
	if st, _ := os.Stat(path("run.sh")); st.Mode().Perm() != 0o775 {
		t.Errorf("mode %v", st.Mode())
	}
	wantText(t, good(t, o, "write", args{"path": "run.sh", "content": "new\n"}), "[run.sh already has this content]")
	wantText(t, good(t, o, "write", args{"path": "empty", "content": ""}), "[created empty: 0 lines, 0 bytes]")
	bad(t, o, "write", args{"path": "ro", "content": "y"}, "read-only")
	bad(t, o, "write", args{"path": "a", "content": "y"}, "a folder")
	bad(t, o, "write", args{"path": ".", "content": "y"}, "a folder")
	bad(t, o, "edit", args{"path": "none", "old": "a", "new": "b"}, "does not exist", "use write")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := callContext(ctx, t, o, "write", args{"path": "late", "content": "y"}); !r.IsError {
		t.Error("written after the end of the context")
	}
	// Nothing is left behind.
	var names []string
	_ = filepath.WalkDir(o.Dir, func(p string, _ os.DirEntry, _ error) error { names = append(names, filepath.Base(p)); return nil })
	if got := strings.Join(names, " "); got != "ws a b c.txt empty ro run.sh" {
		t.Error(got)
	}
}

func TestEdit(t *testing.T) {
	const text = "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"
	o := workspace(t, nil)
	file := filepath.Join(o.Dir, "f.go")
	for _, tc := range []struct {
		name, text, old, new string
		all                  bool
		want                 string
	}{
		{"once", text, "func a", "func c", false, strings.Replace(text, "func a", "func c", 1)},
		{"all", text, "return 1", "return 2", true, strings.ReplaceAll(text, "return 1", "return 2")},
		{"delete", text, "func b() {\n\treturn 1\n}\n", "", false, "func a() {\n\treturn 1\n}\n\n"},
		{"crlf", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n"},
		{"crlf one line", "a\r\nb\r\n", "b", "x\ny", false, "a\r\nx\r\ny\r\n"},
		{"crlf before", "a\r\nb\r\n", "\nb", "\nx\ny", false, "a\r\nx\r\ny\r\n"},
		{"crlf given", "a\r\nb\r\n", "a\r\nb", "c", false, "c\r\n"},
		{"mixed, lf part", "a\nb\na\nc\r\nd\r\ne\n", "a\nb", "x\ny", false, "x\ny\na\nc\r\nd\r\ne\n"},
		{"mixed, crlf part", "a\nb\nx\nc\r\nd\r\ne\n", "c\nd", "x\ny", false, "a\nb\nx\nx\r\ny\r\ne\n"},
		{"no end", "a\nb", "b", "c", false, "a\nc"},
		{"invalid utf-8 around", "\xffa\xfe", "a", "b", false, "\xffb\xfe"},
		{"bom", "\xef\xbb\xbfa", "a", "b", false, "\xef\xbb\xbfb"},
	} {
		put(t, file, tc.text)
		r := call(t, o, "edit", args{"path": "f.go", "old": tc.old, "new": tc.new, "all": tc.all})
		if r.IsError {
			t.Errorf("%s: %s", tc.name, r.Plain())
			continue
		}
		if got := get(t, file); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if got, err := applyDiff(tc.text, r.Diff); err != nil || got != tc.want {
			t.Errorf("%s: the diff leads to %q, %v\n%s", tc.name, got, err, r.Diff)
		}
	}
	put(t, file, text)
	for _, tc := range []struct {
		old   string
		words []string
	}{
		{"return 1", []string{"2 times", "lines 2, 6", "unique"}},
		{"1\tfunc a() {\n2\t\treturn 1", []string{"line numbers"}},
		{"func a() {\n  return 1\n}", []string{"line 1", "white space"}},
		{"func  b()  {\n", []string{"line 5", "white space"}},
		{"nothing here\nreturn 1", []string{"its line 2", "line 2 of the file"}},
		{"nothing like it", []string{"not even one"}},
		{"", []string{"empty"}},
	} {
		bad(t, o, "edit", args{"path": "f.go", "old": tc.old, "new": "x"}, tc.words...)
	}
	bad(t, o, "edit", args{"path": "f.go", "old": "a", "new": "a"}, "the same")
	wantText(t, get(t, file), text)
	put(t, file, "a\x00b")
	bad(t, o, "edit", args{"path": "f.go", "old": "a", "new": "b"}, "binary")
}

// Calls that run side by side lose no change.
func TestParallelEdits(t *testing.T) {
	o := workspace(t, nil)
	tools, _ := tool.NewSet(Tools(o)...)
	edit, _ := tools.Get("edit")
	put(t, filepath.Join(o.Dir, "f"), "0 1 2 3 4 5 6 7 8 9 ")
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			_, err := edit.Run(t.Context(), tool.Call{Name: "edit", Arguments: []byte(fmt.Sprintf(`{"path":"f","old":"%d ","new":"x"}`, i))})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantText(t, get(t, filepath.Join(o.Dir, "f")), "xxxxxxxxxx")
}

func TestPreview(t *testing.T) {
	o := workspace(t, map[string]string{"a": "one\ntwo\n", "bin": "\x00"})
	preview := func(name string, a args) string {
		_, c := parsed(t, o, name, a)
		return Preview(t.Context(), o, c)
	}
	wantText(t, preview("write", args{"path": "new", "content": "x"}), "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n")
	wantText(t, preview("edit", args{"path": "a", "old": "two", "new": "2"}), "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n")
	wantText(t, preview("edit", args{"path": "a", "old": "three", "new": "2"}), "")
	wantText(t, preview("write", args{"path": "../x", "content": ""}), "")
	wantText(t, preview("bash", args{"command": "ls"}), "")
	if d := preview("write", args{"path": "bin", "content": "x"}); !strings.Contains(d, "binary") {
		t.Error(d)
	}
	wantText(t, get(t, filepath.Join(o.Dir, "a")), "one\ntwo\n")
}

// editor is a Files with unsaved buffers.
type editor struct{ buffers map[string]string }

var errNoBuffer = errors.New("no such buffer")

func (e editor) ReadText(_ context.Context, path string) (string, error) {
	if text, ok := e.buffers[path]; ok {
		return text, nil
	}
	return "", errNoBuffer
}

func (e editor) WriteText(_ context.Context, path, text string) error {
	e.buffers[path] = text
	return nil
}

// Unsaved buffers of an editor stand in for the disk, inside the same walls.
func TestEditorBuffers(t *testing.T) {
	o := workspace(t, map[string]string{"a": "disk\n", "img": "GIF89a"})
	path := func(name string) string { return filepath.Join(o.Dir, name) }
	ed := editor{map[string]string{path("a"): "buffer\n", path("new"): "unsaved\n", "/etc/passwd": "root"}}
	o.Files = ed
	wantText(t, good(t, o, "read", args{"path": "a"}), "1\tbuffer")
	wantText(t, good(t, o, "read", args{"path": "new"}), "1\tunsaved")
	bad(t, o, "read", args{"path": "none"}, "no such buffer")
	bad(t, o, "read", args{"path": "/etc/passwd"}, "outside")
	if r := call(t, o, "read", args{"path": "img"}); len(r.Content) != 2 {
		t.Errorf("%+v", r)
	}
	r := call(t, o, "edit", args{"path": "a", "old": "buffer", "new": "changed"})
	if r.IsError || !strings.Contains(r.Diff, "-buffer\n+changed\n") {
		t.Errorf("%+v", r)
	}
	good(t, o, "write", args{"path": "x/y", "content": "y"})
	wantText(t, ed.buffers[path("a")], "changed\n")
	wantText(t, ed.buffers[path("x/y")], "y")
	wantText(t, get(t, path("a")), "disk\n")
}
