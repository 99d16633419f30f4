package main

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// This file holds the two tables of proofs to the tree: docs/requirements.md says which test proves each demand on magi-code,
// docs/hardening.md which test covers each known way to fail. A renamed test, a deleted script or a forgotten line fails here.

// tables are the documents with the lines that each must have, as PREFIX:LAST.
var tables = map[string]string{
	"docs/requirements.md": "R-C:9 R-A:10 R-T:6 R-H:9 R-P:7 R-N:3 R-O:6 R-L:5 R-D:5 R-G:11 R-Q:2",
	"docs/hardening.md":    "B:40 W:8 X:6 S:35",
}

// TestTables: each line stands once and has a proof, or says that one is missing, and each proof exists.
func TestTables(t *testing.T) {
	tests := testNames(tree(t))
	for name, lines := range tables {
		doc, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range checkTable(string(doc), lines, tests) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// testNames are the test, fuzz and benchmark functions of all packages as DIRECTORY.NAME, whatever their build tags; those at the
// root as magi-code.NAME.
func testNames(all []source) map[string]bool {
	names := map[string]bool{}
	for _, s := range all {
		dir := path.Dir(s.path)
		if dir == "." {
			dir = "magi-code"
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && s.test() && testFunction.MatchString(f.Name.Name) && f.Name.Name != "TestMain" {
				names[dir+"."+f.Name.Name] = true
			}
		}
	}
	return names
}

var (
	testFunction = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z0-9]`)
	firstCell    = regexp.MustCompile(`^\| *((?:R-)?[A-Z]+[0-9]+) *\|`)
	quoted       = regexp.MustCompile("`([^`]*)`")
	testRef      = regexp.MustCompile(`^([a-z0-9_/-]+\.(?:Test|Fuzz|Benchmark)[A-Za-z0-9_]*)(?:/.*)?$`)
)

// remarks may stand in the last cell: what is missing, why it cannot happen, or what was decided otherwise.
var remarks = []string{"open: ", "cannot occur: ", "decided: "}

// checkTable compares the rows of a document with the lines that it must have. A row is id, sentence, proofs, remark.
func checkTable(doc, lines string, tests map[string]bool) (problems []string) {
	want := map[string]int{}
	for _, spec := range strings.Fields(lines) {
		prefix, last, _ := strings.Cut(spec, ":")
		n, _ := strconv.Atoi(last)
		for i := range n {
			want[fmt.Sprint(prefix, i+1)] = 1
		}
	}
	for line := range strings.Lines(doc) {
		m := firstCell.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id := m[1]
		if _, ok := want[id]; !ok {
			problems = append(problems, id+" is not a line that this table has")
			continue
		}
		want[id]--
		cells := strings.Split(strings.TrimSpace(line), " |")
		if len(cells) != 5 || cells[4] != "" {
			problems = append(problems, id+": a row has four cells")
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(cells[i], "| ")
		}
		if cells[1] == "" {
			problems = append(problems, id+" says nothing")
		}
		problems = append(problems, checkRow(id, cells[2], cells[3], tests)...)
	}
	for id, n := range want {
		if n > 0 {
			problems = append(problems, id+" is missing")
		} else if n < 0 {
			problems = append(problems, id+" stands more than once")
		}
	}
	return problems
}

// checkRow checks the proofs and the remark of one row.
func checkRow(id, proofs, remark string, tests map[string]bool) (problems []string) {
	known := remark == ""
	for _, r := range remarks {
		known = known || strings.HasPrefix(remark, r) && len(remark) > len(r)
	}
	if !known {
		problems = append(problems, fmt.Sprintf("%s: a remark begins with one of %q", id, remarks))
	}
	refs := quoted.FindAllStringSubmatch(proofs, -1)
	if len(refs) == 0 && remark == "" {
		problems = append(problems, id+" has neither a proof nor a reason")
	}
	if rest := strings.Trim(quoted.ReplaceAllString(proofs, ""), ", "); rest != "" {
		problems = append(problems, fmt.Sprintf("%s: a proof is a name in backquotes, not %q", id, rest))
	}
	for _, ref := range refs {
		if why := missing(ref[1], tests); why != "" {
			problems = append(problems, id+": "+why)
		}
	}
	return problems
}

// missing says what is wrong with a proof; "" for a test, a file or a go command.
func missing(ref string, tests map[string]bool) string {
	if strings.HasPrefix(ref, "go ") {
		return ""
	}
	if m := testRef.FindStringSubmatch(ref); m != nil {
		if !tests[m[1]] {
			return "there is no test " + m[1]
		}
		return ""
	}
	file, _, _ := strings.Cut(ref, " ") // a command may have arguments
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || !strings.Contains(file, "/") {
		return "there is no test or file " + ref
	}
	return ""
}

// TestTablesFail plants one mistake of each kind and sees it found.
func TestTablesFail(t *testing.T) {
	tests := map[string]bool{"internal/x.TestY": true}
	good := "| R-Z1 | one | `internal/x.TestY/sub` |  |\n| R-Z2 | two | `.ci/run`, `go vet ./...` | open: the rest |\n"
	if got := checkTable(good, "R-Z:2", tests); got != nil {
		t.Errorf("a sound table: %q", got)
	}
	for what, c := range map[string]struct{ row, want string }{
		"wrong test":    {"| R-Z3 | x | `internal/x.TestZ` |  |", "R-Z3: there is no test internal/x.TestZ"},
		"wrong package": {"| R-Z3 | x | `internal/y.TestY` |  |", "R-Z3: there is no test internal/y.TestY"},
		"wrong file":    {"| R-Z3 | x | `internal/x/no.txtar` |  |", "R-Z3: there is no test or file internal/x/no.txtar"},
		"no name":       {"| R-Z3 | x | `TestY` |  |", "R-Z3: there is no test or file TestY"},
		"words":         {"| R-Z3 | x | reviewed |  |", `R-Z3 has neither a proof nor a reason; R-Z3: a proof is a name in backquotes, not "reviewed"`},
		"no proof":      {"| R-Z3 | x |  |  |", "R-Z3 has neither a proof nor a reason"},
		"no sentence":   {"| R-Z3 |  | `internal/x.TestY` |  |", "R-Z3 says nothing"},
		"odd remark":    {"| R-Z3 | x | `internal/x.TestY` | fine |", "R-Z3: a remark begins with"},
		"empty remark":  {"| R-Z3 | x |  | open: |", "R-Z3: a remark begins with"},
		"three cells":   {"| R-Z3 | x | `internal/x.TestY` |", "R-Z3: a row has four cells"},
		"twice":         {"| R-Z3 | x | `.ci/run` |  |\n| R-Z3 | x | `.ci/run` |  |", "R-Z3 stands more than once"},
		"absent":        {"", "R-Z3 is missing"},
		"unknown":       {"| R-Z3 | x | `.ci/run` |  |\n| R-Z4 | x | `.ci/run` |  |", "R-Z4 is not a line"},
	} {
		if got := strings.Join(checkTable(good+c.row+"\n", "R-Z:3", tests), "; "); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: found %q", what, got)
		}
	}
}
