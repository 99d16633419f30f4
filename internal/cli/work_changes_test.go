package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"magi-code/internal/agent"
	"magi-code/internal/provider"
)

// announcedWithin bounds the wait for a notification that comes when its server likes.
const announcedWithin = 30 * time.Second

// R-L1, R-L3 over HTTP, with a server made of the official SDK: it changes its tools while a turn runs; the turn keeps its
// catalog, a later one has the new tool and can call it.
func liveHTTP(t *testing.T, zoo string) {
	watchLeaks(t)
	server := sdk.NewServer(&sdk.Implementation{Name: "official", Version: "1"}, nil)
	type text struct {
		Text string `json:"text"`
	}
	add := func(name string) {
		sdk.AddTool(server, &sdk.Tool{Name: name, Description: "Gives its text back."}, func(_ context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, text, error) {
			return nil, in, nil
		})
	}
	add("old")
	add("kept")
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections)
	s := openSite(t, zoo, plan{urls: map[string]string{"h": h.URL}, settings: allowAll, watched: true})
	m := &scripted{}
	m.answer = func(_ context.Context, q provider.Request) []provider.Event {
		if len(answers(q)) > 0 {
			return says("done")
		}
		if len(m.seen()) == 1 {
			add("new")
			server.RemoveTools("old")
		}
		return calls("mcp__h__kept", with(`{"text":"kept"}`), "mcp__h__new", with(`{"text":"new"}`))
	}
	k := s.talk(m, nil)
	k.turn("one")
	q := m.seen()
	if !slices.Equal(offered(q[0]), offered(q[1])) || slices.Contains(offered(q[1]), "mcp__h__new") || !slices.Contains(offered(q[1]), "mcp__h__old") {
		t.Errorf("the turn's catalog changed: %q, %q", offered(q[0]), offered(q[1]))
	}
	if a := answers(q[1]); !strings.Contains(a[0], "kept") || !strings.Contains(a[1], "there is no tool named") {
		t.Errorf("results: %q", a)
	}
	for end := time.Now().Add(announcedWithin); ; {
		k.turn("again")
		q = m.seen()
		last := q[len(q)-1]
		if slices.Contains(offered(last), "mcp__h__new") && !slices.Contains(offered(last), "mcp__h__old") {
			if a := answers(last); !strings.Contains(a[1], `new`) || strings.Contains(a[1], "there is no tool") {
				t.Errorf("results: %q", a)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the change never came: %q", offered(last))
		}
	}
}

// A server that dies in a turn is back with the next call; what it lists by then counts from the next turn on.
func liveReconnected(t *testing.T, zoo string) {
	s := liveSite(t, zoo, allowAll)
	s.ask("s", "grow", `{"name":"new"}`)
	m := steps(
		calls("mcp__s__new", with(`{}`)), calls("mcp__s__crash", with(`{}`)), calls("mcp__s__new", with(`{}`)), calls("mcp__s__echo", with(`{"text":"back"}`)), says("done"),
		calls("mcp__s__new", with(`{}`), "mcp__s__echo", with(`{"text":"still"}`)), says("done"),
	)
	k := s.talk(m, nil)
	k.turn("one")
	q := m.seen()
	for i, want := range []string{"new was called", "status 7", "unknown tool new", "back"} {
		if a := answers(q[i+1]); !strings.Contains(a[0], want) {
			t.Errorf("call %d: no %q in %q", i, want, a)
		}
		if q[i+1].CacheKey != q[0].CacheKey {
			t.Errorf("request %d has another catalog", i+1)
		}
	}
	k.turn("two")
	if n := k.notices(); len(n) != 1 || !strings.HasSuffix(n[0], `removed mcp__s__new`) {
		t.Errorf("notices: %q", n)
	}
	if a := answers(m.seen()[6]); !strings.Contains(a[0], "there is no tool named") || a[1] != "still" {
		t.Errorf("results: %q", a)
	}
}

// X2: a server that does not advertise listChanged is not followed, and the status counts what it sent.
func liveUnadvertised(t *testing.T, zoo string) {
	log := filepath.Join(t.TempDir(), "log")
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"no-changes", "log=" + log}}, settings: allowAll})
	k := s.talk(steps(calls("mcp__s__grow", with(`{"name":"new"}`)), says("a"), says("b")), nil)
	k.turn("one")
	k.turn("two")
	b, err := os.ReadFile(log)
	if err != nil || strings.Count(string(b), `"tools/list"`) != 1 || s.status("s").Unannounced == 0 || k.notices() != nil {
		t.Errorf("%v; %d unannounced; %q\n%s", err, s.status("s").Unannounced, k.notices(), b)
	}
}

// R-L3, R-P4: conversations side by side on a server that lists other tools each time it is asked and storms at every call. Each turn
// has one catalog from its first request to its last, and every call of a lasting tool works.
func liveSideBySide(t *testing.T, zoo string) {
	const conversations, turns = 4, 6
	s := openSite(t, zoo, plan{servers: map[string][]string{"s": {"flip"}, "other": {"live"}}, settings: allowAll})
	var work sync.WaitGroup
	for range conversations {
		m := &scripted{}
		m.answer = func(_ context.Context, q provider.Request) []provider.Event {
			switch n := len(q.Messages); {
			case isChild(q) && n == 1, !isChild(q) && n%6 == 1:
				return calls("mcp__s__echo", with(`{"text":"a"}`), "mcp__other__echo", with(`{"text":"b"}`))
			case !isChild(q) && n%6 == 3:
				return calls("subagents", tasks(object{"prompt": "x"}, object{"prompt": "y"}))
			}
			return says("done")
		}
		k := s.talk(m, nil)
		work.Go(func() {
			for range turns {
				if turn, err := k.c.Send(t.Context(), []provider.Block{{Kind: provider.Text, Text: "go"}}); err != nil || turn.Stop != agent.StopDone {
					t.Errorf("the turn ended with %s: %v", turn.Stop, err)
					return
				}
			}
			var turn []string
			catalogs := map[string]bool{}
			for i, q := range m.seen() {
				servers := slices.DeleteFunc(offered(q), func(n string) bool { return !strings.HasPrefix(n, "mcp__") })
				if !isChild(q) && len(q.Messages)%6 == 1 {
					turn = servers
				}
				if !slices.Equal(servers, turn) {
					t.Errorf("request %d has the catalog %q in a turn of %q", i, servers, turn)
				}
				catalogs[fmt.Sprint(servers)] = true
			}
			if len(catalogs) != turns {
				t.Errorf("%d catalogs in %d turns", len(catalogs), turns)
			}
			for _, e := range k.of(agent.EventResult) {
				if e.IsError {
					t.Errorf("a call failed: %s", e.Text)
				}
			}
		})
	}
	work.Wait()
}

// R-G8: a session with scripts and children in it goes on: the model gets the main run's messages, each call with one result, and
// nothing of what scripts and children did inside; the catalog is that of now.
func liveResumed(t *testing.T, zoo string) {
	s := liveSite(t, zoo, allowAll)
	inner := scriptInput(`return tools.call("mcp__s__echo", ` + with(`{"text":"inner result"}`) + `).content.length`)
	m := &scripted{answer: func(_ context.Context, q provider.Request) []provider.Event {
		switch n := len(answers(q)); {
		case isChild(q) && n == 0:
			return calls("mcp__s__echo", with(`{"text":"child result"}`))
		case n > 0:
			return says("done")
		}
		return calls("code_mode", inner, "subagents", tasks(object{"prompt": "child prompt"}), "mcp__s__echo", with(`{"text":"direct result"}`))
	}}
	first := s.talk(m, nil)
	first.turn("one")
	wantParts(t, first.file(), "inner result", "child result", "direct result")
	s.must(first.c.Close(t.Context()))
	s.ask("s", "shrink", `{"name":"add"}`)
	sess, err := s.w.openSession(t.Context(), conversationFlags{cont: true})
	s.must(err)
	if sess.ID() != first.sess.ID() {
		t.Fatalf("another session goes on: %s", sess.ID())
	}
	again := steps(says("went on"))
	s.w.provider = again
	c := s.w.conversation(these(s.m), sess, nil, nil)
	if _, err := c.Send(t.Context(), []provider.Block{{Kind: provider.Text, Text: "two"}}); err != nil {
		t.Fatal(err)
	}
	s.must(c.Close(t.Context()))
	q := again.seen()[0]
	var shape []string
	for _, msg := range q.Messages {
		line := string(msg.Role)
		for _, b := range msg.Blocks {
			line += " " + string(b.Kind)
		}
		shape = append(shape, line)
	}
	if want := []string{"user text", "assistant tool_call tool_call tool_call", "user tool_result tool_result tool_result", "assistant text", "user text"}; !slices.Equal(shape, want) {
		t.Errorf("the history is %q", shape)
	}
	text := fmt.Sprintf("%+v", q.Messages)
	if strings.Contains(text, "child result") || !strings.Contains(text, "direct result") {
		t.Errorf("the history holds too much or too little: %s", text)
	}
	if slices.Contains(offered(q), "mcp__s__add") {
		t.Error("the catalog is an old one")
	}
}
