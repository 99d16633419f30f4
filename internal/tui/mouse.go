package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

const wheelRows = 3

// selection is a stretch of the transcript chosen with the mouse. It belongs to the screen as it was: scrolling
// or resizing ends it, streaming below does not move it.
type selection struct {
	on, drag     bool
	fromX, fromY int
	toX, toY     int
}

func (m *model) onMouse(msg tea.MouseMsg) tea.Cmd {
	ev := msg.Mouse()
	switch msg.(type) {
	case tea.MouseWheelMsg:
		m.wheel(ev.Button)
	case tea.MouseClickMsg:
		m.sel = selection{}
		if ev.Button == tea.MouseLeft && m.screen == nil && ev.Y < m.tr.height {
			m.sel = selection{drag: true, fromX: ev.X, fromY: ev.Y, toX: ev.X, toY: ev.Y}
		}
	case tea.MouseMotionMsg:
		if m.sel.drag {
			m.dragTo(ev.X, ev.Y)
		}
	case tea.MouseReleaseMsg:
		if m.sel.drag {
			return m.endDrag()
		}
	}
	return nil
}

func (m *model) wheel(b tea.MouseButton) {
	by := wheelRows
	switch b {
	case tea.MouseWheelUp:
		by = -wheelRows
	case tea.MouseWheelDown:
	default:
		return
	}
	if m.screen != nil {
		m.screen.scroll(m, by)
		return
	}
	if len(m.asks) > 0 && m.asks[0].focus {
		m.asks[0].scroll += by
		return
	}
	m.sel = selection{}
	m.tr.scroll(by)
}

// dragTo grows the selection; what is seen stands still from now on.
func (m *model) dragTo(x, y int) {
	s := &m.sel
	if !s.on {
		m.tr.anchor()
		s.on = true
	}
	s.toX, s.toY = x, max(0, min(y, m.tr.height-1))
}

// endDrag copies what was chosen to the clipboard.
func (m *model) endDrag() tea.Cmd {
	s := &m.sel
	s.drag = false
	if !s.on {
		return nil
	}
	text := s.text(m.tr.view(m.tr.height))
	if strings.TrimSpace(text) == "" {
		m.sel = selection{}
		return nil
	}
	m.say("copied " + plural(strings.Count(text, "\n")+1, "line"))
	return tea.SetClipboard(text)
}

// span returns the chosen columns of a screen line.
func (s *selection) span(y int) (from, to int, ok bool) {
	ax, ay, bx, by := s.fromX, s.fromY, s.toX, s.toY
	if ay > by || (ay == by && ax > bx) {
		ax, ay, bx, by = bx, by, ax, ay
	}
	if y < ay || y > by {
		return 0, 0, false
	}
	from, to = 0, 1<<15
	if y == ay {
		from = ax
	}
	if y == by {
		to = bx + 1
	}
	return from, to, from < to
}

// paint shows the selection on the lines of the transcript.
func (s *selection) paint(lines []string, m *model) []string {
	if !s.on {
		return lines
	}
	for y := range lines {
		from, to, ok := s.span(y)
		w := ansi.StringWidth(lines[y])
		to = min(to, w)
		if !ok || from >= to {
			continue
		}
		plain := ansi.Strip(lines[y])
		lines[y] = ansi.Cut(lines[y], 0, from) + "\x1b[m" + m.st.invert.Render(ansi.Cut(plain, from, to)) + ansi.Cut(lines[y], to, w)
	}
	return lines
}

// text is what is chosen, without styles and without the margin.
func (s *selection) text(lines []string) string {
	var out []string
	for y := range lines {
		from, to, ok := s.span(y)
		if !ok {
			continue
		}
		plain := ansi.Strip(lines[y])
		cut := ansi.Cut(plain, from, min(to, ansi.StringWidth(plain)))
		if from == 0 {
			cut = strings.TrimPrefix(cut, strings.Repeat(" ", margin))
		}
		out = append(out, strings.TrimRight(cut, " "))
	}
	return strings.Join(out, "\n")
}
