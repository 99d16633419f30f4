package tui

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
)

// checkClean fails when the frame holds anything that a terminal acts on but our own colours.
func checkClean(t *testing.T, x *rig, where string) {
	t.Helper()
	v := x.m.View()
	rest := regexp.MustCompile(`\x1b\[[0-9;:]*m`).ReplaceAllString(v.Content+v.WindowTitle, "")
	for i, r := range rest {
		if unicode.IsControl(r) && r != '\n' || strings.ContainsRune("\u202e\u202a\u2066\u200b\u200e\U000e0041\ufeff", r) {
			t.Fatalf("%s: %U in %q", where, r, rest[max(0, i-30):min(len(rest), i+10)])
		}
	}
}

// S27: hostile text in every place that others can write to leaves nothing on the screen that acts.
func TestHostileTextEverywhere(t *testing.T) {
	h := hostile
	w := newWorld()
	close(w.release)
	w.model = h
	status := mcp.Status{Name: h, State: mcp.Ready, ServerName: h, ServerVersion: h, Protocol: h, Instructions: h, SkippedSample: h, Skipped: 1, Stderr: h,
		Tools: []mcp.ToolInfo{{Name: h, Title: h, Description: h}}, Omitted: []mcp.OmittedTool{{Name: h, Reason: h}}, Err: &mcp.Error{Server: h, Phase: mcp.Phase(h), Text: h, Hint: h, Stderr: h}}
	w.servers = []mcp.Status{status}
	server := definition.Server{Name: h, Source: "/" + h, Type: definition.Stdio, Command: h, Args: []string{h}, Env: []definition.Pair{{Name: h, Value: h}}, OAuth: &definition.OAuth{ClientID: h}}
	w.entries = []approval.Entry{{Server: server, State: approval.Changed}}
	w.history = []session.Entry{{Kind: session.Note, Text: h}, {Kind: session.Message, Message: &provider.Message{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: h}}}},
		{Kind: session.Message, Message: &provider.Message{Role: provider.Assistant, Blocks: []provider.Block{{Kind: provider.ToolCall, CallID: h, Name: h, Input: []byte(h)}, {Kind: provider.Thinking, Text: h}}}}, {Kind: session.Result, CallID: h, Text: h}}
	x := newRig(t, w, 100, 60, func(o *Options) {
		o.Dir, o.Version, o.Servers, o.Resume = h, h, []string{h}, h
		o.Sessions = func(context.Context) ([]session.Info, error) { return []session.Info{{ID: "z", Title: h}}, nil }
		o.Models = func(context.Context) ([]string, error) { return []string{h}, nil }
		o.Tools = func(context.Context) ([]ToolRow, error) { return []ToolRow{{Name: h, Server: h, Description: h}}, nil }
		o.Permissions = func(context.Context) ([]Rule, error) { return []Rule{{h, permission.Allow, h}}, nil }
		o.OAuth = func(context.Context, definition.Server) string { return h }
		o.Changes = func() []mcp.Change { return []mcp.Change{{Server: h, Added: []string{h}}} }
		o.Files = func(context.Context, string) []string { return []string{h} }
		o.Hint = func(error) string { return h }
		o.Shell = func(context.Context, string) (string, bool, error) { return h, true, errors.New(h) }
	})
	checkClean(t, x, "first frame")
	x.until("ready", func() bool { return x.m.start.done && x.m.talk.conv != nil })
	x.settle()
	checkClean(t, x, "history")
	for _, command := range []string{"/mcp", "/sessions", "/model", "/permissions", "/tools", "/help"} {
		x.say(command)
		x.settle()
		checkClean(t, x, command)
		x.press("pgdown", "end")
		checkClean(t, x, command+" further")
		x.press("esc")
	}
	x.say("/" + h)
	x.press("ctrl+u")
	x.m.ed.paste(h)
	checkClean(t, x, "pasted")
	x.press("ctrl+u")
	x.typeText("@x")
	x.until("files", func() bool { return x.m.comp.open })
	checkClean(t, x, "completion")
	x.press("tab")
	checkClean(t, x, "completed")
	x.press("ctrl+u")
	x.say("!x")
	x.settle()
	checkClean(t, x, "shell")
	x.m.queue = append(x.m.queue, draftOf(h))
	checkClean(t, x, "queue")
	x.m.queue = nil
	x.m.onModel(modelMsg{name: h})
	x.m.onModel(modelMsg{name: h, err: errors.New(h)})
	x.m.say(errText(errors.New(h)))
	checkClean(t, x, "model")
	x.m.onEvent(agent.Event{Kind: agent.EventRetry, Text: h, Hint: h})
	x.say("hostile")
	for x.m.talk.running {
		x.until("question", func() bool { checkClean(t, x, "stream"); return len(x.m.asks) > 0 || !x.m.talk.running })
		if len(x.m.asks) > 0 {
			x.pass(time.Second)
			checkClean(t, x, "question")
			x.press("n")
		}
	}
	x.press("ctrl+o")
	checkClean(t, x, "opened")
	x.press("ctrl+home")
	for range 20 {
		x.press("pgdown")
		checkClean(t, x, "scrolled")
	}
}

// longDefinition opens /mcp over one definition of 200 arguments.
func longDefinition(t *testing.T) *rig {
	t.Helper()
	w := newWorld()
	close(w.release)
	var args []string
	for range 200 {
		args = append(args, "--option")
	}
	w.entries = []approval.Entry{{Server: definition.Server{Name: "long", Source: "/x/.mcp.json", Type: definition.Stdio, Command: "c", Args: append(args, "--the-last-one"), Timeout: 30}}}
	x := newRig(t, w, 80, 24)
	x.say("/mcp")
	x.until("definitions", func() bool { s, ok := x.m.screen.(*serverScreen); return ok && !s.loading })
	x.settle()
	return x
}

// S9: a definition is reachable in full by scrolling, however long it is.
func TestLongDefinitionIsReachable(t *testing.T) {
	x := longDefinition(t)
	for range 40 {
		if strings.Contains(x.screen(), "--the-last-one") {
			return
		}
		x.press("pgdown")
	}
	t.Errorf("never seen:\n%s", x.screen())
}

// S9: what was not on the screen is not approved: Enter shows the next part of a long definition, and its end last.
func TestApprovalNeedsTheWhole(t *testing.T) {
	x := longDefinition(t)
	shown := map[string]bool{}
	look := func() {
		for l := range strings.Lines(x.screen()) {
			if name, _, ok := strings.Cut(strings.TrimSpace(l), "] "); ok && strings.HasPrefix(name, "args[") {
				shown[name] = true
			}
		}
	}
	look()
	x.press("end") // what lies between was not seen
	x.sees("enter read on", "--the-last-one")
	for range 40 {
		x.press("enter")
		x.settle()
		look()
		if strings.Contains(x.screen(), "enter approve") {
			break
		}
	}
	if len(shown) != 201 || x.w.approved["long"] {
		t.Errorf("%d of 201 arguments were shown, approved: %v", len(shown), x.w.approved["long"])
	}
	x.send(tea.WindowSizeMsg{Width: 80, Height: minRows}) // the definition has no room
	x.send(tea.WindowSizeMsg{Width: 90, Height: minRows})
	x.screen()
	x.press("enter", "enter")
	x.settle()
	if x.w.approved["long"] {
		t.Error("approved unseen")
	}
	x.send(tea.WindowSizeMsg{Width: 90, Height: 300})
	x.sees("enter approve", "--the-last-one")
	x.press("enter")
	x.settle()
	if !x.w.approved["long"] {
		t.Errorf("not approved\n%s", x.screen())
	}
}
