package tui

import (
	"strings"

	"magi-code/internal/agent"
	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/untrusted"
)

// onEvent shows one step of the run.
func (m *model) onEvent(e agent.Event) {
	t := &m.talk
	sub := len(e.Path) > 0
	switch e.Kind {
	case agent.EventTurnStart:
		if !sub {
			t.void = len(m.tr.entries)
		}
	case agent.EventText:
		if !sub {
			m.answerDelta(e.Text)
		}
	case agent.EventAnswer:
		if !sub {
			m.answerDone(e.Text)
		}
	case agent.EventThinking:
		if !sub {
			m.thoughtDelta(e.Text)
		}
	case agent.EventRetry:
		m.onRetry(e, sub)
	case agent.EventCall, agent.EventAsk, agent.EventRunning, agent.EventResult:
		m.onCall(e)
	case agent.EventNotice:
		m.endThought()
		m.tr.add(&noticeItem{kind: noticeLevel(e), text: e.Text, hint: e.Hint}, m.gapAfter(true))
	case agent.EventSubagent:
		text := strings.Join(e.Path, "/") + ": " + e.Text
		m.tr.add(&noticeItem{kind: noticeLevel(e), text: text, hint: e.Hint}, m.gapAfter(true))
	case agent.EventUsage:
		t.turnUse = t.turnUse.Add(e.Usage)
	case agent.EventTurnEnd:
		if !sub && e.Usage != (provider.Usage{}) {
			t.turnUse = e.Usage
		}
	}
}

func noticeLevel(e agent.Event) noticeKind {
	if e.IsError {
		return warning
	}
	return quiet
}

// gapAfter is the space before a compact line: none behind another compact one.
func (m *model) gapAfter(compact bool) int {
	n := len(m.tr.entries)
	if n == 0 || !compact {
		return 1
	}
	if _, ok := m.tr.entries[n-1].item.(*noticeItem); ok {
		return 0
	}
	return 1
}

func (m *model) answerDelta(s string) {
	t := &m.talk
	m.endThought()
	if t.answer == nil {
		t.answer = m.tr.add(&answerItem{}, 1)
	}
	t.answer.item.(*answerItem).append(s)
	m.tr.touch(t.answer)
}

func (m *model) answerDone(s string) {
	t := &m.talk
	m.endThought()
	if strings.TrimSpace(s) == "" && t.answer == nil {
		return
	}
	if t.answer == nil {
		t.answer = m.tr.add(&answerItem{}, 1)
	}
	t.answer.item.(*answerItem).replace(s)
	m.tr.touch(t.answer)
	t.answer = nil
	t.void = len(m.tr.entries)
}

func (m *model) thoughtDelta(s string) {
	t := &m.talk
	if t.thought == nil {
		t.thought = m.tr.add(&thoughtItem{expanded: m.expanded}, 1)
	}
	t.thought.item.(*thoughtItem).text += s
	m.tr.touch(t.thought)
}

func (m *model) endThought() {
	if e := m.talk.thought; e != nil {
		e.item.(*thoughtItem).done = true
		m.tr.touch(e)
		m.talk.thought = nil
	}
}

// onRetry takes back what the failed answer streamed.
func (m *model) onRetry(e agent.Event, sub bool) {
	if sub {
		return
	}
	t := &m.talk
	kept := m.tr.entries[:min(t.void, len(m.tr.entries))]
	for _, x := range m.tr.entries[len(kept):] {
		switch x.item.(type) {
		case *answerItem, *thoughtItem:
		default:
			kept = append(kept, x)
		}
	}
	m.tr.entries = kept
	t.answer, t.thought = nil, nil
	m.tr.add(&noticeItem{kind: warning, text: e.Text, hint: e.Hint}, m.gapAfter(true))
	t.void = len(m.tr.entries)
}

// onCall makes or changes the card of a call.
func (m *model) onCall(e agent.Event) {
	if e.Call == nil {
		return
	}
	t := &m.talk
	m.endThought()
	t.answer = nil
	key := strings.Join(e.Path, "\x00") + "\x00" + e.Call.ID
	x := t.cards[key]
	if x == nil {
		c := &cardItem{call: *e.Call, path: e.Path, expanded: m.expanded}
		if up := t.cards[strings.Join(e.Path, "\x00")+"\x00"+e.Call.Under]; up != nil && e.Call.Under != "" {
			c.nested = up.item.(*cardItem).nested + 1
		} else if e.Call.Under != "" || len(e.Path) > 0 {
			c.nested = 1
		}
		gap := 1
		if c.nested > 0 {
			gap = 0
		}
		x = m.tr.add(c, gap)
		t.cards[key] = x
	}
	c := x.item.(*cardItem)
	switch e.Kind {
	case agent.EventAsk:
		c.state = callAsking
	case agent.EventRunning:
		c.state, c.started = callRunning, m.now()
	case agent.EventResult:
		c.state, c.result, c.diff, c.took, c.hint = callDone, e.Text, e.Diff, e.Took, e.Hint
		if e.IsError {
			c.state = callFailed
		}
		delete(t.cards, key)
	}
	m.tr.touch(x)
	t.void = len(m.tr.entries)
}

// onTurn closes the turn.
func (m *model) onTurn(msg turnMsg) {
	t := &m.talk
	if msg.gen != t.gen {
		return
	}
	m.endThought()
	t.answer = nil
	t.running, t.cancel = false, nil
	for _, x := range t.cards { // calls that never got a result
		c := x.item.(*cardItem)
		if c.state < callDone {
			c.state = callStopped
			m.tr.touch(x)
		}
	}
	clear(t.cards)
	m.dropAsks()
	if msg.turn.Usage != (provider.Usage{}) {
		t.turnUse = msg.turn.Usage
	}
	t.usage = t.usage.Add(t.turnUse)
	took := elapsed(m.now().Sub(t.began))
	switch {
	case msg.turn.Stop == agent.StopInterrupted || t.stopping:
		m.tr.add(&noticeItem{kind: quiet, text: "interrupted after " + took + ": say what to do instead"}, 1)
	case msg.err != nil:
		text, hint := m.describe(msg.err)
		m.tr.add(&noticeItem{kind: failure, text: text, hint: hint}, 1)
	case msg.turn.Stop == agent.StopMaxTurns:
		m.tr.add(&noticeItem{kind: warning, text: "stopped: the turn reached its limit of round trips", hint: "say “go on”, or raise max_turns in settings.json"}, 1)
	case msg.turn.Stop == agent.StopMaxTokens:
		m.tr.add(&noticeItem{kind: warning, text: "the answer reached the model's output limit", hint: "say “go on”"}, 1)
	case msg.turn.Stop == agent.StopRefusal:
		m.tr.add(&noticeItem{kind: warning, text: "the model refused to answer this"}, 1)
	}
	t.stopping = false
	if u := usageText(t.turnUse); u != "" {
		m.tr.add(&turnItem{text: took + " · " + u}, 1)
	}
	m.runQueue()
}

// replay shows the history of a resumed conversation.
func (m *model) replay(entries []session.Entry) {
	cards := map[string]*cardItem{}
	messages := 0
	for _, e := range entries {
		switch e.Kind {
		case session.Message:
			messages++
			m.replayMessage(e.Message, cards)
		case session.Result:
			if c := cards[e.CallID]; c != nil {
				c.state, c.result = callDone, e.Text
				if e.IsError {
					c.state = callFailed
				}
			}
		case session.Note:
			if e.Text != "" {
				m.tr.add(&noticeItem{text: e.Text}, m.gapAfter(true))
			}
		case session.Usage:
			if e.Usage != nil {
				m.talk.usage = m.talk.usage.Add(*e.Usage)
			}
		}
	}
	if len(entries) > 0 {
		m.tr.add(&noticeItem{text: "resumed · " + plural(messages, "message")}, 1)
		m.tr.toBottom()
	}
}

func (m *model) replayMessage(msg *provider.Message, cards map[string]*cardItem) {
	if msg == nil {
		return
	}
	for _, b := range msg.Blocks {
		switch {
		case b.Kind == provider.Text && msg.Role == provider.User:
			m.tr.add(&promptItem{text: b.Text}, 1)
			m.hist.add(draftOf(b.Text))
		case b.Kind == provider.Text && strings.TrimSpace(b.Text) != "":
			a := &answerItem{}
			a.replace(b.Text)
			m.tr.add(a, 1)
		case b.Kind == provider.Thinking && b.Text != "":
			m.tr.add(&thoughtItem{text: b.Text, done: true}, 1)
		case b.Kind == provider.ToolCall:
			c := &cardItem{call: callInfo(b), state: callStopped}
			cards[b.CallID] = c
			m.tr.add(c, 1)
		case b.Kind == provider.ToolResult:
			if c := cards[b.CallID]; c != nil && c.state == callStopped {
				c.state = callDone
				if b.IsError {
					c.state = callFailed
				}
				for _, x := range b.Content {
					c.result += untrusted.Head(x.Text, 64<<10)
				}
			}
		}
	}
}

// callInfo rebuilds what is known of a stored call.
func callInfo(b provider.Block) agent.CallInfo {
	c := agent.CallInfo{ID: b.CallID, Tool: b.Name, Input: b.Input}
	if rest, ok := strings.CutPrefix(b.Name, "mcp__"); ok {
		if server, tool, ok := strings.Cut(rest, "__"); ok {
			c.Server, c.Remote = server, tool
		}
	}
	c.Intent = intentOf(b.Input)
	return c
}

func (m *model) statusUsage() string {
	t := &m.talk
	u := t.usage
	if t.running {
		u = u.Add(t.turnUse)
	}
	return usageText(u)
}
