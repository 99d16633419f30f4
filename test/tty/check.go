//go:build unix

package tty

import (
	"reflect"
	"regexp"
	"strings"

	"golang.org/x/term"
)

// CheckRestored fails the test unless every mode that the program set is as it was: line discipline, alternate
// screen, cursor, bracketed paste, mouse, keyboard.
func (x *Terminal) CheckRestored() {
	x.t.Helper()
	after, err := term.GetState(int(x.slave.Fd()))
	if err != nil {
		x.t.Fatal(err)
	}
	if !reflect.DeepEqual(x.before, after) {
		x.t.Error("the line discipline is not as it was")
	}
	on := map[string]bool{}
	out := x.Output()
	for _, m := range regexp.MustCompile(`\x1b\[\?([0-9;]+)([hl])`).FindAllStringSubmatch(out, -1) {
		for mode := range strings.SplitSeq(m[1], ";") {
			on[mode] = m[2] == "h"
		}
	}
	for mode, set := range on {
		if want := mode == "25" || mode == "7"; set != want {
			x.t.Errorf("mode %s is left %v", mode, set)
		}
	}
	if push, pop := strings.Count(out, "\x1b[>1u"), strings.Count(out, "\x1b[<1u")+strings.Count(out, "\x1b[<u"); push > pop {
		x.t.Errorf("keyboard modes: pushed %d times, popped %d times", push, pop)
	}
}

// CheckBytes fails the test when the program wrote a control byte that no renderer of its own writes: anything but
// escape sequences of the permitted finals, line breaks, tabs and backspaces. needles are texts of foreign escape
// sequences that must not occur at all.
func (x *Terminal) CheckBytes(needles ...string) {
	x.t.Helper()
	out := x.Output()
	for _, n := range needles {
		if i := strings.Index(out, n); i >= 0 {
			x.t.Errorf("%q got through: %q", n, out[max(0, i-40):min(len(out), i+40)])
		}
	}
	rest := regexp.MustCompile(`\x1b\[[0-9;:?>=<$ ]*[@-~]|\x1b\](0|2|10|11|12|52);[^\x07\x1b]*(\x07|\x1b\\)|\x1b[=>78HMc]|\x1b\([B0]`).ReplaceAllString(out, "")
	for i := range len(rest) {
		if c := rest[i]; c < ' ' && !strings.ContainsRune("\r\n\t\b", rune(c)) || c == 0x7f {
			x.t.Fatalf("control byte %#x in %q", c, rest[max(0, i-40):min(len(rest), i+40)])
		}
	}
}
