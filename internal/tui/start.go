package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"magi-code/internal/mcp"
	"magi-code/internal/untrusted"
)

// startState is what is known of the servers while they start and after.
type startState struct {
	done    bool
	failed  bool
	began   time.Time
	took    time.Duration
	servers []mcp.Status // sorted by name
	waiting int          // definitions that are not approved
	live    func() []mcp.Status
}

func newStart(names []string, now time.Time) startState {
	s := startState{began: now}
	for _, n := range slices.Sorted(slices.Values(names)) {
		s.servers = append(s.servers, mcp.Status{Name: n, State: mcp.Starting, Since: now})
	}
	return s
}

func (s *startState) pending() bool { return !s.done }

func (s *startState) set(st mcp.Status) {
	i, found := slices.BinarySearchFunc(s.servers, st.Name, func(a mcp.Status, name string) int { return strings.Compare(a.Name, name) })
	if found {
		s.servers[i] = st
		return
	}
	s.servers = slices.Insert(s.servers, i, st)
}

func (s *startState) ready() (ready, tools int) {
	for _, st := range s.servers {
		if st.State == mcp.Ready {
			ready++
			tools += len(st.Tools)
		}
	}
	return ready, tools
}

// get returns a server's status.
func (s *startState) get(name string) (mcp.Status, bool) {
	for _, st := range s.servers {
		if st.Name == name {
			return st, true
		}
	}
	return mcp.Status{}, false
}

// welcomeItem opens the transcript: who we are, where we work, what starts.
type welcomeItem struct{ m *model }

func (wi *welcomeItem) lines(w int, d *drawing) []string {
	m, st := wi.m, d.st
	bar := st.accent.Render("▌")
	title := st.bold.Render("magi-code") + " " + st.dim.Render(line(m.o.Version, w))
	out := []string{"", bar + " " + fit(title, w-2)}
	out = append(out, bar)
	label := func(k, v string) { out = append(out, bar+" "+st.dim.Render(pad(k, 9))+fit(v, w-11)) }
	label("folder", line(short(m.o.Dir, m.o.Home), w-11))
	model := line(m.talk.model, w-11)
	if model == "" {
		model = st.warn.Render("none yet: choose one with /model")
	}
	label("model", model)
	label("servers", m.start.summary(d))
	if !m.start.done && len(m.start.servers) > 0 {
		for _, row := range m.start.rows(w-4, 12, d) {
			out = append(out, bar+"   "+row)
		}
	}
	out = append(out, bar)
	for _, row := range keyHints(w-2, d) {
		out = append(out, bar+" "+row)
	}
	return out
}

// keyHints are the few keys that a newcomer needs.
func keyHints(w int, d *drawing) []string {
	hints := [][2]string{{"enter", "send"}, {"alt+enter", "new line"}, {"/", "commands"}, {"@", "files"}, {"!", "shell"}, {"esc", "interrupt"}, {"ctrl+c", "quit"}}
	var rows []string
	row, width := "", 0
	for _, h := range hints {
		n := len(h[0]) + 1 + len(h[1])
		if width > 0 && width+3+n > w {
			rows, row, width = append(rows, row), "", 0
		}
		if width > 0 {
			row += d.st.faint.Render(" · ")
			width += 3
		}
		row += h[0] + " " + d.st.dim.Render(h[1])
		width += n
	}
	return append(rows, row)
}

// summary is the servers in a few words.
func (s *startState) summary(d *drawing) string {
	n := len(s.servers)
	ready, tools := s.ready()
	switch {
	case n == 0 && !s.done:
		return d.st.dim.Render("looking")
	case n == 0:
		return d.st.dim.Render("none approved" + s.waitingText())
	case !s.done:
		return d.st.accent.Render(spinner(d.tick)) + fmt.Sprintf(" %d of %d ready", ready, n)
	case ready < n:
		return d.st.warn.Render(fmt.Sprintf("%d of %d ready", ready, n)) + d.st.dim.Render(" · see /mcp")
	}
	return d.st.ok.Render("✓ ") + fmt.Sprintf("%d ready", n) + d.st.dim.Render(fmt.Sprintf(" · %s · %s", plural(tools, "tool"), duration(s.took))+s.waitingText())
}

// waitingText points to definitions that nobody has decided on.
func (s *startState) waitingText() string {
	if s.waiting == 0 {
		return ""
	}
	return fmt.Sprintf(" · %d not approved: /mcp", s.waiting)
}

// rows are the servers, one line each, those that are not ready first when there is no room for all.
func (s *startState) rows(w, limit int, d *drawing) []string {
	list := slices.Clone(s.servers)
	if len(list) > limit {
		slices.SortStableFunc(list, func(a, b mcp.Status) int { return urgency(a) - urgency(b) })
	}
	nameWidth := 0
	for _, st := range list {
		nameWidth = max(nameWidth, min(visibleWidth(untrusted.Line(st.Name)), 24))
	}
	var out []string
	for i, st := range list {
		if i == limit-1 && len(list) > limit {
			out = append(out, d.st.dim.Render(fmt.Sprintf("… and %d more", len(list)-i)))
			break
		}
		out = append(out, serverRow(st, nameWidth, w, d))
	}
	return out
}

func urgency(s mcp.Status) int {
	switch s.State {
	case mcp.Failed:
		return 0
	case mcp.Ready:
		return 2
	}
	return 1
}

// serverRow is one server's progress.
func serverRow(s mcp.Status, nameWidth, w int, d *drawing) string {
	name := pad(line(s.Name, nameWidth), nameWidth)
	switch s.State {
	case mcp.Ready:
		return fit(d.st.ok.Render("✓")+" "+name+"  "+d.st.dim.Render(readyText(s)), w)
	case mcp.Failed:
		why := "failed"
		if s.Err != nil {
			why = string(s.Err.Phase) + ": " + untrusted.Line(s.Err.Text)
		}
		return fit(d.st.bad.Render("✗")+" "+name+"  "+d.st.bad.Render(fit(why, w-nameWidth-4)), w)
	case mcp.Closed:
		return fit(d.st.dim.Render("■ "+name+"  closed"), w)
	}
	phase := string(s.Phase)
	if phase == "" {
		phase = "starting"
	}
	text := phase
	if !s.Since.IsZero() {
		if t := time.Duration(d.now() - s.Since.UnixNano()); t >= time.Second {
			text += "  " + elapsed(t)
		}
	}
	return fit(d.st.accent.Render(spinner(d.tick))+" "+name+"  "+d.st.dim.Render(text), w)
}

func readyText(s mcp.Status) string {
	t := plural(len(s.Tools), "tool")
	if n := len(s.Omitted); n > 0 {
		t += fmt.Sprintf(", %d left out", n)
	}
	if s.Stale {
		t += ", stale"
	}
	if s.Took > 0 {
		t += " · " + duration(s.Took)
	}
	return t
}
