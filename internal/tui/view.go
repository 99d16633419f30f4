package tui

import (
	"fmt"
	"runtime/debug"
	"strings"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/mcp"
	"magi-code/internal/untrusted"
)

const (
	minCols  = 20
	minRows  = 6
	promptIn = 4 // columns before the text of the prompt
)

// View draws the whole screen. Terminal modes are part of it.
func (m *model) View() (v tea.View) {
	defer func() {
		if r := recover(); r != nil {
			m.crash(r, debug.Stack())
			v = tea.NewView("")
			v.AltScreen = true
			m.rt.do(func() tea.Msg { return tea.Quit() })
		}
	}()
	if m.leaving && m.exit.Crashed {
		return v
	}
	lines, x, y := m.draw()
	v = tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.WindowTitle = "magi-code · " + line(short(m.o.Dir, m.o.Home), 60)
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if y >= 0 {
		v.Cursor = tea.NewCursor(x, y)
		v.Cursor.Blink = false
		v.Cursor.Shape = tea.CursorBar
	}
	return v
}

// blind reports whether the window is too small to show anything that a key could be about. What is typed before the terminal
// told its size is no such case: the prompt is the first thing that shows.
func (m *model) blind() bool { return m.sized && (m.width < minCols || m.height < minRows) }

// draw returns the lines of the screen, none wider than it, and where the cursor is; y < 0 hides it.
func (m *model) draw() (lines []string, x, y int) {
	lines, x, y = m.compose()
	for i := range lines { // what is fixed or nested deeply can be wider than a narrow window
		lines[i] = fit(lines[i], m.width)
	}
	return lines, x, y
}

// compose puts the parts of the screen together.
func (m *model) compose() (lines []string, x, y int) {
	w, h := m.width, m.height
	if w <= 0 || h <= 0 {
		return nil, 0, -1
	}
	if m.blind() {
		return []string{"magi-code", "widen the window"}[:min(2, h)], 0, -1
	}
	if m.screen != nil {
		return m.screen.view(m, w, h), 0, -1
	}
	bottom, cx, cy := m.bottom(w, h)
	if h >= 16 && len(bottom) < h { // air above the prompt
		bottom, cy = append([]string{""}, bottom...), cy+1
	}
	room := h - len(bottom)
	lines = m.sel.paint(m.tr.view(room), m)
	if !m.tr.follow && room > 2 {
		lines[room-1] = m.belowMark(w)
	}
	return append(lines, bottom...), cx, room + cy
}

// belowMark tells that there is more under what is seen.
func (m *model) belowMark(w int) string {
	text := " ↓ more · esc to the end "
	if m.tr.news {
		text = " ↓ new below · esc to the end "
	}
	return sides("", m.st.accent.Render(text)+"  ", w)
}

// bottom draws everything under the transcript, and says where the cursor is in it.
func (m *model) bottom(w, h int) (lines []string, cx, cy int) {
	prompt, cx, cy := m.promptView(w)
	room, ask := h-len(prompt)-1, 0 // without the status line
	if len(m.asks) > 0 && m.askRoom() > 0 {
		ask = askRows
	}
	var above []string
	if rows := m.queueView(w); len(rows) > 0 && room > len(rows)+ask+2 {
		above = append(above, rows...)
	}
	if ask > 0 {
		above = append(above, m.askView(w, max(min(room-4, room-len(above)), ask))...)
	}
	cy += len(above)
	lines = append(above, prompt...)
	if m.comp.open {
		lines = append(lines, m.completionView(w, room-len(above)-3)...)
	}
	return append(lines, m.status(w)), cx, cy
}

func (m *model) promptWidth() int { return max(m.width-promptIn-2, 8) }

// promptRows is how many rows the prompt takes, its rules among them.
func (m *model) promptRows() int {
	return min(len(m.ed.rows(m.promptWidth())), max(m.height/3, 3)) + 2
}

// promptView draws the prompt between two rules.
func (m *model) promptView(w int) (lines []string, cx, cy int) {
	st, e := m.st, &m.ed
	width := m.promptWidth()
	rows := e.rows(width)
	y, x := e.cursor(width)
	n := m.promptRows() - 2
	first := max(0, min(y-n/2, len(rows)-n))
	rule := st.faint.Render(strings.Repeat("─", w))
	lines = append(lines, rule)
	for i, r := range e.draw(width, first, first+n, st.code) {
		mark := "  "
		if first+i == 0 {
			mark = st.you.Render("❯") + " "
			if m.talk.running {
				mark = st.dim.Render("❯") + " "
			}
		}
		lines = append(lines, "  "+mark+r)
	}
	if e.empty() {
		lines[1] = "  " + st.you.Render("❯") + " " + st.dim.Render(fit(m.placeholder(), width))
	}
	if hidden := len(rows) - n; hidden > 0 {
		rule = st.faint.Render(fit(fmt.Sprintf("── %d of %d lines ", n, len(rows))+strings.Repeat("─", w), w))
	}
	return append(lines, rule), min(promptIn+x, w-1), 1 + y - first
}

func (m *model) placeholder() string {
	switch {
	case len(m.asks) > 0:
		return ""
	case m.talk.running:
		return "Type what comes next: it is sent after this turn"
	case !m.start.done:
		return "Write already: it is sent when all servers are ready"
	}
	return "Ask, or / for commands"
}

// queueView are the prompts that wait, newest last.
func (m *model) queueView(w int) []string {
	var out []string
	for i, d := range m.queue {
		if i == 3 && len(m.queue) > 4 {
			out = append(out, m.st.dim.Render(fmt.Sprintf("    … %d more", len(m.queue)-i)))
			break
		}
		tag := "queued"
		if i == len(m.queue)-1 {
			tag = "queued · up to edit"
		}
		text := strings.Join(strings.Fields(untrusted.Line(untrusted.Head(d.label(), 1<<10))), " ")
		out = append(out, sides("  "+m.st.dim.Render("◷ ")+fit(text, w-visibleWidth(tag)-8), m.st.dim.Render(tag)+"  ", w))
	}
	return out
}

// status is the last line: what goes on at the left, where we are at the right.
func (m *model) status(w int) string {
	st := m.st
	left := m.statusLeft()
	var right []string
	if u := m.statusUsage(); u != "" {
		right = append(right, u)
	}
	if m.talk.model != "" {
		right = append(right, line(m.talk.model, 32))
	}
	if w >= 100 {
		right = append(right, line(short(m.o.Dir, m.o.Home), w/3))
	}
	r := st.dim.Render(strings.Join(right, " · "))
	if visibleWidth(left)+visibleWidth(r)+6 > w && len(right) > 1 {
		r = st.dim.Render(right[len(right)-1])
	}
	return sides("  "+left, r+"  ", w)
}

func (m *model) statusLeft() string {
	st := m.st
	spin := st.accent.Render(spinner(m.d.tick)) + " "
	ready, _ := m.start.ready()
	switch {
	case !m.quitTo.IsZero() && m.talk.running:
		return st.warn.Render("a turn is running: ctrl+c again quits") + st.dim.Render(" · esc interrupts")
	case !m.quitTo.IsZero():
		return st.warn.Render("ctrl+c again quits")
	case m.flash != "":
		return m.flash
	case len(m.asks) > 0 && m.askRoom() == 0:
		return st.warn.Render("? ") + "enlarge the window to answer"
	case len(m.asks) > 0:
		return st.warn.Render("? ") + "a tool waits for your answer"
	case m.talk.stopping:
		return spin + "stopping"
	case m.talk.running:
		return spin + "working " + elapsed(m.now().Sub(m.talk.began)) + st.dim.Render(" · esc interrupts")
	case !m.start.done:
		text := fmt.Sprintf("starting servers, %d of %d ready", ready, len(m.start.servers))
		if len(m.start.servers) == 0 {
			text = "starting"
		}
		return spin + text
	case m.talk.opening:
		return spin + "opening the conversation"
	}
	if trouble := m.serverTrouble(); trouble != "" {
		return st.warn.Render("! ") + trouble + st.dim.Render(" · /mcp")
	}
	return st.ok.Render("●") + st.dim.Render(" ready")
}

// serverTrouble says how many servers were ready and are not any more, or could not list their tools again.
func (m *model) serverTrouble() string {
	gone, stale := 0, 0
	for _, s := range m.start.servers {
		switch {
		case s.State == mcp.Failed:
			gone++
		case s.Stale:
			stale++
		}
	}
	var parts []string
	if gone > 0 {
		parts = append(parts, plural(gone, "server")+" disconnected")
	}
	if stale > 0 {
		parts = append(parts, plural(stale, "tool list")+" out of date")
	}
	return strings.Join(parts, ", ")
}
