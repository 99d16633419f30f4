package tui

import (
	"math/rand/v2"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

func newEditor(s string) *editor {
	e := &editor{goal: -1}
	e.insert(s)
	return e
}

func TestEditorMovesByCharacter(t *testing.T) {
	e := newEditor("a👨‍👩‍👧e\u0301漢z") // a family of one cluster, an accent of two runes
	steps := 0
	for e.at > 0 {
		e.left()
		steps++
	}
	if steps != 5 {
		t.Errorf("%d steps left", steps)
	}
	e.right()
	e.del()
	if got := e.String(); got != "ae\u0301漢z" {
		t.Errorf("after del: %q", got)
	}
	e.right()
	e.backspace()
	if got := e.String(); got != "a漢z" {
		t.Errorf("after backspace: %q", got)
	}
}

func TestEditorWordsAndKill(t *testing.T) {
	e := newEditor("one two.three\nfour five")
	e.killWordLeft()
	if got := e.String(); got != "one two.three\nfour " {
		t.Errorf("%q", got)
	}
	e.killToStart()
	e.yank()
	if got := e.String(); got != "one two.three\nfour " {
		t.Errorf("yank: %q", got)
	}
	e.home()
	e.killToEnd()
	if got := e.String(); got != "one two.three\n" {
		t.Errorf("kill to end: %q", got)
	}
	for range 4 {
		e.undo()
	}
	if got := e.String(); got != "one two.three\nfour five" {
		t.Errorf("undo: %q", got)
	}
}

func TestEditorChips(t *testing.T) {
	e := newEditor("a ")
	long := strings.Repeat("line\n", 50)
	e.paste(long)
	e.insert(" b")
	if got := e.String(); got != "a "+long+" b" {
		t.Errorf("sent %d bytes", len(got))
	}
	if got := strings.Join(e.draw(60, 0, 9, lipgloss.NewStyle()), "\n"); got != "a [pasted 50 lines, 250 bytes] b" {
		t.Errorf("shown %q", got)
	}
	d := e.take()
	e.insert("typed since")
	e.restore(d)
	if got := e.String(); got != "a "+long+" b\ntyped since" {
		t.Errorf("restored %q", got)
	}
	e.at = 3
	e.backspace() // the chip goes as one
	if got := e.String(); got != "a  b\ntyped since" {
		t.Errorf("after backspace: %q", got)
	}
	short := newEditor("")
	short.paste("x\r\ny")
	if got := short.String(); got != "x\ny" {
		t.Errorf("short paste %q", got)
	}
}

// Whatever is typed: rows hold the whole text in order, fit the width, and the cursor is inside.
func TestEditorLayoutHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"a", "word ", "\n", "漢", "\t", "👍🏽", "e\u0301", "\x1b", "\u202e", " ", "looooooooooong", "\u200d"}
	for range 300 {
		e := &editor{goal: -1}
		for range rnd.IntN(40) {
			switch rnd.IntN(8) {
			case 0:
				e.left()
			case 1:
				e.vertical(1-2*rnd.IntN(2), 20)
			case 2:
				e.paste(strings.Repeat("p\n", 20))
			default:
				e.insert(pieces[rnd.IntN(len(pieces))])
			}
		}
		width := 8 + rnd.IntN(30)
		rows := e.rows(width)
		last := 0
		for i, r := range rows {
			if r.from < last || r.to < r.from {
				t.Fatalf("rows %v", rows)
			}
			if w := e.columns(r.from, r.to); w > width && r.to-r.from > 1 {
				t.Fatalf("row %d has %d columns of %d", i, w, width)
			}
			last = r.to
		}
		if last != len(e.text) {
			t.Fatalf("rows end at %d of %d", last, len(e.text))
		}
		y, x := e.cursor(width)
		if y < 0 || y >= len(rows) || x < 0 {
			t.Fatalf("cursor %d,%d of %d rows", y, x, len(rows))
		}
		for _, l := range e.draw(width, 0, len(rows), lipgloss.NewStyle()) {
			if strings.ContainsAny(ansi.Strip(l), "\x1b\u202e\t\n\x00") {
				t.Fatalf("raw character in %q", l)
			}
		}
	}
}

func TestEditorUpDownKeepsTheColumn(t *testing.T) {
	e := newEditor("long first line\nx\nlong third line")
	e.vertical(-1, 40)
	e.vertical(-1, 40)
	if y, x := e.cursor(40); y != 0 || x != 15 {
		t.Errorf("cursor at %d,%d", y, x)
	}
	if e.vertical(-1, 40) {
		t.Error("moved above the first row")
	}
}

func TestHistoryKeepsTheDraft(t *testing.T) {
	var h history
	h.add(draftOf("one"))
	h.add(draftOf("two"))
	e := newEditor("draft")
	h.prev(e)
	h.prev(e)
	if e.String() != "one" {
		t.Errorf("%q", e.String())
	}
	h.prev(e)
	h.next(e)
	h.next(e)
	if e.String() != "draft" {
		t.Errorf("%q", e.String())
	}
}
