package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/tui/markdown"
	"magi-code/internal/untrusted"
)

const (
	shellRows  = 12       // lines of output shown folded
	shellModel = 16 << 10 // bytes of an output that the model gets with the next prompt
)

// shellItem is a command that the user ran with !.
type shellItem struct {
	command  string
	output   string
	running  bool
	failed   bool
	expanded bool
	began    time.Time
	took     time.Duration
}

func (s *shellItem) lines(w int, d *drawing) []string {
	mark, right := d.st.ok.Render("✓"), duration(s.took)
	switch {
	case s.running:
		mark, right = d.st.accent.Render(spinner(d.tick)), elapsed(time.Duration(d.now()-s.began.UnixNano()))
	case s.failed:
		mark = d.st.bad.Render("✗")
	}
	out := []string{sides(mark+" "+d.st.code.Render("! "+line(s.command, w-4)), d.st.dim.Render(right), w)}
	if strings.TrimSpace(s.output) == "" {
		return out
	}
	rows := d.md.Plain(markdown.Dim, strings.TrimRight(untrusted.Text(s.output), "\n"), w-2)
	limit := shellRows
	if s.expanded {
		limit = expandedRows
	}
	if more := len(rows) - limit; more > 0 {
		rows = append([]string{d.st.dim.Render("… " + plural(more, "line") + " before")}, rows[more:]...)
	}
	return append(out, indent(rows, "  ")...)
}

// runShell runs a command of the user's; it is no tool call and asks nobody.
func (m *model) runShell(command string) {
	if command == "" {
		return
	}
	it := &shellItem{command: command, running: true, began: m.now(), expanded: m.expanded}
	card := m.tr.add(it, 1)
	m.tr.toBottom()
	ctx, shell, now := m.ctx, m.o.Shell, m.now
	m.rt.do(func() tea.Msg {
		began := now()
		out, failed, err := shell(ctx, command)
		return shellMsg{card: card, output: out, failed: failed, err: err, took: now().Sub(began)}
	})
}

func (m *model) onShell(msg shellMsg) {
	it := msg.card.item.(*shellItem)
	it.running, it.output, it.failed, it.took = false, msg.output, msg.failed, msg.took
	if msg.err != nil {
		it.failed = true
		it.output = strings.TrimSpace(it.output + "\n" + untrusted.Line(msg.err.Error()))
	}
	m.tr.touch(msg.card)
	out, _ := untrusted.Cut(it.output, shellModel)
	m.shell = append(m.shell, "I ran this command myself:\n$ "+it.command+"\n"+out)
}
