package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/agent"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/tui/markdown"
)

// model is the one bubbletea model. Its parts are plain structs; nothing here does I/O.
type model struct {
	o   Options
	ctx context.Context // ends with the program
	rt  runtime
	now func() time.Time

	width, height int
	sized         bool // the terminal told its size
	bg            background
	st            *styles
	d             *drawing
	mouse         bool

	tr       transcript
	ed       editor
	hist     history
	comp     completion
	start    startState
	talk     talk
	queue    []draft
	asks     []*askState
	screen   screen
	keyAt    time.Time // the last key press
	flash    string
	flashTo  time.Time
	quitTo   time.Time // until then Ctrl-C quits
	ticking  bool
	expanded bool
	focus    *entry // the card that was chosen
	sel      selection
	exit     Exit
	leaving  bool
	shell    []string // what ! commands gave, for the next prompt
}

// talk is the conversation and the turn that runs.
type talk struct {
	gen     int
	conv    *Conversation
	opening bool
	model   string

	running  bool
	stopping bool
	cancel   context.CancelFunc
	began    time.Time
	cards    map[string]*entry
	answer   *entry // the text that streams
	thought  *entry
	void     int // entries from here on are void after a retry
	usage    provider.Usage
	turnUse  provider.Usage
}

const tickEvery = 120 * time.Millisecond

func newModel(ctx context.Context, o Options, rt runtime) *model {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	m := &model{o: o, ctx: ctx, rt: rt, now: now, mouse: true}
	m.ed.goal = -1
	m.st = newStyles(m.bg)
	m.d = &drawing{st: m.st, md: markdown.New(m.st.paint), now: func() int64 { return m.now().UnixNano() }}
	m.tr = transcript{d: m.d, follow: true}
	m.talk.model, m.talk.cards = o.Model, map[string]*entry{}
	m.start = newStart(o.Servers, now())
	m.start.waiting = o.Waiting
	m.tr.add(&welcomeItem{m: m}, 0)
	if o.Prompt != "" {
		m.queue = append(m.queue, draftOf(o.Prompt))
	}
	return m
}

// Init starts what was asked for; the first frame does not wait for any of it.
func (m *model) Init() tea.Cmd {
	m.startServers()
	m.openConversation(m.o.Resume)
	m.loadHistory()
	return tea.Batch(tea.RequestBackgroundColor, m.tick())
}

// tick keeps spinners and clocks moving while there are any.
func (m *model) tick() tea.Cmd {
	if m.ticking || !m.busy() {
		return nil
	}
	m.ticking = true
	return tea.Tick(tickEvery, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// busy reports whether something on the screen moves by itself.
func (m *model) busy() bool {
	return m.start.pending() || m.talk.running || m.talk.opening || len(m.asks) > 0 || m.flash != "" || !m.quitTo.IsZero() || m.runningShell()
}

func (m *model) runningShell() bool {
	n := len(m.tr.entries)
	for i := max(0, n-8); i < n; i++ {
		if s, ok := m.tr.entries[i].item.(*shellItem); ok && s.running {
			return true
		}
	}
	return false
}

func (m *model) onTick() {
	m.ticking = false
	m.d.tick++
	now := m.now()
	if m.flash != "" && now.After(m.flashTo) {
		m.flash = ""
	}
	if !m.quitTo.IsZero() && now.After(m.quitTo) {
		m.quitTo = time.Time{}
	}
	m.focusAsk(now)
	for _, e := range m.talk.cards {
		if c, ok := e.item.(*cardItem); ok && c.state == callRunning {
			e.stale = true
		}
	}
	if m.start.pending() {
		m.tr.touchQuiet(0)
	}
	if m.runningShell() {
		for i := max(0, len(m.tr.entries)-8); i < len(m.tr.entries); i++ {
			m.tr.touchQuiet(i)
		}
	}
}

// say shows a short message in the status line.
func (m *model) say(s string) { m.flash, m.flashTo = s, m.now().Add(4*time.Second) }

// setBackground takes the looks that fit the terminal.
func (m *model) setBackground(b background) {
	if b == m.bg {
		return
	}
	m.bg = b
	m.st = newStyles(b)
	m.d.st, m.d.md = m.st, markdown.New(m.st.paint)
	m.tr.theme++
}

// notice adds a line of ours to the transcript.
func (m *model) notice(kind noticeKind, text, hint string) {
	m.tr.add(&noticeItem{kind: kind, text: text, hint: hint}, 1)
}

// startServers runs Start; progress comes through the relay.
func (m *model) startServers() {
	if m.o.Start == nil {
		m.start.done = true
		return
	}
	ctx, start, rt := m.ctx, m.o.Start, m.rt
	rt.do(func() tea.Msg {
		rt.drawn()
		s, err := start(ctx, rt.relay.setStatus)
		rt.started(s)
		rt.relay.push(startedMsg{s, err}) // behind the statuses that led to it
		return nil
	})
}

// openConversation opens a new conversation or a stored one; the old one is closed behind it.
func (m *model) openConversation(resume string) {
	if m.o.NewConversation == nil {
		return
	}
	old, ctx, open, rt := m.talk.conv, m.ctx, m.o.NewConversation, m.rt
	relay := rt.relay
	gen := m.talk.gen + 1
	m.talk = talk{gen: gen, opening: true, model: m.talk.model, cards: map[string]*entry{}}
	emit := func(e agent.Event) { relay.push(eventMsg{e, gen}) }
	ask := newAsker(relay, gen)
	m.rt.do(func() tea.Msg {
		if old != nil && old.Close != nil {
			bounded, cancel := context.WithTimeout(ctx, joinBound)
			_ = old.Close(bounded)
			cancel()
		}
		c, err := open(ctx, emit, ask, resume)
		if err == nil {
			rt.opened(c)
		}
		relay.push(convMsg{gen, c, err})
		return nil
	})
}

// newAsker returns the Asker of a conversation: it waits for the person or for ctx.
func newAsker(r *relay, gen int) permission.Asker {
	return func(ctx context.Context, q permission.Question) (permission.Answer, error) {
		reply := make(chan permission.Answer, 1)
		id := r.nextID()
		r.push(askMsg{gen, id, q, reply})
		select {
		case a := <-reply:
			return a, nil
		case <-ctx.Done():
			r.push(askGoneMsg{id})
			return permission.No, ctx.Err()
		case <-r.done:
			return permission.No, context.Canceled
		}
	}
}
