package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

const quitWindow = 3 * time.Second // within it a second Ctrl-C quits

// key handles a key press: a screen above everything gets it first, then a question, then the prompt.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	now := m.now()
	before := m.keyAt
	m.keyAt = now
	name := k.String()
	if name != "ctrl+c" {
		m.quitTo = time.Time{}
	}
	if m.blind() && name != "ctrl+c" && name != "ctrl+z" {
		m.blindKey(k, name)
		return nil
	}
	if m.screen != nil {
		return m.screenKey(k)
	}
	if len(m.asks) > 0 && m.askRoom() > 0 { // nobody answers what cannot be seen
		a := m.asks[0]
		if a.focus && m.askKey(k) {
			m.keyAt = before // it was no typing
			return nil
		}
		if !a.focus && name == "tab" && !m.comp.open {
			a.focus, m.keyAt = true, before
			return nil
		}
	}
	if m.comp.open && m.completionKey(name) {
		return nil
	}
	if cmd, ok := m.globalKey(name); ok {
		return cmd
	}
	m.editKey(k, name)
	m.complete()
	return nil
}

// blindKey keeps what is written into the prompt while nothing can be seen. Nobody answers, approves or sends that way.
func (m *model) blindKey(k tea.KeyPressMsg, name string) {
	if m.screen == nil && k.Text != "" {
		m.editKey(k, name)
		m.complete()
	}
}

// globalKey handles what does not edit the prompt.
func (m *model) globalKey(name string) (tea.Cmd, bool) {
	switch name {
	case "enter":
		return m.enter(), true
	case "esc":
		m.escape()
	case "ctrl+c":
		return m.ctrlC(), true
	case "ctrl+d":
		if !m.ed.empty() {
			return nil, false
		}
		return m.ctrlC(), true
	case "ctrl+g":
		return m.edit(""), true
	case "ctrl+o":
		m.toggleCards()
	case "ctrl+l":
		return tea.ClearScreen, true
	case "ctrl+z":
		return m.suspend(), true
	case "pgup", "shift+pgup":
		m.tr.scroll(-m.page())
	case "pgdown", "shift+pgdown":
		m.tr.scroll(m.page())
	case "ctrl+home":
		m.tr.toTop()
	case "ctrl+end":
		m.tr.toBottom()
	case "shift+up":
		m.tr.scroll(-1)
	case "shift+down":
		m.tr.scroll(1)
	case "alt+up":
		m.moveFocus(-1)
	case "alt+down":
		m.moveFocus(1)
	default:
		return nil, false
	}
	return nil, true
}

// suspend gives the shell its terminal back, when there is a shell to wake us again.
func (m *model) suspend() tea.Cmd {
	if !canSuspend() {
		m.say("there is no shell to suspend to")
		return nil
	}
	return tea.Suspend
}

func (m *model) page() int { return max(m.tr.height-2, 1) }

// editKey changes the prompt.
func (m *model) editKey(k tea.KeyPressMsg, name string) {
	e := &m.ed
	switch name {
	case "alt+enter", "shift+enter", "ctrl+j", "ctrl+enter":
		e.insert("\n")
	case "up", "ctrl+p":
		m.up()
	case "down", "ctrl+n":
		if !e.vertical(1, m.promptWidth()) {
			m.hist.next(e)
		}
	case "left", "ctrl+b":
		e.left()
	case "right", "ctrl+f":
		e.right()
	case "ctrl+left", "alt+left", "alt+b":
		e.wordLeft()
	case "ctrl+right", "alt+right", "alt+f":
		e.wordRight()
	case "home", "ctrl+a":
		e.home()
	case "end", "ctrl+e":
		e.end()
	case "backspace", "shift+backspace", "ctrl+h":
		e.backspace()
	case "delete", "ctrl+d":
		e.del()
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.killWordLeft()
	case "alt+d", "ctrl+delete", "alt+delete":
		e.killWordRight()
	case "ctrl+k":
		e.killToEnd()
	case "ctrl+u":
		e.killToStart()
	case "ctrl+y":
		e.yank()
	case "ctrl+_", "ctrl+-", "ctrl+/":
		e.undo()
	default:
		if k.Text != "" {
			e.insert(k.Text)
		}
	}
}

// up moves the cursor, and from the first row recalls: first what is queued, then the history.
func (m *model) up() {
	if m.ed.vertical(-1, m.promptWidth()) {
		return
	}
	if m.ed.blank() && len(m.queue) > 0 {
		m.recall()
		return
	}
	m.hist.prev(&m.ed)
}

// recall takes the newest queued prompt back into the editor.
func (m *model) recall() {
	n := len(m.queue)
	if n == 0 {
		return
	}
	m.ed.restore(m.queue[n-1])
	m.queue = m.queue[:n-1]
	m.say("the queued prompt is back for editing")
}

// escape closes or stops the nearest thing.
func (m *model) escape() {
	switch {
	case m.sel.on:
		m.sel = selection{}
	case m.focus != nil:
		m.setFocus(nil)
	case m.talk.running:
		m.interrupt()
	case len(m.queue) > 0:
		m.recall()
	case !m.tr.follow:
		m.tr.toBottom()
	}
}

// interrupt stops the turn; what was queued behind it comes back for editing, so that nothing runs unasked.
func (m *model) interrupt() {
	if m.talk.stopping || m.talk.cancel == nil {
		return
	}
	m.talk.stopping = true
	m.talk.cancel()
	m.dropAsks()
	for len(m.queue) > 0 {
		m.recall()
	}
}

// ctrlC clears, then asks, then quits.
func (m *model) ctrlC() tea.Cmd {
	if !m.ed.empty() {
		if !m.ed.blank() {
			m.hist.add(m.ed.take()) // Up brings it back
		}
		m.ed.take()
		m.comp.open = false
		m.say("cleared · up brings it back")
		return nil
	}
	if !m.quitTo.IsZero() {
		return m.quit()
	}
	m.quitTo = m.now().Add(quitWindow)
	return nil
}

// quit leaves; Run does the rest once the terminal is restored.
func (m *model) quit() tea.Cmd {
	m.leaving = true
	m.dropAsks()
	return tea.Quit
}

// toggleCards opens or folds the chosen card, or all of them.
func (m *model) toggleCards() {
	if m.focus != nil {
		switch it := m.focus.item.(type) {
		case *cardItem:
			it.expanded = !it.expanded
		case *thoughtItem:
			it.expanded = !it.expanded
		case *shellItem:
			it.expanded = !it.expanded
		}
		m.tr.touchEntry(m.focus)
		return
	}
	m.expanded = !m.expanded
	for _, e := range m.tr.entries {
		switch it := e.item.(type) {
		case *cardItem:
			it.expanded = m.expanded
		case *thoughtItem:
			it.expanded = m.expanded
		case *shellItem:
			it.expanded = m.expanded
		default:
			continue
		}
		e.stale = true
	}
}

// moveFocus chooses the next card up or down.
func (m *model) moveFocus(by int) {
	es := m.tr.entries
	at := len(es)
	for i, e := range es {
		if e == m.focus {
			at = i
		}
	}
	for i := at + by; i >= 0 && i < len(es); i += by {
		if _, ok := es[i].item.(*cardItem); ok {
			m.setFocus(es[i])
			m.tr.reveal(i)
			return
		}
	}
	if by > 0 {
		m.setFocus(nil)
		m.tr.toBottom()
	}
}

func (m *model) setFocus(e *entry) {
	for _, x := range []*entry{m.focus, e} {
		if x == nil {
			continue
		}
		if c, ok := x.item.(*cardItem); ok {
			c.focused = x == e
		}
		m.tr.touchEntry(x)
	}
	m.focus = e
	if e != nil {
		m.say("ctrl+o opens and folds this call · esc leaves")
	}
}
