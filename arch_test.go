package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// This file holds the architecture (docs/architecture.md): who may import whom, and the house rules
// that a machine can check. arch_planted_test.go shows that each rule fails when it is broken.

// mayImport is the import table. A package may import only what stands behind it: a name ending in /* means the
// packages directly below. What is not listed may import nothing of ours.
var mayImport = map[string]string{
	"cli":            "*",
	"tui":            "agent mcp mcp/approval mcp/definition permission provider session settings tool tui/markdown untrusted",
	"tui/markdown":   "untrusted",
	"acp":            "agent mcp mcp/approval permission provider session settings tool untrusted",
	"agent":          "tool permission hook provider session codemode secret untrusted safefile",
	"mcp":            "mcp/* tool secret untrusted",
	"mcp/approval":   "mcp/definition settings safefile jsondoc",
	"mcp/stdio":      "mcp/jsonrpc secret untrusted",
	"mcp/endpoint":   "untrusted",
	"mcp/streamable": "mcp/endpoint mcp/jsonrpc secret sse untrusted",
	"mcp/oauth":      "mcp/endpoint secret safefile untrusted",
	"mcp/mcptest":    "mcp/jsonrpc",
	"mcp/definition": "mcp/endpoint secret safefile untrusted jsondoc",
	"session":        "provider tool safefile untrusted",
	"hook":           "permission procgroup untrusted",
	"codemode":       "tool untrusted",
	"builtin":        "procgroup tool secret untrusted safefile",
	"provider":       "tool secret sse untrusted",
	"provider/*":     "provider tool secret untrusted",
	"settings":       "safefile untrusted jsondoc",
	"tool":           "secret untrusted",
}

// fences keep a third-party or standard package in the rooms that need it.
var fences = map[string]string{
	"github.com/spf13/cobra":                 "cli",
	"charm.land/":                            "tui",
	"github.com/yuin/goldmark":               "tui/markdown",
	"github.com/alecthomas/chroma":           "tui",
	"modernc.org/quickjs":                    "codemode",
	"github.com/coder/acp-go-sdk":            "acp",
	"github.com/modelcontextprotocol/go-sdk": "",
	"mvdan.cc/sh":                            "builtin",
	"os/exec":                                "mcp/stdio builtin hook procgroup cli tui",
}

// forbidden is never imported by the product, with the reason.
var forbidden = map[string]string{
	"github.com/modelcontextprotocol/go-sdk/mcp": "the official SDK's server is a test peer, never our client",
	"testing": "test helpers have no place in the binary",
	"unsafe":  "nothing here needs it",
	"log":     "errors are returned and printed by cli",
}

type source struct {
	path string // slash-separated, from the module root
	file *ast.File
	fset *token.FileSet
}

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// room is the package's place below internal/, "main" for the root, "" outside both.
func (s source) room() string {
	dir := path.Dir(s.path)
	if dir == "." {
		return "main"
	}
	if r, ok := strings.CutPrefix(dir, "internal/"); ok {
		return r
	}
	return ""
}

func (s source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s: %s", s.fset.Position(n.Pos()), fmt.Sprintf(format, args...))
}

func parse(t *testing.T, name string, src any) source {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{filepath.ToSlash(name), f, fset}
}

func tree(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || p != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if strings.HasSuffix(p, ".go") {
			all = append(all, parse(t, p, nil))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var rules = map[string]func(source) []string{
	"imports":   checkImports,
	"names":     checkNames,
	"variables": checkVariables,
	"calls":     checkCalls,
	"size":      checkSize,
	"docs":      checkDocs,
}

// TestArchitecture holds every rule against every file.
func TestArchitecture(t *testing.T) {
	all := tree(t)
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, s := range all {
				for _, v := range rule(s) {
					t.Error(v)
				}
			}
		})
	}
}

func checkImports(s source) (out []string) {
	room := s.room()
	if room == "" || s.test() {
		return nil
	}
	for _, imp := range s.file.Imports {
		p := strings.Trim(imp.Path.Value, `"`)
		if why, ok := forbidden[p]; ok && room != "mcp/mcptest" {
			out = append(out, s.at(imp, "imports %s: %s", p, why))
		}
		if ours, ok := strings.CutPrefix(p, "magi-code/internal/"); ok {
			if ours == "mcp/mcptest" {
				out = append(out, s.at(imp, "imports the test peers"))
			}
			if room != "main" && !allowed(room, ours) || room == "main" && ours != "cli" {
				out = append(out, s.at(imp, "%s may not import %s", room, ours))
			}
		}
		for prefix, where := range fences {
			if strings.HasPrefix(p, prefix) && !slices.Contains(strings.Fields(where), room) {
				out = append(out, s.at(imp, "%s may not import %s: only %s may", room, p, where))
			}
		}
	}
	return out
}

func allowed(room, ours string) bool {
	list, ok := mayImport[room]
	if !ok {
		list = mayImport[path.Dir(room)+"/*"]
	}
	for _, pattern := range strings.Fields(list) {
		if ok, _ := path.Match(pattern, ours); ok || pattern == "*" {
			return true
		}
	}
	return false
}

func checkNames(s source) (out []string) {
	room := s.room()
	for _, part := range strings.Split(path.Dir(s.path), "/") {
		if slices.Contains([]string{"util", "utils", "common", "helpers", "helper", "types", "base", "shared", "misc"}, part) {
			out = append(out, s.path+": a package is named for what it holds, not "+part)
		}
	}
	if strings.Count(room, "/") > 1 {
		out = append(out, s.path+": packages lie at most two levels below internal")
	}
	return out
}

func checkVariables(s source) (out []string) {
	if s.room() == "" || s.test() {
		return nil
	}
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, n := range v.Names {
				embedded := strings.Contains(comments(s.file, v.Doc, g.Doc), "go:embed")
				if n.Name == "_" || strings.HasPrefix(n.Name, "testOnly") || embedded {
					continue
				}
				if i < len(v.Values) && slices.Contains([]string{"errors.New", "regexp.MustCompile", "sync.OnceValue", "sync.OnceFunc"}, callee(v.Values[i])) {
					continue
				}
				out = append(out, s.at(n, "package variable %s: state lives in values", n.Name))
			}
		}
	}
	return out
}

func comments(_ *ast.File, groups ...*ast.CommentGroup) string {
	var b strings.Builder
	for _, g := range groups {
		if g != nil {
			for _, c := range g.List {
				b.WriteString(c.Text + "\n")
			}
		}
	}
	return b.String()
}

// callee is "pkg.Func" for a call of that form, "pkg.Name" for a selector, "" otherwise.
func callee(e ast.Node) string {
	if c, ok := e.(*ast.CallExpr); ok {
		e = c.Fun
	}
	if ix, ok := e.(*ast.IndexExpr); ok {
		e = ix.X
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// outsideCLI are names that only cli and main may use, and everywhere those that nobody may.
var outsideCLI = []string{"os.Stdout", "os.Stderr", "os.Stdin", "os.Exit", "os.Getenv", "os.LookupEnv", "os.Environ", "context.Background", "context.TODO"}
var nowhere = []string{"http.DefaultClient", "http.DefaultTransport", "http.Get", "http.Post", "time.Sleep", "time.Tick"}

func checkCalls(s source) (out []string) {
	room := s.room()
	if room == "" && !s.test() || room == "mcp/mcptest" {
		return nil
	}
	var bubbles []ast.Node // synctest bubbles, in which sleeping takes no time
	ast.Inspect(s.file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && callee(c) == "synctest.Test" {
			bubbles = append(bubbles, c)
		}
		return true
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !s.test() {
				out = append(out, s.at(n, "bare go statement: start it by WaitGroup.Go in something that waits"))
			}
		case *ast.SelectorExpr:
			name := callee(n)
			if name == "oauth.Login" && room != "cli" && !s.test() {
				out = append(out, s.at(n, "only cli logs in: no run ever opens a browser"))
			}
			if s.test() {
				if name == "time.Sleep" && !slices.ContainsFunc(bubbles, func(b ast.Node) bool { return b.Pos() <= n.Pos() && n.End() <= b.End() }) {
					out = append(out, s.at(n, "a test sleeps: wait for the event, or use testing/synctest"))
				}
			} else if slices.Contains(nowhere, name) || room != "cli" && room != "main" && slices.Contains(outsideCLI, name) {
				out = append(out, s.at(n, "%s is not used in %s", name, room))
			}
		case *ast.CallExpr:
			if !s.test() && callee(n) == "io.ReadAll" && len(n.Args) == 1 && !slices.Contains([]string{"io.LimitReader", "http.MaxBytesReader"}, callee(n.Args[0])) {
				out = append(out, s.at(n, "io.ReadAll without a limit"))
			}
			if !s.test() && strings.HasPrefix(callee(n), "strings.") && len(n.Args) > 0 && isErrorText(n.Args[0]) {
				out = append(out, s.at(n, "errors are compared by errors.Is and errors.As, not by text"))
			}
		case *ast.BinaryExpr:
			if !s.test() && (n.Op == token.EQL || n.Op == token.NEQ) && (isErrorText(n.X) || isErrorText(n.Y)) {
				out = append(out, s.at(n, "errors are compared by errors.Is and errors.As, not by text"))
			}
		}
		return true
	})
	return out
}

func isErrorText(e ast.Expr) bool {
	c, ok := e.(*ast.CallExpr)
	if !ok || len(c.Args) != 0 {
		return false
	}
	sel, ok := c.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Error"
}

// Limits of size; tests may be longer because tables are.
const (
	maxFileLines = 400
	maxFuncLines = 100
	maxTestLines = 900
)

func checkSize(s source) (out []string) {
	lines := s.fset.File(s.file.Pos()).LineCount()
	limit := maxFileLines
	if s.test() {
		limit = maxTestLines
	}
	if lines > limit {
		out = append(out, fmt.Sprintf("%s: %d lines, more than %d: split it by concept", s.path, lines, limit))
	}
	if s.test() {
		return out
	}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > maxFuncLines {
				out = append(out, s.at(f, "%s has %d lines, more than %d", f.Name.Name, n, maxFuncLines))
			}
		}
	}
	return out
}

func checkDocs(s source) (out []string) {
	if s.room() == "" || s.test() {
		return nil
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && receiverExported(d) {
				out = append(out, s.at(d, "exported %s has no comment", d.Name.Name))
			}
		case *ast.GenDecl:
			if d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				ts := spec.(*ast.TypeSpec)
				if ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil && ts.Comment == nil {
					out = append(out, s.at(ts, "exported type %s has no comment", ts.Name.Name))
				}
			}
		}
	}
	return out
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	e := d.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.IsExported()
}

// TestPackageComments: every package of ours says what it is.
func TestPackageComments(t *testing.T) {
	has := map[string]bool{}
	for _, s := range tree(t) {
		if dir := path.Dir(s.path); !s.test() {
			has[dir] = has[dir] || s.file.Doc != nil
		}
	}
	for dir, ok := range has {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// TestDependencies compares the modules that the binary is made of with the checked-in list, which gives each one's reason.
func TestDependencies(t *testing.T) {
	want := map[string]bool{}
	list, err := os.ReadFile("docs/dependencies.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] != "#" {
			want[f[0]] = true
		}
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	got := map[string]bool{}
	for _, m := range strings.Fields(string(out)) {
		got[m] = m != "magi-code"
	}
	for m := range got {
		if got[m] && !want[m] {
			t.Errorf("module %s is not in docs/dependencies.txt: add it with its reason, in a commit of its own", m)
		}
	}
	for m := range want {
		if !got[m] {
			t.Errorf("module %s stands in docs/dependencies.txt and is not used", m)
		}
	}
}
