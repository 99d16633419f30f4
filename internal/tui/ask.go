package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"magi-code/internal/agent"
	"magi-code/internal/permission"
	"magi-code/internal/tui/markdown"
	"magi-code/internal/untrusted"
)

// askGuard is how long nothing must have been typed, and the question must have been seen, before keys answer it:
// what was meant for the prompt must not allow anything.
const askGuard = 500 * time.Millisecond

// maxAskArgs bounds the arguments shown in a question: what is decided on must be seen, so it is far above what models write.
const maxAskArgs = 1 << 20

// askState is one permission question.
type askState struct {
	askMsg
	at     time.Time
	focus  bool // keys answer it
	scroll int
	rows   []string // the body for a width
	width  int
	theme  *mdRenderer
}

func (m *model) onAsk(q askMsg) {
	if q.gen != m.talk.gen || m.leaving {
		q.reply <- permission.No
		return
	}
	m.asks = append(m.asks, &askState{askMsg: q, at: m.now()})
}

// dropAsks refuses every open question.
func (m *model) dropAsks() {
	for _, a := range m.asks {
		a.reply <- permission.No
	}
	m.asks = nil
}

func (m *model) onAskGone(id int) {
	for i, a := range m.asks {
		if a.id == id {
			m.asks = append(m.asks[:i:i], m.asks[i+1:]...)
			return
		}
	}
}

// askRows is the least that a question takes: its edge, two lines of it, where they stand in the whole, the choices, the other edge.
const askRows = 7

// askRoom is how many rows are there for a question, beside the prompt and the status line; 0 when there are too few.
func (m *model) askRoom() int {
	if room := m.height - m.promptRows() - 1; !m.blind() && room >= askRows {
		return room
	}
	return 0
}

// focusAsk gives the first question the keys once that is safe.
func (m *model) focusAsk(now time.Time) {
	if len(m.asks) > 0 && m.askRoom() == 0 {
		m.asks[0].at, m.asks[0].focus = now, false // it is new on the screen once there is room for it
		return
	}
	if len(m.asks) == 0 || m.asks[0].focus || !m.ed.blank() || m.screen != nil {
		return
	}
	a := m.asks[0]
	if now.Sub(a.at) >= askGuard && now.Sub(m.keyAt) >= askGuard {
		a.focus = true
	}
}

func (m *model) answer(ans permission.Answer) {
	a := m.asks[0]
	m.asks = m.asks[1:]
	a.reply <- ans
	if len(m.asks) > 0 {
		m.asks[0].at = m.now() // it is new on the screen
	}
}

// askKey handles a key while a question has the focus; false leaves it to others.
func (m *model) askKey(k tea.KeyPressMsg) bool {
	a := m.asks[0]
	name := k.String()
	if a.q.Protected && strings.Contains("sSaA", name) {
		m.say("this is asked each time: answer with y or n")
		return true
	}
	switch name {
	case "y", "Y":
		m.answer(permission.Once)
	case "s", "S":
		m.answer(permission.Session)
	case "a", "A":
		m.answer(permission.Always)
	case "n", "N", "esc":
		m.answer(permission.No)
	case "tab":
		a.focus = false
		a.at = m.now().Add(time.Hour) // the user chose to type: only Tab comes back
	case "up":
		a.scroll--
	case "down":
		a.scroll++
	case "pgup":
		a.scroll -= 8
	case "pgdown":
		a.scroll += 8
	case "ctrl+c", "ctrl+z", "ctrl+l", "ctrl+o":
		return false
	default:
		m.say("answer with y, s, a or n · tab to go on typing")
	}
	return true
}

// askView draws the first question in at most height lines.
func (m *model) askView(w, height int) []string {
	a, st := m.asks[0], m.st
	edge := st.warn
	if !a.focus {
		edge = st.dim
	}
	title := st.bold.Render(" May this tool run? ")
	if n := len(m.asks); n > 1 {
		title += st.dim.Render(fmt.Sprintf("1 of %d ", n))
	}
	body := a.body(w-4, m.d)
	room := max(height-4, 1)
	a.scroll = max(0, min(a.scroll, len(body)-room))
	out := []string{boxTop(title, w, edge)}
	end := min(len(body), a.scroll+room)
	for _, r := range body[a.scroll:end] {
		out = append(out, edge.Render("│")+" "+r)
	}
	if len(body) > room {
		out = append(out, edge.Render("│")+" "+st.dim.Render(fmt.Sprintf("lines %d to %d of %d · pgup pgdown", a.scroll+1, end, len(body))))
	}
	return append(out, edge.Render("│")+" "+fit(m.choices(a, w-3), w-3), edge.Render("╰"+strings.Repeat("─", max(w-1, 0))))
}

// choices are the answers, in words as far as a width allows.
func (m *model) choices(a *askState, w int) string {
	st := m.st
	if !a.focus {
		if m.ed.blank() && a.at.Before(m.now()) {
			return st.dim.Render("…")
		}
		return st.dim.Render("tab to answer")
	}
	row := ""
	for _, form := range []struct{ gap, once, session, always, no string }{
		{"   ", " once", " for this session", " always", " no"}, {" ", " once", " session", " always", " no"}, {" ", "", "", "", ""}, // the first that fits
	} {
		key := func(k, text string) string { return st.accent.Render("["+k+"]") + text }
		all := []string{key("y", form.once), key("s", form.session), key("a", form.always), key("n", form.no)}
		if a.q.Protected {
			all = []string{all[0], all[3]}
		}
		row = strings.Join(all, form.gap)
		if visibleWidth(row) <= w {
			break
		}
	}
	return row
}

// boxTop is the upper edge of a box that is open to the right.
func boxTop(title string, w int, edge lipgloss.Style) string {
	title = fit(title, w-4)
	return edge.Render("╭─") + title + edge.Render(strings.Repeat("─", max(w-2-visibleWidth(title), 0)))
}

// body is the question: our words, and everything foreign raw but visible.
func (a *askState) body(w int, d *drawing) []string {
	if a.rows != nil && a.width == w && a.theme == d.md {
		return a.rows
	}
	a.width, a.theme = w, d.md
	st := d.st
	const labels = 11
	field := func(label, value string) []string {
		rows := d.md.Code(0, untrusted.Visible(untrusted.Head(value, 4<<10)), w-labels)
		out := make([]string, len(rows))
		for i, r := range rows {
			out[i] = strings.Repeat(" ", labels) + r
			if i == 0 {
				out[i] = st.dim.Render(pad(label, labels)) + st.bold.Render(r)
			}
		}
		return out
	}
	q := a.q
	var out []string
	if len(q.Path) > 0 {
		out = append(out, field("subagent", strings.Join(q.Path, " / "))...)
	}
	if q.Server != "" {
		out = append(out, field("server", q.Server)...)
		out = append(out, field("tool", q.Remote)...)
	} else {
		out = append(out, field("tool", q.Tool)...)
	}
	out = append(out, a.argumentRows(w, labels, d)...)
	if q.Diff != "" {
		out = append(out, st.dim.Render("change"))
		out = append(out, indent(diffLines(q.Diff, w-2, d), "  ")...)
	}
	if q.Intent != "" {
		rows := d.md.Plain(markdown.Dim, "“"+untrusted.Visible(untrusted.Head(q.Intent, 2<<10))+"”", w-labels)
		out = append(out, hang(rows, st.dim.Render(pad("it says", labels)))...)
	}
	last := "always writes the rule: allow " + untrusted.Visible(untrusted.Head(q.Tool, 256))
	if q.Protected {
		last = "it touches files that decide what magi-code may do, so it is asked each time"
	}
	out = append(out, d.md.Code(markdown.Dim, last, w)...)
	a.rows = out
	return out
}

// argumentRows are the arguments, indented, every hidden character visible.
func (a *askState) argumentRows(w, labels int, d *drawing) []string {
	raw := arguments(agent.CallInfo{Tool: a.q.Tool, Server: a.q.Server, Input: a.q.Input}, maxAskArgs)
	if raw == "" {
		raw = "{}"
	}
	var rows []string
	for l := range strings.SplitSeq(pretty(raw), "\n") {
		rows = append(rows, d.md.CodeLines("json", untrusted.Visible(l), w-labels)...)
	}
	return hang(rows, d.st.dim.Render(pad("arguments", labels)))
}
