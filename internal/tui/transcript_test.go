package tui

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/provider"
)

// plainItem is lines that depend on the width.
type plainItem struct{ name, rows int }

func (p *plainItem) lines(w int, _ *drawing) []string {
	var out []string
	for i := range p.rows * 100 / max(w, 1) {
		out = append(out, fmt.Sprintf("%d.%d", p.name, i))
	}
	return out
}

// whole is the transcript drawn in full, as the slow way would.
func whole(tr *transcript) []string {
	var out []string
	for _, e := range tr.entries {
		lines := e.item.lines(min(max(tr.width-2*margin, 8), maxText), nil)
		if len(lines) == 0 {
			continue
		}
		for range e.gap {
			out = append(out, "")
		}
		for _, l := range lines {
			out = append(out, strings.Repeat(" ", margin)+l)
		}
	}
	return out
}

// What is seen is always a window of the whole, whatever was scrolled, added or resized; at the end it is the end.
func TestTranscriptShowsAWindowOfTheWhole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	tr := transcript{follow: true, width: 100, d: &drawing{}}
	height := 10
	for step := range 1200 {
		switch rnd.IntN(7) {
		case 0, 1:
			tr.add(&plainItem{step, rnd.IntN(6)}, rnd.IntN(2))
		case 2:
			tr.scroll(-rnd.IntN(30))
		case 3:
			tr.scroll(rnd.IntN(30))
		case 4:
			if rnd.IntN(10) == 0 {
				tr.toTop()
			} else if rnd.IntN(5) == 0 {
				tr.toBottom()
			}
		case 5:
			tr.width = 60 + rnd.IntN(60)
		case 6:
			height = 3 + rnd.IntN(20)
		}
		got, all := tr.view(height), whole(&tr)
		if len(got) != height {
			t.Fatalf("step %d: %d lines of %d", step, len(got), height)
		}
		used := len(got)
		for used > 0 && got[used-1] == "" {
			used--
		}
		if tr.follow {
			want := all[max(0, len(all)-height):]
			if !slices.Equal(got[:len(want)], want) {
				t.Fatalf("step %d: not the end:\n%q\n%q", step, got, want)
			}
			continue
		}
		if !contains(all, got[:used]) {
			t.Fatalf("step %d: no window: %q", step, got)
		}
	}
}

func contains(all, part []string) bool {
	for i := 0; i+len(part) <= len(all); i++ {
		if slices.Equal(all[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// Scrolling stays usable while text streams: what is seen does not move.
func TestStreamingDoesNotMoveWhatIsSeen(t *testing.T) {
	x := ready(t, 80, 24)
	x.run("long")
	x.press("pgup", "pgup")
	before := x.screen()
	x.sees("↓ more")
	x.say("answer")
	x.press("pgup", "pgup")
	x.until("end", func() bool { return !x.m.talk.running })
	mid := x.screen()
	x.m.answerDelta("more text streams in\n\nand in\n\n")
	if got := x.screen(); strings.SplitN(got, "↓", 2)[0] != strings.SplitN(mid, "↓", 2)[0] {
		t.Errorf("moved:\n%s\n%s", mid, got)
	}
	x.sees("↓ new below")
	x.press("ctrl+end")
	x.sees("and in")
	_ = before
}

func TestWheelAndSelection(t *testing.T) {
	x := ready(t, 80, 24)
	x.run("long")
	x.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp, X: 1, Y: 1})
	if x.m.tr.follow {
		t.Fatal("the wheel does not scroll")
	}
	x.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown, X: 1, Y: 1})
	row := 4
	line := strings.Split(x.screen(), "\n")[row]
	if !strings.Contains(line, "Line") {
		row, line = row+1, strings.Split(x.screen(), "\n")[row+1]
	}
	x.send(tea.MouseClickMsg{Button: tea.MouseLeft, X: 0, Y: row})
	x.send(tea.MouseMotionMsg{Button: tea.MouseLeft, X: 79, Y: row})
	if got := x.m.sel.text(x.m.tr.view(x.m.tr.height)); got != strings.TrimSpace(line) {
		t.Errorf("selected %q of %q", got, line)
	}
	x.m.answerDelta("streams meanwhile\n\n")
	if got := x.m.sel.text(x.m.tr.view(x.m.tr.height)); got != strings.TrimSpace(line) {
		t.Errorf("the selection moved to %q", got)
	}
	if _, cmd := x.m.Update(tea.MouseReleaseMsg{X: 79, Y: row}); cmd == nil {
		t.Error("nothing was copied")
	}
	x.sees("copied 1 line")
	x.press("esc")
	if x.m.sel.on {
		t.Error("esc keeps the selection")
	}
	x.say("/mouse")
	if v := x.m.View(); v.MouseMode != tea.MouseModeNone {
		t.Error("/mouse leaves the mouse here")
	}
}

func TestFocusOpensOneCard(t *testing.T) {
	x := ready(t, 100, 40)
	x.run("tool badtool")
	x.press("alt+up", "alt+up", "ctrl+o")
	x.sees("assignee: none", `"labels": [`)
	x.press("ctrl+o")
	x.seesNot("assignee: none")
	x.press("esc")
	if x.m.focus != nil {
		t.Error("esc keeps the card")
	}
}

// TestUsageText: tokens in a few words, and the price where the service told it.
func TestUsageText(t *testing.T) {
	for _, c := range []struct {
		u    provider.Usage
		want string
	}{
		{provider.Usage{}, ""},
		{provider.Usage{Input: 300, CacheRead: 900, Output: 20}, "↑1.2k ↓20 (75% cached)"},
		{provider.Usage{Input: 300, Output: 20, Cost: 1.239}, "↑300 ↓20 $1.24"},
		{provider.Usage{Input: 300, Output: 20, Cost: 0.001}.Add(provider.Usage{Cost: 0.0011}), "↑300 ↓20 $0.0021"},
		{provider.Usage{Input: 300, Output: 20, Cost: 0.00001}, "↑300 ↓20"},
	} {
		if got := usageText(c.u); got != c.want {
			t.Errorf("%+v: %q, want %q", c.u, got, c.want)
		}
	}
}
