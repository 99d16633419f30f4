package tui

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

var testOnlyUpdate = flag.Bool("update", false, "write the golden screens anew")

// rig drives the model by messages, without a terminal, on a clock that the test moves.
type rig struct {
	t       testing.TB
	m       *model
	w       *fakeWorld
	msgs    chan tea.Msg
	clock   time.Time
	work    sync.WaitGroup
	quit    bool
	pending int // pieces of work that have not ended; counted by the test's goroutine
}

// workDone follows what a piece of work reports.
type workDone struct{}

// newRig makes a model of a size over a world and starts it.
func newRig(t testing.TB, w *fakeWorld, cols, rows int, change ...func(*Options)) *rig {
	r := &rig{t: t, w: w, msgs: make(chan tea.Msg, 16), clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	ctx, cancel := context.WithCancel(context.Background())
	relay := newRelay()
	o := w.options()
	o.Now = func() time.Time { return r.clock }
	for _, c := range change {
		c(&o)
	}
	r.m = newModel(ctx, o, runtime{relay: relay, drawn: func() {}, started: func(Servers) {}, opened: func(Conversation) {}, do: func(f func() tea.Msg) {
		r.pending++
		r.work.Go(func() {
			for _, msg := range []tea.Msg{f(), workDone{}} {
				if msg == nil {
					continue
				}
				select {
				case r.msgs <- msg:
				case <-ctx.Done():
				}
			}
		})
	}})
	var relays sync.WaitGroup
	relays.Go(func() {
		relay.run(ctx, func(msg tea.Msg) {
			select {
			case r.msgs <- msg:
			case <-ctx.Done():
			}
		})
	})
	t.Cleanup(func() {
		r.m.dropAsks()
		cancel()
		relay.close()
		relays.Wait()
		r.work.Wait()
	})
	r.m.Init()
	r.send(tea.WindowSizeMsg{Width: cols, Height: rows})
	return r
}

// ready is a rig whose servers are ready and whose conversation is open.
func ready(t testing.TB, cols, rows int) *rig {
	t.Helper()
	w := newWorld()
	close(w.release)
	r := newRig(t, w, cols, rows)
	r.until("ready", func() bool { return r.m.start.done && r.m.talk.conv != nil })
	return r
}

func (r *rig) send(msg tea.Msg) {
	if _, ok := msg.(tea.QuitMsg); ok {
		r.quit = true
		return
	}
	if _, ok := msg.(workDone); ok {
		r.pending--
		return
	}
	r.m.Update(msg)
	if r.m.leaving {
		r.quit = true
	}
}

// until takes messages until ok.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	for !ok() {
		select {
		case msg := <-r.msgs:
			r.send(msg)
		case <-timer.C:
			r.t.Fatalf("waited for %s; the screen is\n%s", what, r.screen())
		}
	}
}

// settle waits until all started work has reported, and what that started too; for work that ends by itself.
func (r *rig) settle() {
	r.t.Helper()
	r.until("all work", func() bool { return r.pending == 0 })
}

// pass moves the clock and ticks.
func (r *rig) pass(d time.Duration) {
	r.clock = r.clock.Add(d)
	r.send(tickMsg(r.clock))
}

func (r *rig) press(keys ...string) {
	for _, k := range keys {
		r.send(keyMsg(k))
	}
}

func (r *rig) typeText(s string) {
	for _, c := range s {
		r.send(tea.KeyPressMsg{Code: c, Text: string(c)})
	}
}

// say types a prompt and sends it.
func (r *rig) say(s string) { r.typeText(s); r.press("enter") }

// run sends a prompt and waits for its end.
func (r *rig) run(s string) {
	r.t.Helper()
	r.say(s)
	r.until("the turn's end", func() bool { return !r.m.talk.running })
}

func keyMsg(name string) tea.KeyPressMsg {
	var k tea.KeyPressMsg
	for {
		if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
			k.Mod |= tea.ModCtrl
			name = rest
			continue
		}
		if rest, ok := strings.CutPrefix(name, "alt+"); ok {
			k.Mod |= tea.ModAlt
			name = rest
			continue
		}
		if rest, ok := strings.CutPrefix(name, "shift+"); ok {
			k.Mod |= tea.ModShift
			name = rest
			continue
		}
		break
	}
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete,
		"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown}
	if c, ok := named[name]; ok {
		k.Code = c
		return k
	}
	k.Code = []rune(name)[0]
	if k.Mod == 0 {
		k.Text = name
	}
	return k
}

// screen is what is seen, without styles.
func (r *rig) screen() string {
	lines, _, _ := r.m.draw()
	for i := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

func (r *rig) sees(texts ...string) {
	r.t.Helper()
	s := r.screen()
	for _, t := range texts {
		if !strings.Contains(s, t) {
			r.t.Errorf("%q is not on the screen:\n%s", t, s)
		}
	}
}

func (r *rig) seesNot(texts ...string) {
	r.t.Helper()
	s := r.screen()
	for _, t := range texts {
		if strings.Contains(s, t) {
			r.t.Errorf("%q is on the screen:\n%s", t, s)
		}
	}
}

// golden compares the screen with testdata/golden/name.txt.
func (r *rig) golden(name string) {
	r.t.Helper()
	got := r.screen() + "\n"
	path := filepath.Join("testdata", "golden", name+".txt")
	if *testOnlyUpdate {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if got != string(want) {
		r.t.Errorf("%s differs (run with -update when that is right)\ngot\n%swant\n%s", name, got, want)
	}
	lines, _, _ := r.m.draw()
	if len(lines) != r.m.height {
		r.t.Errorf("%s: %d lines on a screen of %d", name, len(lines), r.m.height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > r.m.width {
			r.t.Errorf("%s: line of %d columns: %q", name, w, ansi.Strip(l))
		}
	}
}
