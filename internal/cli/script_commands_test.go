package cli

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdExits runs a command that ends with a code: exits CODE COMMAND [ARG...].
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	ts.Logf("[stdout]\n%s[stderr]\n%s", ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}

// eventsDoc describes the events of run --json.
const eventsDoc = "../../docs/json-events.md"

// documented are the names in the first column of a table of a document.
func documented(path, heading string) (names []string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, table, _ := strings.Cut(string(b), "| "+heading+" |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile("(?m)^\\| `?([a-zA-Z0-9_]+)`? \\|").FindAllStringSubmatch(table, -1) {
		names = append(names, m[1])
	}
	return names, nil
}

// cmdEvents checks that stdout is one documented event a line, from turn_start to turn_end, and that the types named come in that
// order, others between them: events TYPE...
func cmdEvents(ts *testscript.TestScript, neg bool, args []string) {
	types, err := documented(eventsDoc, "type")
	ts.Check(err)
	fields, err := documented(eventsDoc, "field")
	ts.Check(err)
	var seen []string
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var e map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			ts.Fatalf("no JSON: %v: %s", err, line)
		}
		var kind, at string
		ts.Check(json.Unmarshal(e["type"], &kind))
		ts.Check(json.Unmarshal(e["time"], &at))
		if !slices.Contains(types, kind) {
			ts.Fatalf("the type %s is not documented", kind)
		}
		for f := range e {
			if !slices.Contains(fields, f) {
				ts.Fatalf("the field %s of %s is not documented", f, kind)
			}
		}
		seen = append(seen, kind)
	}
	if len(seen) == 0 || seen[0] != "turn_start" || seen[len(seen)-1] != "turn_end" {
		ts.Fatalf("the events are %v", seen)
	}
	rest := seen
	for _, want := range args {
		i := slices.Index(rest, want)
		if i < 0 {
			ts.Fatalf("no %s in its place among %v", want, seen)
		}
		rest = rest[i+1:]
	}
}

// cmdClean fails when the last output holds what acts on a terminal or cannot be seen (S27): clean [tabs], where text may be indented.
func cmdClean(ts *testscript.TestScript, neg bool, args []string) {
	for _, f := range []string{"stdout", "stderr"} {
		text := ts.ReadFile(f)
		if slices.Contains(args, "tabs") {
			text = strings.ReplaceAll(text, "\t", "")
		}
		if odd := hidden(text); odd != "" {
			ts.Fatalf("%s holds %+q", f, odd)
		}
	}
}

// cmdFill makes a file of a size by repeating a character: fill FILE BYTES CHARACTER [HEAD [TAIL]].
func cmdFill(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: fill FILE BYTES CHARACTER [HEAD [TAIL]]")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	parts := append(args[3:], "", "")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(parts[0]+strings.Repeat(args[2], n-len(parts[0])-len(parts[1]))+parts[1]), 0o600))
}
