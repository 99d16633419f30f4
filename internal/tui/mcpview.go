package tui

import (
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/untrusted"
)

// serverScreen is /mcp: every definition with its approval and its live state.
type serverScreen struct {
	entries  []approval.Entry
	views    map[string]reviewMsg // reviewed definitions, by key
	oauth    map[string]string
	changes  []mcp.Change
	warnings []string
	failed   string
	loading  bool
	busy     bool // an approval or revocation is being saved
	note     string
	bad      bool
	at       int
	top      int // first line of the details that is seen
	rows     int
	page     int
	end      int // the line of the details behind the definition
	seen     int // the line up to which all of them were on the screen
	seenAt   int // the width at which they were
}

func (m *model) openServers() {
	if m.o.Entries == nil {
		m.say("no servers here")
		return
	}
	m.screen = &serverScreen{loading: true, views: map[string]reviewMsg{}}
	m.readServers(nil, "")
}

// readServers reads everything again, after an action when there is one; text is what to say when it went well.
func (m *model) readServers(action func() error, text string) {
	o, ctx, live := m.o, m.ctx, m.start.live
	m.rt.do(func() tea.Msg {
		var out entriesMsg
		if live != nil {
			out.live = live()
		}
		if action != nil {
			if err := action(); err != nil {
				out.note, out.bad = errText(err), true
				if _, stale := errors.AsType[*approval.StaleError](err); stale {
					out.note = "not approved: the definition changed after it was shown. Here is the new one."
				}
			} else {
				out.note = text
			}
		}
		out.list, out.warnings, out.err = o.Entries(ctx)
		out.oauth = map[string]string{}
		if o.OAuth != nil {
			for _, e := range out.list {
				if e.Server.OAuth != nil {
					out.oauth[entryKey(e)] = o.OAuth(ctx, e.Server)
				}
			}
		}
		if o.Changes != nil {
			out.changes = o.Changes()
		}
		return out
	})
}

func entryKey(e approval.Entry) string { return e.Server.Source + "\x00" + e.Server.Name }

func (s *serverScreen) message(m *model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case entriesMsg:
		s.loading, s.busy = false, false
		for _, st := range msg.live {
			m.start.set(st)
		}
		chosen := ""
		if s.at < len(s.entries) {
			chosen = entryKey(s.entries[s.at])
		}
		s.entries, s.warnings, s.oauth, s.changes = msg.list, msg.warnings, msg.oauth, msg.changes
		s.failed = ""
		if msg.err != nil {
			s.failed = untrusted.Text(msg.err.Error())
		}
		if msg.note != "" {
			s.note, s.bad = msg.note, msg.bad
		}
		for i, e := range s.entries {
			if entryKey(e) == chosen {
				s.at = i
			}
		}
		s.at = max(0, min(s.at, len(s.entries)-1))
		s.views, s.seen = map[string]reviewMsg{}, 0
		s.review(m)
	case reviewMsg:
		s.views[msg.key] = msg
	}
	return nil
}

// review asks for the fingerprint of the chosen definition.
func (s *serverScreen) review(m *model) {
	if s.at >= len(s.entries) || m.o.Review == nil {
		return
	}
	e := s.entries[s.at]
	key := entryKey(e)
	if _, ok := s.views[key]; ok {
		return
	}
	review, ctx := m.o.Review, m.ctx
	m.rt.do(func() tea.Msg {
		v, err := review(ctx, e.Server)
		return reviewMsg{key, v, err}
	})
}

func (s *serverScreen) key(m *model, name string) tea.Cmd {
	switch name {
	case "esc", "q":
		m.closeScreen()
	case "up", "k":
		s.choose(m, s.at-1)
	case "down", "j":
		s.choose(m, s.at+1)
	case "pgup":
		s.top -= s.page
	case "pgdown", " ", "space":
		s.top += s.page
	case "home":
		s.top = 0
	case "end":
		s.top = s.rows
	case "r":
		s.note = ""
		m.readServers(nil, "")
	case "enter":
		s.decide(m)
	}
	return nil
}

func (s *serverScreen) choose(m *model, i int) {
	if i = max(0, min(i, len(s.entries)-1)); i != s.at {
		s.at, s.top, s.seen, s.note = i, 0, 0, ""
		s.review(m)
	}
}

func (s *serverScreen) scroll(_ *model, by int) { s.top += by }

// decide approves or revokes the chosen server: exactly what is shown, or nothing.
func (s *serverScreen) decide(m *model) {
	if s.busy || s.at >= len(s.entries) {
		return
	}
	e := s.entries[s.at]
	ctx := m.ctx
	if e.State == approval.IsApproved {
		revoke := m.o.Revoke
		if revoke == nil {
			return
		}
		s.busy, s.note = true, ""
		m.readServers(func() error { return revoke(ctx, e.Server.Source, e.Server.Name) },
			"revoked: it does not start at the next launch")
		return
	}
	v, ok := s.views[entryKey(e)]
	switch {
	case s.unread():
		s.top = s.seen // nobody approves what was not on the screen
	case !ok:
		s.note, s.bad = "still reading the definition", true
	case v.err != nil:
		s.note, s.bad = errText(v.err), true
	case m.o.Approve != nil:
		approve := m.o.Approve
		s.busy, s.note = true, ""
		m.readServers(func() error { return approve(ctx, v.view) }, "approved: it starts at the next launch")
	}
}

func (s *serverScreen) view(m *model, w, h int) []string {
	title := "MCP servers"
	room := h - 4
	if s.seenAt != w {
		s.seen, s.seenAt = 0, w
	}
	var body []string
	if w >= 110 {
		body = s.wide(m, w, room)
	} else {
		body = s.narrow(m, w, room)
	}
	keys := "up down choose · pgup pgdown scroll · " + s.enterText() + " · esc close"
	return framed(m, title+"  "+m.st.dim.Render("changes apply at the next launch"), body, keys, w, h)
}

func (s *serverScreen) enterText() string {
	switch {
	case s.at < len(s.entries) && s.entries[s.at].State == approval.IsApproved:
		return "enter revoke"
	case s.unread() && s.at < len(s.entries):
		return "enter read on"
	}
	return "enter approve"
}

// unread reports whether a part of the definition was not on the screen yet.
func (s *serverScreen) unread() bool { return s.seen == 0 || s.seen < s.end }

// narrow puts the list above the details.
func (s *serverScreen) narrow(m *model, w, room int) []string {
	n := min(max(len(s.entries), 1), max(room/3, 3))
	out := s.list(m, w, n)
	out = append(out, m.st.faint.Render(strings.Repeat("─", w)))
	return append(out, s.window(s.details(m, w-4), room-len(out), "  ")...)
}

// wide puts the list left of the details.
func (s *serverScreen) wide(m *model, w, room int) []string {
	const left = 46
	list := s.list(m, left, room)
	det := s.window(s.details(m, w-left-5), room, "")
	out := make([]string, room)
	for i := range room {
		l, r := "", ""
		if i < len(list) {
			l = list[i]
		}
		if i < len(det) {
			r = det[i]
		}
		out[i] = pad(l, left) + m.st.faint.Render(" │ ") + r
	}
	return out
}

// window cuts the details to what is seen.
func (s *serverScreen) window(rows []string, room int, in string) []string {
	shown := room // none when the window is too low
	room = max(room, 1)
	s.rows, s.page = len(rows), max(room-1, 1)
	s.top = max(0, min(s.top, len(rows)-room))
	if shown > 0 && s.top <= s.seen {
		s.seen = max(s.seen, s.top+shown)
	}
	return indent(append([]string(nil), rows[s.top:min(len(rows), s.top+room)]...), in)
}

func (s *serverScreen) list(m *model, w, n int) []string {
	st := m.st
	switch {
	case s.loading:
		return []string{"  " + st.dim.Render("reading")}
	case len(s.entries) == 0:
		return []string{"  " + st.dim.Render("none defined: see .mcp.json, or magi-code mcp add")}
	}
	first := max(0, min(s.at-n/2, len(s.entries)-n))
	var out []string
	for i := first; i < min(len(s.entries), first+n); i++ {
		e := s.entries[i]
		mark, name := "  ", line(e.Server.Name, w/2)
		if i == s.at {
			mark, name = st.accent.Render("▸ "), st.selected.Render(name)
		}
		out = append(out, sides(mark+s.dot(m, e)+" "+name, s.stateText(m, e)+" ", w))
	}
	return out
}

// dot is the live state in one sign.
func (s *serverScreen) dot(m *model, e approval.Entry) string {
	st := m.st
	live, ok := m.start.get(e.Server.Name)
	switch {
	case !ok:
		return st.dim.Render("○")
	case live.State == mcp.Ready && !live.Stale:
		return st.ok.Render("●")
	case live.State == mcp.Failed:
		return st.bad.Render("●")
	case live.State == mcp.Starting:
		return st.accent.Render(spinner(m.d.tick))
	}
	return st.warn.Render("●")
}

func (s *serverScreen) stateText(m *model, e approval.Entry) string {
	switch e.State {
	case approval.IsApproved:
		return m.st.ok.Render(e.State.String())
	case approval.NeverApproved, approval.Revoked:
		return m.st.dim.Render(e.State.String())
	}
	return m.st.warn.Render(e.State.String())
}
