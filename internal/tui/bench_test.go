package tui

import (
	"context"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/agent"
)

// quietRuntime starts nothing.
func quietRuntime() runtime {
	return runtime{relay: newRelay(), do: func(func() tea.Msg) {}, drawn: func() {}, started: func(Servers) {}, opened: func(Conversation) {}}
}

// longModel has a transcript of n events: prompts, thoughts, answers, calls with results.
func longModel(n int) *model {
	m := newModel(context.Background(), Options{Version: "0.1.0", Dir: "/x"}, quietRuntime())
	m.start.done = true
	m.resize(140, 40)
	for i := 0; i < n; i += 5 {
		m.tr.add(&promptItem{text: fmt.Sprintf("question %d", i)}, 1)
		m.onEvent(agent.Event{Kind: agent.EventThinking, Text: "thinking about it"})
		m.onEvent(agent.Event{Kind: agent.EventAnswer, Text: answerText})
		call := &agent.CallInfo{ID: fmt.Sprint(i), Tool: "bash", Intent: "look", Input: jsontext.Value(`{"intent":"look","command":"ls"}`)}
		m.onEvent(agent.Event{Kind: agent.EventCall, Call: call})
		m.onEvent(agent.Event{Kind: agent.EventResult, Call: call, Text: "a\nb\nc\nd\ne\n", Took: time.Second})
	}
	return m
}

// The time from nothing to the text of the first frame, ten servers configured.
func BenchmarkFirstFrame(b *testing.B) {
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("server-%d", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		m := newModel(context.Background(), Options{Version: "0.1.0", Dir: "/x", Servers: names}, quietRuntime())
		m.resize(80, 24)
		m.View()
	}
}

// One key press to the next frame's text, behind 10,000 events.
func BenchmarkKeyBehind10000Events(b *testing.B) {
	m := longModel(10_000)
	m.View()
	k := tea.KeyPressMsg{Code: 'x', Text: "x"}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%200 == 0 {
			m.ed.take()
		}
		m.Update(k)
		m.View()
	}
}

// A page up to the next frame's text, through 10,000 events.
func BenchmarkScrollThrough10000Events(b *testing.B) {
	m := longModel(10_000)
	m.View()
	b.ReportAllocs()
	for b.Loop() {
		m.key(keyMsg("pgup"))
		if !m.tr.follow && m.tr.top == 0 {
			m.tr.toBottom()
		}
		m.View()
	}
}

// A token of a streamed answer to the next frame's text, behind 10,000 events.
func BenchmarkTokenBehind10000Events(b *testing.B) {
	m := longModel(10_000)
	m.talk.running = true
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		text := "token "
		if i%40 == 39 {
			text = "end.\n\n"
		}
		m.Update(eventMsg{agent.Event{Kind: agent.EventText, Text: text}, m.talk.gen})
		m.View()
	}
}

// A transcript of 10,000 events must cost a key press no more than one of ten: nothing walks all of it.
func TestLongTranscriptStaysFast(t *testing.T) {
	measure := func(n int) float64 {
		m := longModel(n)
		m.View()
		return testing.AllocsPerRun(20, func() {
			m.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
			m.View()
			m.key(keyMsg("pgup"))
			m.View()
		})
	}
	short, long := measure(100), measure(10_000)
	if long > 2*short+100 {
		t.Errorf("a key costs %v allocations behind 10,000 events, %v behind 100", long, short)
	}
}
