package tui

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// monkeyKeys are what the monkey presses beside texts.
var monkeyKeys = []string{
	"enter", "enter", "enter", "esc", "tab", "up", "down", "left", "right", "home", "end", "pgup", "pgdown", "backspace", "delete",
	"alt+enter", "alt+up", "alt+down", "alt+b", "alt+f", "alt+d", "ctrl+left", "ctrl+right", "ctrl+home", "ctrl+end", "shift+up", "shift+down",
	"ctrl+a", "ctrl+e", "ctrl+k", "ctrl+u", "ctrl+w", "ctrl+y", "ctrl+_", "ctrl+o", "ctrl+l", "ctrl+n", "ctrl+p", "ctrl+g", "ctrl+c", "ctrl+d",
	"y", "n", "s", "a", "r", "/", "@", "!", "\\", " ",
}

// monkeyTexts are what it types and pastes.
var monkeyTexts = []string{
	"answer long tool", "ask", "notice tool badtool", "hostile", "think", "/mcp", "/help", "/sessions", "/permissions", "/tools", "/model", "/new", "/edit", "/mouse",
	"!echo x", "@re", "e\u0301 日本語 👩‍👩‍👧‍👦 \u202e", "x\ny\n", "\x1b[2J", "a\tb",
}

// TestMonkey: whatever is pressed, pasted, clicked and resized in whatever order, the screen keeps its size and nothing panics.
func TestMonkey(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		w := newWorld()
		if seed%4 == 1 { // there is much to look at
			for i := range 40 {
				e := w.entries[i%3]
				e.Server.Name = fmt.Sprintf("server%d", i)
				e.Server.Args = slices.Repeat([]string{hostile}, i)
				w.entries = append(w.entries, e)
			}
		}
		if seed%3 > 0 { // the others start while the monkey is at it
			close(w.release)
		}
		x := newRig(t, w, 80, 24)
		var last []string
		for range 600 {
			last = append(last, monkeyStep(x, rnd))
			if x.quit {
				break
			}
			checkFit(t, x, seed, last)
			if t.Failed() {
				return
			}
		}
		if x.m.exit.Crashed {
			t.Fatalf("seed %d: %s\n%q", seed, x.m.exit.Report, last[max(0, len(last)-30):])
		}
	}
}

func monkeyStep(x *rig, rnd *rand.Rand) string {
	one := func(list []string) string { return list[rnd.IntN(len(list))] }
	switch n := rnd.IntN(20); {
	case n < 9:
		k := one(monkeyKeys)
		x.press(k)
		return k
	case n < 12:
		s := one(monkeyTexts)
		x.typeText(s)
		return s
	case n < 13:
		s := one(monkeyTexts)
		x.send(tea.PasteMsg{Content: s})
		return "paste " + s
	case n < 14:
		x.send(tea.WindowSizeMsg{Width: rnd.IntN(140), Height: rnd.IntN(50)})
		return "resize"
	case n < 16:
		mouse := tea.Mouse{X: rnd.IntN(150) - 3, Y: rnd.IntN(55) - 3, Button: []tea.MouseButton{tea.MouseLeft, tea.MouseWheelUp, tea.MouseWheelDown}[rnd.IntN(3)]}
		switch rnd.IntN(4) {
		case 0:
			x.send(tea.MouseClickMsg(mouse))
		case 1:
			x.send(tea.MouseReleaseMsg(mouse))
		case 2:
			x.send(tea.MouseMotionMsg(mouse))
		default:
			x.send(tea.MouseWheelMsg(mouse))
		}
		return "mouse"
	case n < 17:
		x.pass(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		return "time"
	}
	for range rnd.IntN(8) {
		select {
		case msg := <-x.msgs:
			x.send(msg)
		case <-time.After(time.Millisecond):
		}
	}
	return "messages"
}

func checkFit(t *testing.T, x *rig, seed uint64, last []string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("seed %d at %dx%d after %q: %v\n%s", seed, x.m.width, x.m.height, last[max(0, len(last)-30):], r, debug.Stack())
		}
	}()
	lines, cx, cy := x.m.draw()
	bad := len(lines) > x.m.height || !x.m.blind() && len(lines) != x.m.height || cy >= x.m.height || cy >= 0 && cx >= max(x.m.width, 1)
	bad = bad || slices.ContainsFunc(lines, func(l string) bool { return ansi.StringWidth(l) > x.m.width })
	if bad {
		t.Errorf("seed %d: %d lines at %dx%d, cursor %d,%d, after %q\n%s", seed, len(lines), x.m.width, x.m.height, cx, cy, last[max(0, len(last)-30):], x.screen())
	}
}
