package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/permission"
)

// Issue 4: whatever stands above and in the prompt, a question fits into the window or is not shown.
func TestRoomForEverything(t *testing.T) {
	x := ready(t, 80, 24)
	x.say("hang")
	x.until("turn", func() bool { return x.m.talk.running })
	for range 6 {
		x.say("queued")
	}
	reply := make(chan permission.Answer, 1)
	x.send(askMsg{gen: x.m.talk.gen, id: 1, q: permission.Question{Tool: "bash", Input: []byte(`{"command":"a\nb\nc\nd"}`)}, reply: reply})
	for lines := range 14 {
		x.m.ed.set(strings.Repeat("line\n", lines))
		for _, queued := range []int{6, 5, 4, 3, 1, 0} {
			all := x.m.queue
			x.m.queue = all[:queued]
			for h := minRows; h < 50; h++ {
				x.send(tea.WindowSizeMsg{Width: 80, Height: h})
				got, cx, cy := x.m.draw()
				if len(got) != h || cy >= h || cx >= 80 {
					t.Fatalf("%d lines, %d queued: %d lines on a screen of %d, cursor %d,%d\n%s", lines, queued, len(got), h, cx, cy, x.screen())
				}
				if shown := strings.Contains(x.screen(), "May this tool run?"); shown != (x.m.askRoom() > 0) || h >= 16 && !shown {
					t.Fatalf("%d lines, %d queued, %d rows: shown %v, room %d\n%s", lines, queued, h, shown, x.m.askRoom(), x.screen())
				}
			}
			x.m.queue = all
		}
	}
}

// Issue 4: a question that has no room is not answered by what is typed, and is new on the screen once it has.
func TestUnseenQuestion(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("ask")
	x.until("question", func() bool { return len(x.m.asks) > 0 })
	x.pass(2 * time.Second)
	x.sees("[y] once")
	x.send(tea.WindowSizeMsg{Width: 80, Height: 9})
	x.press("y")
	x.pass(2 * time.Second)
	x.press("tab", "y")
	x.seesNot("May this tool run?")
	x.sees("enlarge the window to answer", "❯ yy")
	x.press("ctrl+u")
	x.send(tea.WindowSizeMsg{Width: 80, Height: 30})
	x.press("y") // nobody has read it again
	x.press("ctrl+u")
	if len(x.w.said()) != 0 {
		t.Fatalf("answers %v", x.w.said())
	}
	x.pass(2 * time.Second)
	x.press("n")
	x.until("end", func() bool { return !x.m.talk.running })
	if got := x.w.said(); len(got) != 1 || got[0] != permission.No {
		t.Errorf("answers %v", got)
	}
}

// Issue 4: in a narrow window every answer still shows.
func TestChoicesInANarrowWindow(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("ask")
	x.until("question", func() bool { return len(x.m.asks) > 0 })
	x.pass(2 * time.Second)
	for w, want := range map[int]string{80: "[y] once   [s] for this session   [a] always   [n] no", 41: "[y] once [s] session [a] always [n] no", 40: "[y] [s] [a] [n]", minCols: "[y] [s] [a] [n]"} {
		x.send(tea.WindowSizeMsg{Width: w, Height: 30})
		x.sees(want)
	}
	x.press("n")
	x.until("end", func() bool { return !x.m.talk.running })
}

// Issue 4: a call that is asked about each time offers no more than that.
func TestProtectedQuestion(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("hang")
	x.until("turn", func() bool { return x.m.talk.running })
	reply := make(chan permission.Answer, 1)
	x.send(askMsg{gen: x.m.talk.gen, id: 1, q: permission.Question{Tool: "write", Input: []byte(`{"path":".mcp.json"}`), Protected: true}, reply: reply})
	x.pass(2 * time.Second)
	x.sees("[y] once   [n] no", "asked each time")
	x.seesNot("[a]", "[s]", "writes the rule")
	x.press("a", "s", "A")
	x.sees("this is asked each time: answer with y or n")
	if len(reply) != 0 {
		t.Fatalf("answered %v", <-reply)
	}
	x.press("y")
	if got := <-reply; got != permission.Once {
		t.Errorf("answered %v", got)
	}
}
