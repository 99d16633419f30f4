package builtin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"magi-code/internal/tool"
)

var tree = map[string]string{
	"README.md": "# Title\n", "a.go": "package a\n\nfunc Foo() {}\n", "sub/b.go": "package b\n// foo\n", "sub/deep/c.ts": "let foo = 1\n",
	"sub/deep/d.tsx": "", ".git/config": "foo\n", "node_modules/x/index.js": "foo\n", ".hidden": "foo\n", "bin": "foo\x00\n",
}

func TestListFiles(t *testing.T) {
	o := workspace(t, tree)
	_ = os.Symlink("a.go", filepath.Join(o.Dir, "link"))
	put(t, filepath.Join(o.Dir, "odd\nname\x1b"), "")
	wantText(t, good(t, o, "list_files", nil),
		".git/\n.hidden\nREADME.md\na.go\nbin\nlink -> a.go\nnode_modules/\n\"odd\\nname\\x1b\"\nsub/")
	wantText(t, good(t, o, "list_files", args{"path": "sub", "depth": 2}), "sub/b.go\nsub/deep/\nsub/deep/c.ts\nsub/deep/d.tsx")
	wantText(t, good(t, o, "list_files", args{"path": "node_modules", "depth": 8}), "node_modules/x/\nnode_modules/x/index.js")
	wantText(t, good(t, o, "list_files", args{"limit": 2}), ".git/\n.hidden\n[only the first 2 are shown: give a narrower path or pattern, or a higher limit]")
	if text := good(t, o, "list_files", args{"depth": 8}); strings.Contains(text, "index.js") || strings.Contains(text, "config") {
		t.Error(text)
	}
	if err := os.Mkdir(filepath.Join(o.Dir, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantText(t, good(t, o, "list_files", args{"path": "none"}), "[the folder is empty]")
	bad(t, o, "list_files", args{"path": "a.go"}, "not a folder")
	bad(t, o, "list_files", args{"path": "nowhere"}, "does not exist")
	bad(t, o, "list_files", args{"depth": 9}, "depth must be between 1 and 8")
}

func TestFind(t *testing.T) {
	o := workspace(t, tree)
	for pattern, want := range map[string]string{
		"*.go": "a.go\nsub/b.go", "sub/*.go": "sub/b.go", "**/*.{ts,tsx}": "sub/deep/c.ts\nsub/deep/d.tsx", "sub/**": "sub/\nsub/b.go\nsub/deep/\nsub/deep/c.ts\nsub/deep/d.tsx",
		"./sub/deep/": "sub/deep/", "[ab].go": "a.go\nsub/b.go", "?.go": "a.go\nsub/b.go", "index.js": "[nothing matches]", ".hid*": ".hidden",
		"*.GO": "[nothing matches]",
	} {
		if got := good(t, o, "find", args{"pattern": pattern}); got != want {
			t.Errorf("%s: %s", pattern, got)
		}
	}
	wantText(t, good(t, o, "find", args{"pattern": "*.js", "path": "node_modules"}), "node_modules/x/index.js")
	wantText(t, good(t, o, "find", args{"pattern": "deep/*", "path": "sub", "limit": 1}),
		"sub/deep/c.ts\n[only the first 1 are shown: give a narrower path or pattern, or a higher limit]")
	bad(t, o, "find", args{"pattern": "[a"}, "malformed")
	bad(t, o, "find", args{"pattern": ""}, "empty")
	bad(t, o, "find", args{"pattern": "/etc/*"}, "begins with /")
	bad(t, o, "find", args{"pattern": strings.Repeat("{a,b}", 20)}, "alternatives")
	bad(t, o, "find", args{"pattern": "*", "path": "a.go"}, "not a folder")
}

func TestGrep(t *testing.T) {
	o := workspace(t, tree)
	grep := func(a args) string { t.Helper(); return good(t, o, "grep", a) }
	wantText(t, grep(args{"pattern": "foo"}), ".hidden:1:foo\nsub/b.go:2:// foo\nsub/deep/c.ts:1:let foo = 1")
	wantText(t, grep(args{"pattern": "FOO", "ignore_case": true, "glob": "*.go"}), "a.go:3:func Foo() {}\nsub/b.go:2:// foo")
	wantText(t, grep(args{"pattern": `^func \w+\(`}), "a.go:3:func Foo() {}")
	wantText(t, grep(args{"pattern": `foo$`, "path": "sub"}), "sub/b.go:2:// foo")
	wantText(t, grep(args{"pattern": "foo", "path": "sub/b.go"}), "sub/b.go:2:// foo")
	wantText(t, grep(args{"pattern": "foo", "path": ".git"}), ".git/config:1:foo")
	wantText(t, grep(args{"pattern": "foo", "path": "node_modules", "limit": 1}), "node_modules/x/index.js:1:foo")
	wantText(t, grep(args{"pattern": "absent"}), "[nothing matches]")
	wantText(t, grep(args{"pattern": "o", "limit": 1}), ".hidden:1:foo\n[only the first 1 matching lines are shown: narrow the search or raise limit]")

	put(t, filepath.Join(o.Dir, "ctx"), "1\n2\nhit 3\n4\nhit 5\n6\n7\n8\n9\nhit 10\n11\r\n")
	wantText(t, grep(args{"pattern": "hit", "path": "ctx", "context": 1}),
		"ctx-2-2\nctx:3:hit 3\nctx-4-4\nctx:5:hit 5\nctx-6-6\n--\nctx-9-9\nctx:10:hit 10\nctx-11-11")
	wantText(t, grep(args{"pattern": "hi.", "path": "ctx", "context": 20}), strings.TrimSuffix(func() string {
		var b strings.Builder
		for i, l := range []string{"1", "2", "hit 3", "4", "hit 5", "6", "7", "8", "9", "hit 10", "11"} {
			mark := "-"
			if strings.HasPrefix(l, "hit") {
				mark = ":"
			}
			fmt.Fprintf(&b, "ctx%s%d%s%s\n", mark, i+1, mark, l)
		}
		return b.String()
	}(), "\n"))
	put(t, filepath.Join(o.Dir, "long"), strings.Repeat("ä", 1000)+"needle"+strings.Repeat("x", 5000))
	text := grep(args{"pattern": "needle", "path": "long"})
	if len(text) > 600 || !strings.Contains(text, "needle") || !strings.Contains(text, "[line of 7006 bytes]") || strings.Contains(text, "\ufffd") {
		t.Error(text)
	}
	put(t, filepath.Join(o.Dir, "big"), strings.Repeat("foo\n", maxSearched/4+1))
	wantText(t, grep(args{"pattern": "foo", "glob": "big"}), "[nothing matches]\n[1 files over 5242880 bytes were passed over]")
	bad(t, o, "grep", args{"pattern": "("}, "pattern:", "missing closing )")
	bad(t, o, "grep", args{"pattern": "a", "context": 21}, "context must be")
	bad(t, o, "grep", args{"pattern": "a", "path": "none"}, "does not exist")
}

func TestListBounds(t *testing.T) {
	o := workspace(t, nil)
	for i := range 1000 {
		put(t, filepath.Join(o.Dir, fmt.Sprintf("%0240d", i)), "")
	}
	for name, a := range map[string]args{"list_files": {"limit": 2000}, "find": {"pattern": "*", "limit": 2000}} {
		if text := good(t, o, name, a); len(text) > maxListBytes+1000 || !strings.Contains(text, "only the first 4") {
			t.Errorf("%s: %d bytes", name, len(text))
		}
	}
}

// The result stays small however much there is to find, and a call ends with its context.
func TestGrepBounds(t *testing.T) {
	o := workspace(t, nil)
	for i := range 50 {
		put(t, filepath.Join(o.Dir, fmt.Sprint(i)), strings.Repeat(strings.Repeat("x", 300)+"\n", 200))
	}
	if text := good(t, o, "grep", args{"pattern": "x", "limit": 1000, "context": 20}); len(text) > maxGrepBytes+20*maxGrepLine || !strings.Contains(text, "only the first") {
		t.Errorf("%d bytes", len(text))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"grep", "find"} {
		if r := callContext(ctx, t, o, name, args{"pattern": "x"}); !r.IsError || !strings.Contains(r.Plain(), "canceled") {
			t.Errorf("%s: %.100s", name, r.Plain())
		}
	}
}

// Fast paths give what matching line by line gives.
func TestGrepAgainstSlow(t *testing.T) {
	o := workspace(t, map[string]string{"f": "foo\nbar foo\n\nfoobar\r\nFOO\nx\nfoo"})
	for _, pattern := range []string{"foo", "foo$", "^foo", "fo+", "bar foo", "(foo|x)", "", "o\nb", "^$", "foo.", `\bfoo\b`, "x"} {
		if pattern == "" {
			continue
		}
		var want []string
		re := regexp.MustCompile(pattern)
		for i, l := range strings.Split("foo\nbar foo\n\nfoobar\nFOO\nx\nfoo", "\n") {
			if re.MatchString(l) {
				want = append(want, fmt.Sprintf("f:%d:%s", i+1, l))
			}
		}
		if len(want) == 0 {
			want = []string{"[nothing matches]"}
		}
		if got := good(t, o, "grep", args{"pattern": pattern}); got != strings.Join(want, "\n") {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
}

// slowGrep is grep with context as one would write it without thinking of speed.
func slowGrep(files []string, text func(string) string, re *regexp.Regexp, around int) string {
	var out []string
	for _, name := range files {
		lines := strings.Split(strings.TrimSuffix(text(name), "\n"), "\n")
		last := -1
		for i, l := range lines {
			near, hit := false, re.MatchString(l)
			for j := max(0, i-around); j <= min(len(lines)-1, i+around); j++ {
				near = near || re.MatchString(lines[j])
			}
			if !near {
				continue
			}
			if around > 0 && len(out) > 0 && (last < 0 || last != i-1) {
				out = append(out, "--")
			}
			last = i
			mark := "-"
			if hit {
				mark = ":"
			}
			out = append(out, fmt.Sprintf("%s%s%d%s%s", name, mark, i+1, mark, l))
		}
	}
	if len(out) == 0 {
		return "[nothing matches]"
	}
	return strings.Join(out, "\n")
}

func TestGrepRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	o := workspace(t, nil)
	for range 100 {
		files := []string{"a", "b"}
		for _, f := range files {
			var b strings.Builder
			for range 1 + r.IntN(20) {
				b.WriteString([]string{"x", "y", "xx", "", "yx"}[r.IntN(5)] + "\n")
			}
			put(t, filepath.Join(o.Dir, f), b.String())
		}
		pattern := []string{"x", "^x", "xx", "yx|q", "^$", "[x]y*", "z"}[r.IntN(7)]
		around := r.IntN(4)
		text := func(f string) string { return get(t, filepath.Join(o.Dir, f)) }
		want := slowGrep(files, text, regexp.MustCompile(pattern), around)
		if got := good(t, o, "grep", args{"pattern": pattern, "context": around}); got != want {
			t.Fatalf("%q, context %d:\n%q\n%q\ngot\n%s\nwant\n%s", pattern, around, text("a"), text("b"), got, want)
		}
	}
}

// FuzzArguments gives tools any arguments: an error is a bounded sentence without control characters.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"pattern":"x","limit":"7"}`, `{"limit":1e309}`, `{"\u001b":1}`, `[`, `null`, `{"limit":null}`, `{"glob":{}}`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := arguments[grepArgs](tool.Call{Arguments: data})
		if err != nil {
			if text := err.Error(); len(text) > 1000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u202e' }) {
				t.Fatalf("%q", text)
			}
			return
		}
		if a.Limit > 1<<52 || a.Limit < -1<<52 {
			t.Fatalf("%d", a.Limit)
		}
	})
}

// slowGlob is the obvious definition of a pattern without braces.
func slowGlob(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		return slowGlob(pattern[1:], name) || len(name) > 0 && slowGlob(pattern, name[1:])
	}
	if len(name) == 0 {
		return false
	}
	ok, _ := path.Match(pattern[0], name[0])
	return ok && slowGlob(pattern[1:], name[1:])
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"*.go", "a/b.go"}, {"**/a/**/b", "x/a/y/a/b"}, {"{a,b}/{c,d}", "a/d"}, {"a{b,{c,d}}", "ac"}, {"[", "["}, {"{a", "{a"}, {`\{a,b}`, "{a,b}"},
		{"**", "a"}, {"a/**", "a"}, {"a//b", "a/b"}, {"{,a}", "a"}, {"}{", "x"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.Count(name, "/") > maxDepth {
			return // deeper than any walk goes
		}
		g, err := compileGlob(pattern)
		if err != nil {
			return
		}
		if len(g.alternatives) == 0 || len(g.alternatives) > maxAlternatives {
			t.Fatalf("%d alternatives", len(g.alternatives))
		}
		got := g.match(name)
		if strings.Count(name, "/") > 5 || strings.Count(pattern, "**") > 4 {
			return // the reference is exponential
		}
		want := false
		for _, a := range g.alternatives {
			want = want || slowGlob(a, strings.Split(name, "/"))
		}
		if got != want {
			t.Fatalf("%q against %q: %v, want %v", pattern, name, got, want)
		}
	})
}

// BenchmarkGrep searches a project of 2,000 files and 20 MB.
func BenchmarkGrep(b *testing.B) {
	o := Options{Dir: b.TempDir()}
	text := strings.Repeat("the quick brown fox jumps over the lazy dog, again and again\n", 160)
	for i := range 2000 {
		dir := filepath.Join(o.Dir, fmt.Sprint(i%50))
		_ = os.MkdirAll(dir, 0o755)
		_ = os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(text), 0o600)
	}
	t := &toolset{o: o}
	for _, pattern := range []string{"needle", "need(le|ful)", "(needle|pin)", "(?i)needle"} {
		b.Run(pattern, func(b *testing.B) {
			for b.Loop() {
				_, _ = t.grep(b.Context(), tool.Call{Arguments: []byte(fmt.Sprintf(`{"pattern":%q}`, pattern))})
			}
		})
	}
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			_, _ = t.find(b.Context(), tool.Call{Arguments: []byte(`{"pattern":"**/7*"}`)})
		}
	})
}
