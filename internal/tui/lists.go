package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/permission"
	"magi-code/internal/tui/markdown"
	"magi-code/internal/untrusted"
)

// openHelp shows commands and keys.
func (m *model) openHelp() {
	m.screen = &pager{title: "Help", body: helpBody}
}

// helpKeys are the keys by place.
func helpKeys() [][2]string {
	return [][2]string{
		{"", "Writing"},
		{"enter", "send · while servers start or a turn runs: queue"},
		{"alt+enter, shift+enter, ctrl+j, \\ enter", "new line"},
		{"up, down", "move · from the first line: queued prompt, then history"},
		{"@", "complete a file name"},
		{"/", "complete a command"},
		{"!", "run a shell command yourself; the next prompt tells the model"},
		{"ctrl+g", "write in your editor"},
		{"ctrl+a, ctrl+e, home, end", "start, end of the line"},
		{"alt+b, alt+f, ctrl+left, ctrl+right", "word left, right"},
		{"ctrl+w, alt+d, ctrl+u, ctrl+k", "cut word left, word right, to start, to end"},
		{"ctrl+y, ctrl+_", "put back what was cut, undo"},
		{"ctrl+c", "clear · empty: press twice to quit"},
		{"", "Reading"},
		{"pgup, pgdown, wheel", "scroll"},
		{"shift+up, shift+down", "scroll by a line"},
		{"ctrl+home, ctrl+end", "first, last line"},
		{"ctrl+o", "open and fold calls, thoughts and outputs"},
		{"alt+up, alt+down", "choose one call for ctrl+o"},
		{"drag", "select and copy · shift+drag: the terminal's own selection · /mouse"},
		{"ctrl+l, ctrl+z", "draw again, suspend"},
		{"", "A turn"},
		{"esc", "interrupt · recall what is queued · back to the end"},
		{"y s a n", "answer a question: once, this session, always, no"},
		{"tab", "type on before you answer, and back"},
	}
}

func helpBody(w int, d *drawing) []string {
	var out []string
	out = append(out, "", d.st.bold.Render("Commands"))
	for _, c := range commands() {
		out = append(out, "  "+d.st.accent.Render(pad(c.name, 14))+fit(c.about, w-16))
	}
	wide := min(40, w/2)
	for _, k := range helpKeys() {
		if k[0] == "" {
			out = append(out, "", d.st.bold.Render(k[1]))
			continue
		}
		rows := d.md.Plain(0, k[1], w-wide-2)
		for i, r := range rows {
			key := ""
			if i == 0 {
				key = k[0]
			}
			if visibleWidth(key) > wide-1 {
				out = append(out, "  "+d.st.accent.Render(key))
				key = ""
			}
			out = append(out, "  "+d.st.accent.Render(pad(key, wide))+r)
		}
	}
	return out
}

// errText is an error as one safe line.
func errText(err error) string { return untrusted.Line(untrusted.Head(err.Error(), 1<<10)) }

// openSessions lets the user go on with a stored conversation.
func (m *model) openSessions() {
	if m.o.Sessions == nil {
		m.say("sessions are not kept")
		return
	}
	if m.talk.running {
		m.say("interrupt the turn first: esc")
		return
	}
	p := &picker{title: "Sessions of this folder", empty: "none yet", loading: true}
	var ids []string
	p.load = func(p *picker, m *model, msg tea.Msg) {
		s, ok := msg.(sessionsMsg)
		if !ok {
			return
		}
		p.loading = false
		if s.err != nil {
			p.failed = errText(s.err)
			return
		}
		for _, x := range s.list {
			if m.talk.conv != nil && x.ID == m.talk.conv.ID {
				continue // the one that is open
			}
			title := x.Title
			if title == "" {
				title = "(no prompt)"
			}
			ids = append(ids, x.ID)
			p.rows = append(p.rows, pickRow{title, fmt.Sprintf("%s · %s", plural(x.Messages, "message"), ago(m.now().Sub(x.Modified)))})
		}
	}
	p.pick = func(m *model, i int) tea.Cmd {
		m.freshTranscript()
		m.openConversation(ids[i])
		return nil
	}
	m.screen = p
	list, ctx := m.o.Sessions, m.ctx
	m.rt.do(func() tea.Msg {
		l, err := list(ctx)
		return sessionsMsg{l, err}
	})
}

// chooseModel takes a model by name or lets the user pick one.
func (m *model) chooseModel(name string) {
	if name != "" {
		m.setModel(name)
		return
	}
	if m.o.Models == nil {
		m.say("name it: /model provider/model")
		return
	}
	p := &picker{title: "Model", empty: "none: set a key, for example ANTHROPIC_API_KEY", loading: true}
	p.load = func(p *picker, m *model, msg tea.Msg) {
		s, ok := msg.(modelsMsg)
		if !ok {
			return
		}
		p.loading = false
		if s.err != nil {
			p.failed = errText(s.err)
			return
		}
		for i, x := range s.list {
			about := ""
			if x == m.talk.model {
				about, p.at = "now", i
			}
			p.rows = append(p.rows, pickRow{x, about})
		}
	}
	p.pick = func(m *model, i int) tea.Cmd { m.setModel(p.rows[i].text); return nil }
	m.screen = p
	list, ctx := m.o.Models, m.ctx
	m.rt.do(func() tea.Msg {
		l, err := list(ctx)
		return modelsMsg{l, err}
	})
}

// setModel changes the model from the next turn on.
func (m *model) setModel(name string) {
	c := m.talk.conv
	if c == nil || c.SetModel == nil {
		m.say("there is no conversation yet")
		return
	}
	set, ctx := c.SetModel, m.ctx
	m.rt.do(func() tea.Msg { return modelMsg{name, set(ctx, name)} })
}

func (m *model) onModel(msg modelMsg) {
	if msg.err != nil {
		text, hint := m.describe(msg.err)
		m.notice(failure, text, hint)
		return
	}
	m.talk.model = msg.name
	m.tr.touchQuiet(0)
	m.notice(quiet, "model: "+msg.name+", from the next turn on", "")
}

// openPermissions shows the rules.
func (m *model) openPermissions() {
	if m.o.Permissions == nil {
		m.say("no permission rules here")
		return
	}
	state := rulesMsg{}
	loaded := false
	p := &pager{title: "Permissions"}
	p.load = func(_ *model, msg tea.Msg) bool {
		r, ok := msg.(rulesMsg)
		if ok {
			state, loaded = r, true
		}
		return ok
	}
	p.body = func(w int, d *drawing) []string { return rulesBody(state, loaded, w, d) }
	m.screen = p
	list, ctx := m.o.Permissions, m.ctx
	m.rt.do(func() tea.Msg {
		l, err := list(ctx)
		return rulesMsg{l, err}
	})
}

func rulesBody(state rulesMsg, loaded bool, w int, d *drawing) []string {
	st := d.st
	switch {
	case !loaded:
		return []string{"", st.dim.Render("reading")}
	case state.err != nil:
		return []string{"", st.bad.Render(fit(errText(state.err), w))}
	}
	out := []string{""}
	for _, g := range []struct {
		d    permission.Decision
		head string
	}{{permission.Deny, "Never (wins over the others)"}, {permission.Ask, "Ask first"}, {permission.Allow, "Without asking"}} {
		out = append(out, st.bold.Render(g.head))
		n := 0
		for _, r := range state.list {
			if r.Decision == g.d {
				out = append(out, sides("  "+st.code.Render(fit(untrusted.Visible(r.Pattern), w-4)), st.dim.Render(line(r.From, w/2)), w))
				n++
			}
		}
		if n == 0 {
			out = append(out, st.dim.Render("  none"))
		}
		out = append(out, "")
	}
	out = append(out, d.md.Plain(markdown.Dim, "Tools that no rule names are asked for, unless they only read the workspace. Rules live in permissions of settings.json; * stands for any characters.", w)...)
	return out
}

// toolScreen shows what is offered, and changes the two exclusion lists.
type toolScreen struct {
	rows    []ToolRow
	at      int
	page    int
	loading bool
	failed  string
}

func (m *model) openTools() {
	if m.o.Tools == nil {
		m.say("no tools here")
		return
	}
	m.screen = &toolScreen{loading: true}
	m.readTools()
}

func (m *model) readTools() {
	list, ctx := m.o.Tools, m.ctx
	m.rt.do(func() tea.Msg {
		l, err := list(ctx)
		return toolsMsg{l, err}
	})
}

func (t *toolScreen) message(m *model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case toolsMsg:
		t.loading = false
		if msg.err != nil {
			t.failed = errText(msg.err)
			return nil
		}
		t.rows, t.failed = msg.list, ""
		slices.SortStableFunc(t.rows, func(a, b ToolRow) int { return strings.Compare(a.Server+"\x00"+a.Name, b.Server+"\x00"+b.Name) })
		t.at = max(0, min(t.at, len(t.rows)-1))
	case excludedMsg:
		if msg.err != nil {
			m.say(errText(msg.err))
		}
		m.readTools()
	}
	return nil
}

func (t *toolScreen) key(m *model, name string) tea.Cmd {
	switch name {
	case "esc", "q":
		m.closeScreen()
	case "up", "k":
		t.at--
	case "down", "j":
		t.at++
	case "pgup":
		t.at -= t.page
	case "pgdown":
		t.at += t.page
	case "home":
		t.at = 0
	case "end":
		t.at = len(t.rows) - 1
	case "d", "enter":
		t.toggle(m, DirectList)
	case "c":
		t.toggle(m, CodeModeList)
	}
	t.at = max(0, min(t.at, len(t.rows)-1))
	return nil
}

func (t *toolScreen) scroll(_ *model, by int) { t.at = max(0, min(t.at+by, len(t.rows)-1)) }

func (t *toolScreen) toggle(m *model, list ExclusionList) {
	if m.o.Exclude == nil || t.at < 0 || t.at >= len(t.rows) {
		return
	}
	r := t.rows[t.at]
	excluded := r.Direct
	if list == CodeModeList {
		excluded = r.CodeMode
	}
	set, ctx := m.o.Exclude, m.ctx
	m.rt.do(func() tea.Msg { return excludedMsg{set(ctx, r.Name, list, excluded)} })
}

func (t *toolScreen) view(m *model, w, h int) []string {
	st := m.st
	box := func(on bool) string {
		if on {
			return st.ok.Render("●")
		}
		return st.dim.Render("○")
	}
	body := []string{"  " + st.dim.Render("model  scripts  tool")}
	room := max(h-6, 1)
	t.page = room
	first := max(0, min(t.at-room/2, len(t.rows)-room))
	width := 0
	for _, r := range t.rows {
		width = max(width, min(visibleWidth(untrusted.Line(r.Name)), w/2))
	}
	for i := first; i < min(len(t.rows), first+room); i++ {
		r := t.rows[i]
		mark, name := "  ", pad(line(r.Name, width), width)
		if i == t.at {
			mark, name = st.accent.Render("▸ "), st.selected.Render(name)
		}
		about := w - 20 - width - 2
		text := ""
		if about > 12 {
			text = "  " + st.dim.Render(line(r.Description, about))
		}
		body = append(body, mark+"  "+box(r.Direct)+"      "+box(r.CodeMode)+"      "+name+text)
	}
	switch {
	case t.loading:
		body = append(body, "  "+st.dim.Render("reading"))
	case t.failed != "":
		body = append(body, "  "+st.bad.Render(fit(t.failed, w-4)))
	case len(t.rows) == 0:
		body = append(body, "  "+st.dim.Render("none"))
	}
	return framed(m, "Tools · what is offered, from the next turn on", body, "d offer to the model · c offer to scripts · esc close", w, h)
}
