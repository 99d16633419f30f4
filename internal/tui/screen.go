package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// screen is a view above everything: it gets keys first, and Esc closes it.
type screen interface {
	key(m *model, name string) tea.Cmd
	message(m *model, msg tea.Msg) tea.Cmd
	scroll(m *model, by int)
	view(m *model, w, h int) []string
}

func (m *model) screenKey(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch name {
	case "ctrl+c":
		m.screen = nil
		return nil
	case "ctrl+l":
		return tea.ClearScreen
	case "ctrl+z":
		return m.suspend()
	}
	if k.Text != "" {
		name = k.Text
	}
	return m.screen.key(m, name)
}

func (m *model) closeScreen() { m.screen = nil }

// framed puts a title above and keys below a body of exactly the rows between them.
func framed(m *model, title string, body []string, keys string, w, h int) []string {
	st := m.st
	out := []string{
		"  " + st.bold.Render(fit(title, w-4)),
		st.faint.Render(strings.Repeat("─", w)),
	}
	room := h - 4
	for i := range room {
		if i < len(body) {
			out = append(out, body[i])
		} else {
			out = append(out, "")
		}
	}
	foot := st.dim.Render(keys)
	if m.flash != "" {
		foot = m.flash
	} else if len(m.asks) > 0 {
		foot = st.warn.Render("? a tool waits for your answer") + st.dim.Render(" · esc")
	}
	return append(out, st.faint.Render(strings.Repeat("─", w)), sides("  "+foot, "", w))
}

// pager shows lines that are scrolled.
type pager struct {
	title string
	top   int
	body  func(w int, d *drawing) []string
	rows  int
	page  int
	load  func(m *model, msg tea.Msg) bool
}

func (p *pager) key(m *model, name string) tea.Cmd {
	switch name {
	case "esc", "q", "enter":
		m.closeScreen()
	case "up", "k":
		p.top--
	case "down", "j":
		p.top++
	case "pgup", "b":
		p.top -= p.page
	case "pgdown", " ", "space", "f":
		p.top += p.page
	case "home", "g":
		p.top = 0
	case "end", "G":
		p.top = p.rows
	}
	return nil
}

func (p *pager) message(m *model, msg tea.Msg) tea.Cmd {
	if p.load != nil {
		p.load(m, msg)
	}
	return nil
}

func (p *pager) scroll(_ *model, by int) { p.top += by }

func (p *pager) view(m *model, w, h int) []string {
	body := p.body(w-4, m.d)
	p.rows, p.page = len(body), max(h-6, 1)
	room := h - 4
	p.top = max(0, min(p.top, len(body)-room))
	body = append([]string(nil), body[p.top:min(len(body), p.top+room)]...)
	keys := "esc close"
	if p.rows > room {
		keys = fmt.Sprintf("%d%% · up down pgup pgdown · esc close", 100*min(p.top+room, p.rows)/p.rows)
	}
	return framed(m, p.title, indent(body, "  "), keys, w, h)
}

// picker shows rows of which one is chosen; typing narrows them.
type picker struct {
	title   string
	empty   string
	loading bool
	failed  string
	filter  string
	rows    []pickRow
	at      int
	page    int
	pick    func(m *model, i int) tea.Cmd // i is an index of rows
	load    func(p *picker, m *model, msg tea.Msg)
}

type pickRow struct{ text, about string }

// shown returns the indices of the rows that match the filter.
func (p *picker) shown() []int {
	var out []int
	want := strings.ToLower(p.filter)
	for i, r := range p.rows {
		if want == "" || strings.Contains(strings.ToLower(r.text+" "+r.about), want) {
			out = append(out, i)
		}
	}
	return out
}

func (p *picker) key(m *model, name string) tea.Cmd {
	n := len(p.shown())
	switch name {
	case "esc":
		if p.filter != "" {
			p.filter, p.at = "", 0
			return nil
		}
		m.closeScreen()
	case "up", "ctrl+p":
		p.at--
	case "down", "ctrl+n":
		p.at++
	case "pgup":
		p.at -= p.page
	case "pgdown":
		p.at += p.page
	case "home":
		p.at = 0
	case "end":
		p.at = n - 1
	case "backspace":
		if r := []rune(p.filter); len(r) > 0 {
			p.filter = string(r[:len(r)-1])
		}
	case "enter":
		if s := p.shown(); p.at >= 0 && p.at < len(s) {
			m.closeScreen()
			return p.pick(m, s[p.at])
		}
	default:
		if len([]rune(name)) == 1 {
			p.filter += name
			p.at = 0
		}
	}
	p.at = max(0, min(p.at, len(p.shown())-1))
	return nil
}

func (p *picker) message(m *model, msg tea.Msg) tea.Cmd {
	p.load(p, m, msg)
	return nil
}

func (p *picker) scroll(_ *model, by int) { p.at = max(0, min(p.at+by, len(p.shown())-1)) }

func (p *picker) view(m *model, w, h int) []string {
	st := m.st
	var body []string
	if p.filter != "" {
		body = append(body, "  "+st.dim.Render("filter ")+line(p.filter, w-12), "")
	}
	list := p.shown()
	room := max(h-4-len(body), 1)
	p.page = room
	first := max(0, min(p.at-room/2, len(list)-room))
	for i := first; i < min(len(list), first+room); i++ {
		r := p.rows[list[i]]
		mark, text := "  ", line(r.text, w-8)
		if i == p.at {
			mark, text = st.accent.Render("▸ "), st.selected.Render(text)
		}
		body = append(body, sides("  "+mark+text, st.dim.Render(line(r.about, w/2))+"  ", w))
	}
	switch {
	case p.loading:
		body = append(body, "  "+st.dim.Render("reading"))
	case p.failed != "":
		body = append(body, "  "+st.bad.Render(fit(p.failed, w-4)))
	case len(p.rows) == 0:
		body = append(body, "  "+st.dim.Render(p.empty))
	case len(list) == 0:
		body = append(body, "  "+st.dim.Render("nothing matches"))
	}
	return framed(m, p.title, body, "up down choose · enter take · type to narrow · esc close", w, h)
}
