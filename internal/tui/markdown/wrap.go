package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// span is text under one mark.
type span struct {
	mark Mark
	text string
}

// cell is one grapheme cluster.
type cell struct {
	s    string
	mark Mark
	w    uint8
	kind cellKind
}

type cellKind uint8

const (
	glyph cellKind = iota
	space
	newline
)

const tabWidth = 4 // columns of a tab in code

// flatten turns spans into cells, in a buffer that the next call reuses. Control characters that are left
// (a numeric entity can make one) vanish here: the last gate before the terminal.
func (r *Renderer) flatten(spans []span) []cell {
	out := r.cells[:0]
	for _, sp := range spans {
		s := sp.text
		for len(s) > 0 {
			b := s[0]
			if b < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
				out = appendASCII(out, s[:1], sp.mark)
				s = s[1:]
				continue
			}
			cluster, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
			s = s[len(cluster):]
			if first, _ := utf8.DecodeRuneInString(cluster); unicode.IsControl(first) || first == utf8.RuneError {
				cluster, w = "\ufffd", 1
			}
			out = append(out, cell{cluster, sp.mark, uint8(min(w, 2)), glyph})
		}
	}
	r.cells = out
	return out
}

func appendASCII(out []cell, s string, m Mark) []cell {
	switch b := s[0]; {
	case b == '\n':
		return append(out, cell{"", m, 0, newline})
	case b == '\t':
		for range tabWidth {
			out = append(out, cell{" ", m, 1, space})
		}
		return out
	case b == ' ':
		return append(out, cell{s, m, 1, space})
	case b < ' ' || b == 0x7f:
		return out
	default:
		return append(out, cell{s, m, 1, glyph})
	}
}

// wrap breaks spans at spaces into painted lines; words that are too long are broken anywhere.
func (r *Renderer) wrap(spans []span, width int) []string {
	width = max(width, minWidth)
	cells := r.flatten(spans)
	if len(cells) == 0 {
		return []string{""}
	}
	var out []string
	for start := 0; start < len(cells); {
		end, next := breakAt(cells, start, width)
		out = append(out, r.paintCells(cells[start:end]))
		start = next
	}
	return out
}

// breakAt returns where the line that begins at start ends, and where the next one begins.
func breakAt(cells []cell, start, width int) (end, next int) {
	w, lastSpace := 0, -1
	for i := start; i < len(cells); i++ {
		c := cells[i]
		if c.kind == newline {
			return trimEnd(cells, start, i), i + 1
		}
		if c.kind == space {
			lastSpace = i
		}
		if w+int(c.w) > width && c.kind != space {
			at := i
			switch {
			case lastSpace > start:
				at = lastSpace + 1
			case i == start:
				at = i + 1 // one character wider than the line
			}
			return trimEnd(cells, start, at), at
		}
		if w+int(c.w) > width { // a space at the edge: swallow the run of them
			at := i
			for at < len(cells) && cells[at].kind == space {
				at++
			}
			return trimEnd(cells, start, i), at
		}
		w += int(c.w)
		if c.w == 2 { // wide scripts break after every character
			lastSpace = i
		}
	}
	return len(cells), len(cells)
}

func trimEnd(cells []cell, start, end int) int {
	for end > start && cells[end-1].kind == space {
		end--
	}
	return end
}

// wrapHard breaks at the width alone and keeps spaces: for code.
func (r *Renderer) wrapHard(spans []span, width int) []string {
	width = max(width, minWidth)
	cells := r.flatten(spans)
	var out []string
	start, w := 0, 0
	for i, c := range cells {
		if w+int(c.w) > width && i > start {
			out = append(out, r.paintCells(cells[start:i]))
			start, w = i, 0
		}
		w += int(c.w)
	}
	return append(out, r.paintCells(cells[start:]))
}

// paintCells joins neighbours of one mark and paints them.
func (r *Renderer) paintCells(cells []cell) string {
	var b, run strings.Builder
	for i, c := range cells {
		run.WriteString(c.s)
		if i+1 == len(cells) || cells[i+1].mark != c.mark {
			if c.mark == 0 {
				b.WriteString(run.String())
			} else {
				b.WriteString(r.paint(c.mark, run.String()))
			}
			run.Reset()
		}
	}
	return b.String()
}
