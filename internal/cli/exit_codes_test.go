package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// exitCodesDoc lists the exit codes for users.
const exitCodesDoc = "../../docs/exit-codes.md"

// TestExitCodes shows each documented code once, and that no other one is needed for it (R-G10, issue 2). 130 is shown by
// TestInterrupted, 141 by TestReaderGone.
func TestExitCodes(t *testing.T) {
	shown := map[int][]string{
		0:  {"mcp", "list"},
		1:  {"man", "settings.json"}, // a file where a folder is to be made
		2:  {"mcp", "lst"},
		3:  {"mcp", "test", "new"},
		4:  {"mcp", "test", "absent"},
		5:  {"mcp", "test", "dies"},
		6:  {"mcp", "test", "loops"},
		7:  {"mcp", "call", "fails", "echo"},
		8:  {"mcp", "test", "nowhere"},
		9:  {"run", "--no-session", "--provider", "offline", "fail it is down"},
		10: {"run", "--no-session", "--provider", "offline", "--max-turns", "1", `call list_files {}`},
	}
	p := newPlace(t)
	p.define(t, map[string]map[string]any{
		"new":    {},
		"absent": {"command": filepath.Join(p.user, "absent")},
		"dies":   {"args": []string{"exit-early"}},
		"loops":  {"args": []string{"page-loop"}},
		"fails":  {"args": []string{"call-error"}},
	})
	p.approve(t, "absent", "dies", "loops", "fails")
	writeFile(t, filepath.Join(p.project, "settings.json"), "")
	b, err := os.ReadFile(exitCodesDoc)
	if err != nil {
		t.Fatal(err)
	}
	var documented []int
	for _, m := range regexp.MustCompile(`(?m)^\| ([0-9]+) \|`).FindAllStringSubmatch(string(b), -1) {
		code, _ := strconv.Atoi(m[1])
		documented = append(documented, code)
	}
	if want := []int{exitOK, exitFailure, exitUsage, exitNotApproved, exitConnect, exitInitialize, exitList, exitTool, exitConfig, exitProvider, exitIncomplete, exitInterrupted, exitPipe}; !slices.Equal(documented, want) {
		t.Errorf("documented: %v; there are: %v", documented, want)
	}
	for _, code := range documented[:len(documented)-2] {
		args, ok := shown[code]
		if !ok {
			t.Errorf("code %d is not shown", code)
			continue
		}
		if code == exitFailure || code == exitProvider || code == exitIncomplete {
			for _, name := range []string{"absent", "dies", "loops", "fails"} {
				p.run(t, "mcp", "revoke", name)
			}
		}
		if o := p.run(t, args...); o.code != code || (code != 0 && o.err == "") {
			t.Errorf("%v: %v", args, o)
		}
		if code == exitFailure {
			p.approve(t, "absent", "dies", "loops", "fails")
		}
	}
	if left := p.left(); left != nil {
		t.Errorf("left over: %v", left)
	}
}
