package tui

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
)

// R-G9: nothing runs before every server is ready; then the queue runs in order.
func TestQueueWaitsForServers(t *testing.T) {
	w := newWorld()
	x := newRig(t, w, 80, 24, func(o *Options) { o.Prompt = "one" })
	x.until("conversation", func() bool { return x.m.talk.conv != nil })
	x.say("two")
	if len(x.m.queue) != 2 || x.m.talk.running {
		t.Fatalf("queue %d, running %v", len(x.m.queue), x.m.talk.running)
	}
	close(w.release)
	x.until("both turns", func() bool { return len(x.m.queue) == 0 && !x.m.talk.running && len(w.ran()) == 2 })
	if !slices.Equal(w.ran(), []string{"one", "two"}) {
		t.Errorf("ran %q", w.ran())
	}
}

// R-G9: a failure of one server ends the program, the queue unrun.
func TestFailureLeavesTheQueueUnrun(t *testing.T) {
	w := newWorld()
	w.fail = []*mcp.Error{{Server: "files", Phase: mcp.PhaseList, Text: "x"}}
	x := newRig(t, w, 80, 24, func(o *Options) { o.Prompt = "one" })
	x.typeText("draft")
	close(w.release)
	x.until("the end", func() bool { return x.quit })
	if len(w.ran()) != 0 || x.m.exit.Code != 1 || len(x.m.exit.Failures) != 1 {
		t.Errorf("ran %q, exit %+v", w.ran(), x.m.exit)
	}
	p := &program{o: x.m.o}
	e, err := p.finish(x.m, x.m.exit, context.Background(), nil)
	if err != nil || !slices.Equal(e.Prompts, []string{"one", "draft"}) {
		t.Errorf("prompts %q, %v", e.Prompts, err)
	}
}

// A conversation that cannot be opened gives the prompt back and says what to do.
func TestNoConversationGivesThePromptBack(t *testing.T) {
	w := newWorld()
	close(w.release)
	w.openErr = &provider.Error{Provider: "anthropic", Message: "no key", Hint: "set ANTHROPIC_API_KEY"}
	x := newRig(t, w, 80, 30)
	x.until("error", func() bool { return !x.m.talk.opening && x.m.start.done })
	x.say("hello")
	x.until("back", func() bool { return !x.m.talk.opening && len(x.m.queue) == 0 })
	x.sees("no key", "→ set ANTHROPIC_API_KEY", "❯ hello")
}

func TestEscInterruptsAndRecallsTheQueue(t *testing.T) {
	x := ready(t, 80, 24)
	x.say("hang")
	x.until("text", func() bool { return strings.Contains(x.screen(), "still at it") })
	x.say("second")
	x.press("esc")
	x.until("end", func() bool { return !x.m.talk.running })
	x.sees("interrupted", "❯ second")
	if len(x.w.ran()) != 1 {
		t.Errorf("ran %q", x.w.ran())
	}
}

func TestCtrlCClearsAsksQuits(t *testing.T) {
	x := ready(t, 80, 24)
	x.typeText("some text")
	x.press("ctrl+c")
	x.seesNot("some text")
	x.press("up") // nothing is lost
	x.sees("❯ some text")
	x.press("ctrl+c", "ctrl+c")
	x.sees("ctrl+c again quits")
	x.pass(quitWindow + time.Second)
	x.seesNot("again quits")
	x.press("ctrl+c")
	if x.quit {
		t.Fatal("quit at the first press")
	}
	x.press("ctrl+c")
	if !x.quit {
		t.Error("did not quit")
	}
}

// What was meant for the prompt must not answer a question.
func TestQuestionDoesNotTakeTypeAhead(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("ask")
	x.typeText("ya") // typed while the question arrives
	x.until("question", func() bool { return len(x.m.asks) > 0 })
	x.typeText("y")
	if len(x.w.said()) != 0 {
		t.Fatal("typing answered the question")
	}
	x.sees("❯ yay", "tab to answer")
	x.pass(2 * time.Second) // a draft keeps the keys
	x.typeText("s")
	x.sees("❯ yays")
	x.press("tab")
	x.sees("[y] once")
	x.press("s")
	x.until("end", func() bool { return !x.m.talk.running })
	if !slices.Equal(x.w.said(), []permission.Answer{permission.Session}) {
		t.Errorf("answers %v", x.w.said())
	}
}

func TestAnswers(t *testing.T) {
	for key, want := range map[string]permission.Answer{"y": permission.Once, "s": permission.Session, "a": permission.Always, "n": permission.No, "esc": permission.No} {
		x := ready(t, 80, 30)
		x.say("ask")
		x.until("question", func() bool { return len(x.m.asks) > 0 })
		x.press(key) // too early: typing, or nothing
		x.press("ctrl+u")
		if key == "esc" {
			continue // esc interrupts the turn, which answers no
		}
		if len(x.w.said()) != 0 {
			t.Fatalf("%s answered at once", key)
		}
		x.pass(time.Second)
		x.press(key)
		x.until("end", func() bool { return !x.m.talk.running })
		if !slices.Equal(x.w.said(), []permission.Answer{want}) {
			t.Errorf("%s: %v", key, x.w.said())
		}
	}
}

// Leaving answers every open question with no.
func TestQuitRefusesQuestions(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("ask")
	x.until("question", func() bool { return len(x.m.asks) > 0 })
	x.m.quit()
	x.until("answer", func() bool { return len(x.w.said()) == 1 })
	if x.w.said()[0] != permission.No {
		t.Errorf("answers %v", x.w.said())
	}
}

func TestRetryTakesBackWhatWasStreamed(t *testing.T) {
	x := ready(t, 80, 30)
	x.run("answer retry")
	x.sees("overloaded")
	x.seesNot("half an ans")
	x.sees("Two things")
}

func TestCallsWithoutResultAreStopped(t *testing.T) {
	x := ready(t, 80, 30)
	call := &agent.CallInfo{ID: "1", Tool: "bash"}
	x.m.talk.running = true
	x.m.onEvent(agent.Event{Kind: agent.EventCall, Call: call})
	x.m.onEvent(agent.Event{Kind: agent.EventRunning, Call: call})
	x.send(turnMsg{gen: x.m.talk.gen, turn: agent.Turn{Stop: agent.StopInterrupted}})
	x.sees("stopped")
}

// R-G9: /mcp approves what is shown, refuses what changed, revokes, and claims nothing that failed.
func TestServerScreenDecides(t *testing.T) {
	x := showScreen(t, 100, 30, "/mcp")
	x.sees("changes apply at the next launch", "files", "approved", "never approved", "enter revoke", "${MCP_DIR}/server.js", "filesystem 1.2.0")
	x.press("down", "down")
	x.settle()
	x.sees("enter approve", `--safe\u{202e}`, "hidden characters", "0123456789abcdef")
	x.w.stale = true
	x.press("enter")
	x.settle()
	x.sees("not approved: the definition changed", "never approved")
	x.press("enter")
	x.settle()
	x.sees("approved: it starts at the next launch")
	if !x.w.approved["notes"] {
		t.Error("not saved")
	}
	x.press("enter")
	x.settle()
	x.sees("revoked: it does not start")
	x.press("esc")
	x.seesNot("MCP servers")
}

func TestServerScreenShowsLiveState(t *testing.T) {
	x := ready(t, 120, 50)
	x.w.servers[1] = mcp.Status{Name: "github", State: mcp.Failed, Stale: true, Tools: []mcp.ToolInfo{{Name: "t", Description: hostile}}, Omitted: []mcp.OmittedTool{{Name: "bad.name", Reason: "a dot"}},
		Err: &mcp.Error{Server: "github", Phase: mcp.PhaseList, Text: "the listing repeats a cursor", Hint: "tell its author"}, Stderr: "boom\n" + hostile, Skipped: 3, SkippedSample: "banner"}
	x.m.o.Changes = func() []mcp.Change { return []mcp.Change{{Server: "github", Added: []string{"new_tool"}}} }
	x.say("/mcp")
	x.settle()
	x.press("down")
	x.settle()
	x.sees("failed: the next call tries again", "list: the listing repeats a cursor", "tell its author", "new_tool", "bad.name", "a dot", "Its stderr", "boom", "3 lines of output")
}

func TestResumeReplaysHistory(t *testing.T) {
	w := newWorld()
	close(w.release)
	w.history = []session.Entry{
		{Kind: session.Message, Message: &provider.Message{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: "what was asked"}}}},
		{Kind: session.Message, Message: &provider.Message{Role: provider.Assistant, Blocks: []provider.Block{{Kind: provider.Text, Text: "what was **said**"}, {Kind: provider.ToolCall, CallID: "1", Name: "mcp__files__read_file", Input: []byte(`{"intent":"look","arguments":{"path":"x"}}`)}}}},
		{Kind: session.Result, CallID: "1", Text: "file text"},
	}
	x := newRig(t, w, 80, 30, func(o *Options) { o.Resume = "old" })
	x.until("history", func() bool { return x.m.talk.conv != nil })
	x.sees("❯ what was asked", "what was said", "files › read_file", "look", "file text", "resumed · 2 messages")
	x.press("up")
	x.sees("❯ what was asked")
}

func TestShellGoesToTheModel(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("!ls -l")
	x.settle()
	x.sees("! ls -l", "ran ls -l")
	x.say("answer")
	x.until("end", func() bool { return !x.m.talk.running && len(x.w.ran()) == 1 })
	if len(x.m.shell) != 0 {
		t.Error("kept for the next prompt too")
	}
}

func TestUnknownCommandsAndPaths(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("/modle")
	x.sees("no command /modle: did you mean /model?")
	x.run("/etc/hosts answer")
	if len(x.w.ran()) != 1 {
		t.Errorf("a path is a prompt: %q", x.w.ran())
	}
}

func TestCompletion(t *testing.T) {
	x := ready(t, 80, 30)
	x.typeText("/se")
	x.sees("▸ /sessions")
	x.press("tab")
	x.sees("❯ /sessions")
	x.press("ctrl+u")
	x.typeText("read @main")
	x.until("files", func() bool { return x.m.comp.open })
	x.press("enter")
	x.sees("❯ read @main.go")
	x.press("ctrl+u")
	x.typeText("@internal")
	x.until("files", func() bool { return x.m.comp.open })
	x.press("esc")
	if x.m.comp.open {
		t.Error("esc leaves it open")
	}
}

func TestModelCommand(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("/model bad")
	x.settle()
	x.sees("no such model")
	x.say("/model openai/gpt")
	x.settle()
	x.sees("model: openai/gpt, from the next turn on")
}

func TestNewConversation(t *testing.T) {
	x := ready(t, 80, 30)
	x.run("answer")
	old := x.m.talk.gen
	x.say("/new")
	x.until("new", func() bool { return x.m.talk.conv != nil && x.m.talk.gen == old+1 })
	x.seesNot("Here is what I found")
	x.send(eventMsg{agent.Event{Kind: agent.EventText, Text: "ghost"}, old}) // of the old one
	x.seesNot("ghost")
	x.settle()
	if !slices.Contains(x.w.ended(), "conversation") {
		t.Error("the old conversation was not closed")
	}
}

func TestHistoryFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "history")
	for _, s := range []string{"one", "two\nlines", "three"} {
		if err := appendHistory(path, s); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	_, _ = f.WriteString("{broken\n\"four\"\n")
	_ = f.Close()
	got, err := readHistory(path)
	if err != nil || !slices.Equal(got, []string{"one", "two\nlines", "three", "four"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := readHistory(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
}

// A panic in drawing or updating ends the program in order.
func TestPanicIsKept(t *testing.T) {
	x := ready(t, 80, 24)
	x.m.screen = badScreen{}
	x.m.View()
	if !x.m.exit.Crashed || !strings.Contains(x.m.exit.Report, "planted") {
		t.Errorf("exit %+v", x.m.exit)
	}
	y := ready(t, 80, 24)
	y.m.screen = badScreen{}
	if _, cmd := y.m.Update(keyMsg("x")); cmd == nil || !y.m.exit.Crashed {
		t.Error("a panic in a key went unnoticed")
	}
}

type badScreen struct{}

func (badScreen) key(*model, string) tea.Cmd      { panic("planted") }
func (badScreen) message(*model, tea.Msg) tea.Cmd { return nil }
func (badScreen) scroll(*model, int)              {}
func (badScreen) view(*model, int, int) []string  { panic("planted") }

func TestDescribeFindsTheCure(t *testing.T) {
	m := &model{o: Options{Hint: func(error) string { return "ask a friend" }}}
	for _, c := range []struct {
		err  error
		hint string
	}{{errors.New("x"), "ask a friend"}, {&provider.Error{Hint: "h1"}, "h1"}, {&mcp.Error{Hint: "h2\x1b[m"}, "h2"}} {
		if _, hint := m.describe(c.err); hint != c.hint {
			t.Errorf("%v: %q", c.err, hint)
		}
	}
}

// TestBlind: in a window that shows nothing no key answers a question or approves a server; when there is room again, a question is
// new on the screen.
func TestBlind(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("ask")
	x.until("question", func() bool { return len(x.m.asks) > 0 })
	x.pass(2 * time.Second)
	x.sees("[y] once")
	x.send(tea.WindowSizeMsg{Width: minCols - 1, Height: 30})
	x.pass(2 * time.Second)
	x.press("y")
	x.typeText("a")
	x.press("enter")
	x.send(tea.WindowSizeMsg{Width: 80, Height: 30})
	x.press("y") // too early: nobody has read it
	if len(x.w.said()) != 0 {
		t.Fatalf("answers %v", x.w.said())
	}
	x.press("ctrl+u")
	x.pass(2 * time.Second)
	x.press("n")
	x.until("end", func() bool { return !x.m.talk.running })
	if !slices.Equal(x.w.said(), []permission.Answer{permission.No}) {
		t.Errorf("answers %v", x.w.said())
	}
}

// TestBlindTyping: what is typed before the terminal told its size, or while its window is too small, is kept; it is sent when it
// can be seen.
func TestBlindTyping(t *testing.T) {
	x := ready(t, 80, 30)
	x.send(tea.WindowSizeMsg{Width: minCols - 1, Height: 30})
	x.typeText("answer this")
	x.press("backspace") // no text: what it would change cannot be seen
	x.press("enter")
	if got := x.m.ed.String(); got != "answer this" || x.m.talk.running {
		t.Fatalf("prompt %q, running %v", got, x.m.talk.running)
	}
	x.send(tea.WindowSizeMsg{Width: 80, Height: 30})
	x.press("enter")
	x.until("answer", func() bool { return !x.m.talk.running && x.m.ed.empty() })
	x.sees("❯ answer this")

	x.m.sized, x.m.width, x.m.height = false, 0, 0 // as before the first size
	x.typeText("answer early")
	x.press("enter")
	x.until("answer", func() bool { return !x.m.talk.running && x.m.ed.empty() })
	x.send(tea.WindowSizeMsg{Width: 80, Height: 30})
	x.sees("❯ answer early")
}

// TestPasteBehindAScreen: what is pasted while a screen is open waits in the prompt.
func TestPasteBehindAScreen(t *testing.T) {
	x := ready(t, 80, 30)
	x.say("/help")
	x.send(tea.PasteMsg{Content: "do not lose this"})
	x.sees("what you pasted is in the prompt")
	x.press("esc")
	x.sees("❯ do not lose this")
}
