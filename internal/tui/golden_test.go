package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/mcp"
	"magi-code/internal/session"
)

// Issue 4: golden screens of the main views at 80x24 and 140x40.
func TestGoldenScreens(t *testing.T) {
	views := []struct {
		name string
		show func(t *testing.T, cols, rows int) *rig
	}{
		{"starting", showStarting},
		{"queued", showQueued},
		{"ready", func(t *testing.T, c, r int) *rig { return ready(t, c, r) }},
		{"answer", func(t *testing.T, c, r int) *rig { x := ready(t, c, r); x.run("think answer"); return x }},
		{"cards", func(t *testing.T, c, r int) *rig { x := ready(t, c, r); x.run("notice tool badtool"); return x }},
		{"cards-open", func(t *testing.T, c, r int) *rig { x := ready(t, c, r); x.run("tool"); x.press("ctrl+o"); return x }},
		{"question", func(t *testing.T, c, r int) *rig { return showQuestion(t, c, r, "ask") }},
		{"question-diff", func(t *testing.T, c, r int) *rig { return showQuestion(t, c, r, "edit") }},
		{"failure", func(t *testing.T, c, r int) *rig { x := ready(t, c, r); x.run("retry fail"); return x }},
		{"commands", func(t *testing.T, c, r int) *rig { x := ready(t, c, r); x.typeText("/"); return x }},
		{"files", func(t *testing.T, c, r int) *rig {
			x := ready(t, c, r)
			x.typeText("look at @")
			x.until("files", func() bool { return x.m.comp.open })
			return x
		}},
		{"writing", showWriting},
		{"mcp", func(t *testing.T, c, r int) *rig { return showScreen(t, c, r, "/mcp") }},
		{"mcp-new", func(t *testing.T, c, r int) *rig {
			x := showScreen(t, c, r, "/mcp")
			x.press("down", "down")
			x.settle()
			return x
		}},
		{"help", func(t *testing.T, c, r int) *rig { return showScreen(t, c, r, "/help") }},
		{"model", func(t *testing.T, c, r int) *rig { return showScreen(t, c, r, "/model") }},
		{"permissions", func(t *testing.T, c, r int) *rig { return showScreen(t, c, r, "/permissions") }},
		{"tools", func(t *testing.T, c, r int) *rig { return showScreen(t, c, r, "/tools") }},
		{"sessions", showSessions},
	}
	for _, v := range views {
		for _, size := range [][2]int{{80, 24}, {140, 40}} {
			name := fmt.Sprintf("%s_%dx%d", v.name, size[0], size[1])
			t.Run(name, func(t *testing.T) { v.show(t, size[0], size[1]).golden(name) })
		}
	}
}

func showStarting(t *testing.T, cols, rows int) *rig {
	x := newRig(t, newWorld(), cols, rows, func(o *Options) {
		o.Servers = []string{"files", "github", "postgres", "search"}
		o.Start = nil
	})
	x.m.start.done = false
	x.m.start = newStart([]string{"files", "github", "postgres", "search"}, x.clock)
	x.until("conversation", func() bool { return x.m.talk.conv != nil })
	x.clock = x.clock.Add(4 * time.Second)
	x.send(statusMsg{Name: "files", State: mcp.Ready, Took: 310 * time.Millisecond, Tools: []mcp.ToolInfo{{Name: "a"}, {Name: "b"}}})
	x.send(statusMsg{Name: "github", State: mcp.Starting, Phase: mcp.PhaseInitialize, Since: x.clock.Add(-3 * time.Second)})
	x.send(statusMsg{Name: "postgres", State: mcp.Failed, Err: &mcp.Error{Server: "postgres", Phase: mcp.PhaseConnect, Text: "the program ended with exit status 3"}})
	return x
}

func showQueued(t *testing.T, cols, rows int) *rig {
	x := showStarting(t, cols, rows)
	x.say("first explain the parser to me, please")
	x.say("then\nwrite a test")
	x.typeText("and a third")
	return x
}

func showQuestion(t *testing.T, cols, rows int, prompt string) *rig {
	x := ready(t, cols, rows)
	x.say(prompt)
	x.until("question", func() bool { return len(x.m.asks) > 0 })
	x.pass(time.Second)
	return x
}

func showWriting(t *testing.T, cols, rows int) *rig {
	x := ready(t, cols, rows)
	x.typeText("Here is a list")
	x.press("alt+enter")
	x.typeText("with a second line that is long enough to be broken on a screen of eighty columns, 漢字 included")
	x.press("shift+enter")
	x.send(tea.PasteMsg{Content: strings.Repeat("pasted line\n", 400)})
	x.typeText(" and so on")
	return x
}

func showScreen(t *testing.T, cols, rows int, command string) *rig {
	x := ready(t, cols, rows)
	x.say(command)
	x.settle()
	return x
}

func showSessions(t *testing.T, cols, rows int) *rig {
	w := newWorld()
	close(w.release)
	var x *rig
	x = newRig(t, w, cols, rows, func(o *Options) {
		o.Sessions = func(context.Context) ([]session.Info, error) {
			return []session.Info{{ID: "a", Title: "Fix the parser", Messages: 12, Modified: x.clock.Add(-2 * time.Hour)}, {ID: "b", Title: "Write docs", Messages: 1, Modified: x.clock.Add(-50 * time.Hour)}}, nil
		}
	})
	x.until("ready", func() bool { return x.m.start.done && x.m.talk.conv != nil })
	x.say("/sessions")
	x.settle()
	return x
}

// S27, S32: a question shows raw names and arguments, hidden characters as escapes, under our words.
func TestQuestionShowsWhatIsHidden(t *testing.T) {
	x := ready(t, 100, 40)
	x.say("hostile")
	x.until("question", func() bool { return len(x.m.asks) > 0 })
	x.pass(time.Second)
	x.sees("May this tool run?", `\u{1b}`, `\u{202e}`, "[y] once", "[a] always", "[n] no")
	x.press("n")
	x.until("end", func() bool { return !x.m.talk.running })
	if strings.ContainsAny(x.screen(), "\x1b\x07\u202e\u200b") {
		t.Errorf("hidden characters on the screen: %q", x.screen())
	}
}

// R-L1, S29: what changed in the tools stands in one line before the turn that first has them.
func TestToolChangesBeforeTheTurn(t *testing.T) {
	x := ready(t, 100, 30)
	x.run("notice answer")
	s := x.screen()
	if n, a := strings.Index(s, "2 tools added"), strings.Index(s, "Here is what I found"); n < 0 || a < n {
		t.Errorf("notice at %d, answer at %d:\n%s", n, a, s)
	}
}
