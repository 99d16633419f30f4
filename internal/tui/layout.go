package tui

import (
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// layout is the editor's text broken into rows of a width.
type layout struct {
	version, width int
	rows           []row
}

// row is one screen row: positions [from, to) of the text.
type row struct{ from, to int }

const editorTab = 4 // columns of a tab in the prompt

// glyph returns how a cluster of the text looks, and its width. Nothing that a terminal acts on gets out:
// control and formatting characters stand as a visible mark.
func (e *editor) glyph(p, n int) (string, int) {
	r := e.text[p]
	switch {
	case r >= chipBase:
		s := e.chipLabel(r)
		return s, ansi.StringWidth(s)
	case r == '\t':
		return strings.Repeat(" ", editorTab), editorTab
	case n == 1 && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)):
		return "�", 1
	}
	s := string(e.text[p : p+n])
	if n > 1 {
		s = stripFormat(s)
	}
	return s, max(ansi.StringWidth(s), 0)
}

// stripFormat removes bidi and control characters inside a cluster; joiners of emoji stay.
func stripFormat(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || (unicode.Is(unicode.Cf, r) && r != 0x200d) {
			return -1
		}
		return r
	}, s)
}

// rows breaks the text at word borders where it can.
func (e *editor) rows(width int) []row {
	width = max(width, 4)
	if e.layout.width == width && e.layout.version == e.version && e.layout.rows != nil {
		return e.layout.rows
	}
	var rows []row
	start, col, brk := 0, 0, -1
	for p := 0; p < len(e.text); {
		if e.text[p] == '\n' {
			rows = append(rows, row{start, p})
			p++
			start, col, brk = p, 0, -1
			continue
		}
		n := e.clusterLen(p, len(e.text))
		_, w := e.glyph(p, n)
		for col+w > width && p > start {
			at := p
			if brk > start {
				at = brk
			}
			rows = append(rows, row{start, at})
			start, brk = at, -1
			col = e.columns(start, p)
		}
		col += w
		p += n
		if e.text[p-1] == ' ' {
			brk = p
		}
	}
	rows = append(rows, row{start, len(e.text)})
	e.layout = layout{version: e.version, width: width, rows: rows}
	return rows
}

// columns is the width of text[from:to].
func (e *editor) columns(from, to int) int {
	w := 0
	for p := from; p < to; {
		n := e.clusterLen(p, to)
		_, g := e.glyph(p, n)
		w += g
		p += n
	}
	return w
}

// cursor returns the row and column of the cursor.
func (e *editor) cursor(width int) (y, x int) {
	rows := e.rows(width)
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].from <= e.at {
			y = i
			break
		}
	}
	return y, e.columns(rows[y].from, e.at)
}

// vertical moves the cursor up or down by rows; false when there is no such row.
func (e *editor) vertical(dy, width int) bool {
	rows := e.rows(width)
	y, x := e.cursor(width)
	if y+dy < 0 || y+dy >= len(rows) {
		return false
	}
	if e.goal < 0 {
		e.goal = x
	}
	to := rows[y+dy]
	p, col := to.from, 0
	for p < to.to {
		n := e.clusterLen(p, to.to)
		_, w := e.glyph(p, n)
		if col+w > e.goal {
			break
		}
		col += w
		p += n
	}
	if p == to.to && y+dy+1 < len(rows) && rows[y+dy+1].from == to.to && p > to.from {
		p-- // a soft-wrapped row ends before its last character
	}
	e.at, e.typed = p, false
	return true
}

// draw returns rows [from, to) as styled lines.
func (e *editor) draw(width, from, to int, chip lipgloss.Style) []string {
	rows := e.rows(width)
	var out []string
	for _, r := range rows[from:min(to, len(rows))] {
		var b strings.Builder
		for p := r.from; p < r.to; {
			n := e.clusterLen(p, r.to)
			s, _ := e.glyph(p, n)
			if e.text[p] >= chipBase {
				s = chip.Render(s)
			}
			b.WriteString(s)
			p += n
		}
		out = append(out, b.String())
	}
	return out
}
