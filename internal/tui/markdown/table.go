package markdown

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	east "github.com/yuin/goldmark/extension/ast"
)

const (
	maxColumns = 24 // more do not fit on any screen
	columnGap  = 3  // " │ "
	minColumn  = 5  // narrower columns read worse than a list of fields
)

// table lays a table out in columns that share the width; when they would get too narrow, each row becomes
// a list of "head: value".
func (r *Renderer) table(n *east.Table, width, depth int) []string {
	rows := r.tableCells(n, depth)
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil
	}
	widths := columnWidths(rows, width)
	if widths == nil {
		return r.tableAsList(rows, width)
	}
	var out []string
	for i, row := range rows {
		out = append(out, r.tableRow(row, widths, n.Alignments)...)
		if i == 0 {
			out = append(out, r.tableRule(widths))
		}
	}
	return out
}

func (r *Renderer) tableCells(n *east.Table, depth int) [][][]span {
	var rows [][][]span
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var mark Mark
		if _, head := row.(*east.TableHeader); head {
			mark = Bold
		}
		var cells [][]span
		for c := row.FirstChild(); c != nil && len(cells) < maxColumns; c = c.NextSibling() {
			cells = append(cells, r.inline(c, mark, depth))
		}
		rows = append(rows, cells)
	}
	return rows
}

func spansWidth(spans []span) int {
	w := 0
	for _, s := range spans {
		w += ansi.StringWidth(s.text)
	}
	return w
}

// columnWidths shares the width: columns that fit keep what they need, the others get equal parts of the
// rest. nil means that a column would get too narrow.
func columnWidths(rows [][][]span, width int) []int {
	need := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range min(len(row), len(need)) {
			need[i] = max(need[i], min(spansWidth(row[i]), 1<<12), 1)
		}
	}
	left := width - columnGap*(len(need)-1)
	open := len(need)
	out := make([]int, len(need))
	for open > 0 {
		if left < open {
			return nil
		}
		share, settled := left/open, false
		for i, n := range need {
			if out[i] == 0 && n <= share {
				out[i], left, open, settled = n, left-n, open-1, true
			}
		}
		if !settled {
			if share < minColumn {
				return nil
			}
			for i := range out {
				if out[i] == 0 {
					out[i] = share
				}
			}
			break
		}
	}
	return out
}

func (r *Renderer) tableRow(row [][]span, widths []int, align []east.Alignment) []string {
	cols := make([][]string, len(widths))
	height := 1
	for i := range widths {
		if i < len(row) {
			cols[i] = r.wrapColumn(row[i], widths[i])
			height = max(height, len(cols[i]))
		}
	}
	gap := " " + r.paint(Dim, "│") + " "
	out := make([]string, height)
	for y := range height {
		var b strings.Builder
		for i, w := range widths {
			if i > 0 {
				b.WriteString(gap)
			}
			s := ""
			if y < len(cols[i]) {
				s = cols[i][y]
			}
			pad := max(w-ansi.StringWidth(s), 0)
			left := 0
			if i < len(align) && align[i] == east.AlignRight {
				left = pad
			} else if i < len(align) && align[i] == east.AlignCenter {
				left = pad / 2
			}
			b.WriteString(strings.Repeat(" ", left) + s)
			if i < len(widths)-1 {
				b.WriteString(strings.Repeat(" ", pad-left))
			}
		}
		out[y] = b.String()
	}
	return out
}

// wrapColumn is wrap without the least width of text.
func (r *Renderer) wrapColumn(s []span, width int) []string {
	if width >= minWidth {
		return r.wrap(s, width)
	}
	return r.wrap(s, minWidth)
}

func (r *Renderer) tableRule(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return r.paint(Dim, strings.Join(parts, "─┼─"))
}

func (r *Renderer) tableAsList(rows [][][]span, width int) []string {
	var out []string
	for i, row := range rows[1:] {
		if i > 0 {
			out = append(out, "")
		}
		for j, c := range row {
			var line []span
			if j < len(rows[0]) {
				line = append(line, rows[0][j]...)
				line = append(line, span{Bold, ": "})
			}
			out = append(out, r.wrap(append(line, c...), width)...)
		}
	}
	return out
}
