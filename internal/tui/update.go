package tui

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/mcp"
	"magi-code/internal/provider"
	"magi-code/internal/untrusted"
)

// Update takes one message. A panic in it ends the program in order, with a report.
func (m *model) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil {
			m.crash(r, debug.Stack())
			next, cmd = m, tea.Quit
		}
	}()
	cmd = m.update(msg)
	return m, tea.Batch(cmd, m.tick())
}

// crash notes what happened for the report.
func (m *model) crash(r any, stack []byte) {
	m.leaving = true
	if !m.exit.Crashed {
		m.exit.Crashed = true
		m.exit.Report = fmt.Sprintf("panic: %v\n\n%s", r, stack)
	}
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case batchMsg:
		var cmds []tea.Cmd
		for _, one := range msg {
			if cmd := m.update(one); cmd != nil {
				cmds = append(cmds, cmd)
			}
		}
		return tea.Batch(cmds...)
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		if msg.IsDark() {
			m.setBackground(darkBackground)
		} else {
			m.setBackground(lightBackground)
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseMsg:
		return m.onMouse(msg)
	case tickMsg:
		m.onTick()
	default:
		return m.updateTalk(msg)
	}
	return nil
}

// updateTalk takes what the goroutines of Run report.
func (m *model) updateTalk(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case statusMsg:
		m.start.set(mcp.Status(msg))
		m.tr.touchQuiet(0)
	case startedMsg:
		return m.onStarted(msg)
	case convMsg:
		m.onConversation(msg)
	case eventMsg:
		if msg.gen == m.talk.gen {
			m.onEvent(msg.Event)
		}
	case turnMsg:
		m.onTurn(msg)
	case askMsg:
		m.onAsk(msg)
	case askGoneMsg:
		m.onAskGone(msg.id)
	case filesMsg:
		m.onFiles(msg)
	case shellMsg:
		m.onShell(msg)
	case editedMsg:
		m.onEdited(msg)
	case modelMsg:
		m.onModel(msg)
	case historyMsg:
		m.hist.load(msg)
	case changesMsg:
		m.onChanges(msg)
	default:
		if m.screen != nil {
			return m.screen.message(m, msg)
		}
	}
	return nil
}

func (m *model) resize(w, h int) {
	m.sized = true
	if w == m.width && h == m.height {
		return
	}
	m.width, m.height = w, h
	m.tr.width = w
	m.sel = selection{}
}

func (m *model) paste(s string) {
	m.keyAt = m.now()
	if len(m.asks) > 0 {
		m.asks[0].focus = false
	}
	m.ed.paste(s)
	if m.screen != nil {
		m.say("what you pasted is in the prompt")
		return
	}
	m.complete()
}

// enter sends what is written, runs a command, or breaks the line after a backslash.
func (m *model) enter() tea.Cmd {
	e := &m.ed
	if n := e.at; n > 0 && n == len(e.text) && e.text[n-1] == '\\' {
		e.backspace()
		e.insert("\n")
		return nil
	}
	if e.blank() {
		return nil
	}
	if m.focus != nil {
		m.setFocus(nil)
	}
	text := e.String()
	m.comp.open = false
	switch {
	case strings.HasPrefix(text, "/"):
		cmd, ok := m.runCommandText(text)
		if ok {
			return cmd
		}
	case strings.HasPrefix(text, "!") && m.o.Shell != nil:
		d := e.take()
		m.remember(d)
		m.runShell(strings.TrimSpace(text[1:]))
		return nil
	}
	d := e.take()
	m.remember(d)
	m.tr.toBottom()
	m.queue = append(m.queue, d)
	m.runQueue()
	return nil
}

// runCommandText runs a command line and takes it out of the editor when it was one.
func (m *model) runCommandText(text string) (tea.Cmd, bool) {
	d := m.ed.take()
	cmd, ok := m.runCommand(text)
	if !ok {
		m.ed.restore(d)
		return nil, false
	}
	m.hist.add(d)
	return cmd, true
}

// runQueue sends the oldest queued prompt once servers, conversation and model are free.
func (m *model) runQueue() {
	t := &m.talk
	if len(m.queue) == 0 || t.running || !m.start.done || m.start.failed || m.leaving {
		return
	}
	if t.conv == nil {
		if !t.opening {
			m.openConversation("")
		}
		return
	}
	d := m.queue[0]
	m.queue = m.queue[1:]
	text := d.String()
	m.tr.add(&promptItem{text: d.label()}, 1)
	m.send(text)
}

// send runs one turn.
func (m *model) send(text string) {
	t := &m.talk
	ctx, cancel := context.WithCancel(m.ctx)
	t.running, t.stopping, t.cancel, t.began = true, false, cancel, m.now()
	t.turnUse, t.answer, t.thought, t.void = provider.Usage{}, nil, nil, len(m.tr.entries)
	var blocks []provider.Block
	for _, s := range m.shell {
		blocks = append(blocks, provider.Block{Kind: provider.Text, Text: s})
	}
	m.shell = nil
	blocks = append(blocks, provider.Block{Kind: provider.Text, Text: text})
	m.exit.Session = t.conv.ID
	send, gen, relay := t.conv.Send, t.gen, m.rt.relay
	m.rt.do(func() tea.Msg {
		defer cancel()
		turn, err := send(ctx, blocks)
		relay.push(turnMsg{gen, turn, err}) // behind the turn's events
		return nil
	})
}

// onStarted ends the program when a server failed; otherwise the queue may run.
func (m *model) onStarted(msg startedMsg) tea.Cmd {
	s := &m.start
	s.done, s.took = true, m.now().Sub(s.began)
	if msg.servers.Status != nil {
		s.live = msg.servers.Status
		for _, st := range s.live() {
			s.set(st)
		}
	}
	m.tr.touchQuiet(0)
	if msg.servers.Failures != nil {
		m.exit.Failures = msg.servers.Failures()
	}
	if msg.err != nil && !errors.Is(msg.err, context.Canceled) {
		m.exit.Err = msg.err
	}
	if m.exit.Err != nil || len(m.exit.Failures) > 0 {
		s.failed = true
		m.exit.Code = 1
		return m.quit()
	}
	m.announceChanges()
	m.runQueue()
	return nil
}

// announceChanges tells how the tools differ from those of the last approved run (S29).
func (m *model) announceChanges() {
	changes := m.o.Changes
	if changes == nil {
		return
	}
	m.rt.do(func() tea.Msg { return changesMsg(changes()) })
}

func (m *model) onChanges(list []mcp.Change) {
	for _, c := range list {
		m.tr.add(&noticeItem{text: changeText(c)}, m.gapAfter(true))
	}
}

// changeText is a change of a server's tools in one line.
func changeText(c mcp.Change) string {
	var parts []string
	for _, g := range []struct {
		what  string
		names []string
	}{{"added", c.Added}, {"removed", c.Removed}, {"changed", c.Changed}} {
		if n := len(g.names); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s (%s)", plural(n, "tool"), g.what, strings.Join(g.names[:min(n, 8)], ", ")))
		}
	}
	return c.Server + ", since its tools were last used: " + strings.Join(parts, ", ")
}

func (m *model) onConversation(msg convMsg) {
	t := &m.talk
	if msg.gen != t.gen {
		return
	}
	t.opening = false
	if msg.err != nil {
		text, hint := m.describe(msg.err)
		m.tr.add(&noticeItem{kind: failure, text: text, hint: hint}, 1)
		for len(m.queue) > 0 { // nothing typed is lost
			m.recall()
		}
		return
	}
	c := msg.conv
	t.conv = &c
	if c.Model != "" {
		t.model = c.Model
	}
	m.exit.Session = ""
	if len(c.Entries) > 0 {
		m.exit.Session = c.ID // a new one is worth resuming from its first turn on
	}
	m.tr.touchQuiet(0)
	m.replay(c.Entries)
	m.runQueue()
}

// describe puts an error into words for a person: what went wrong, and the cure.
func (m *model) describe(err error) (text, hint string) {
	text = untrusted.Line(untrusted.Head(err.Error(), 2<<10))
	if e, ok := errors.AsType[*provider.Error](err); ok {
		hint = e.Hint
	}
	if e, ok := errors.AsType[*mcp.Error](err); ok && hint == "" {
		hint = e.Hint
	}
	if hint == "" && m.o.Hint != nil {
		hint = m.o.Hint(err)
	}
	return text, untrusted.Line(hint)
}
