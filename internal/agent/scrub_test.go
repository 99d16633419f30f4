package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/tool"
)

// TestScrubbed: a known secret reaches neither the model nor the session nor an event. // R-D5 S34
func TestScrubbed(t *testing.T) {
	const canary = "canary-7f3a9"
	scrub := secret.NewScrubber(secret.New(canary))
	store, s := newSession(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, projectFile), []byte("key "+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	leak := func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{
			Content: []tool.Content{{Kind: tool.Text, Text: "is " + canary}, {Kind: tool.Link, URI: "http://x/" + canary}},
			Diff:    "+" + canary, Structured: jsontext.Value(`{"k":"` + canary + `"}`),
		}, nil
	}
	broken := func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, errors.New("bad " + canary)
	}
	described := reader("leak", leak)
	described.Description = "knows " + canary
	m := steps(
		calls("leak", `{"intent":"`+canary+`"}`, "broken", `{"intent":"x"}`),
		[]provider.Event{
			{Kind: provider.TextDelta, Text: "it is canary-"}, {Kind: provider.TextDelta, Text: "7f3a9 "}, {Kind: provider.TextDelta, Text: "ok"},
			{Kind: provider.BlockDone, Block: provider.Block{Kind: provider.Text, Text: "it is " + canary + " ok"}},
			{Kind: provider.Done, Stop: provider.EndTurn},
		}, says("bye"),
	)
	conv, l := converse(t, Config{
		Provider: m, Session: s, Dir: dir, Scrub: scrub, Tools: func(context.Context) (tool.Set, []string, error) {
			set, err := tool.NewSet(described, reader("broken", broken))
			return set, []string{"note " + canary}, err
		},
	})
	send(t, conv, "my key is "+canary)
	send(t, conv, "again")
	if err := conv.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, q := range m.seen() {
		dump := q.System
		for _, one := range q.Tools {
			dump += one.Description + string(one.Schema)
		}
		for _, msg := range q.Messages {
			for _, b := range msg.Blocks {
				dump += b.Text + string(b.Input)
				for _, c := range b.Content {
					dump += c.Text + c.URI
				}
			}
		}
		if strings.Contains(dump, canary) {
			t.Errorf("request %d holds the secret: %s", i, dump)
		}
	}
	var streamed strings.Builder
	for _, e := range l.all() {
		dump := e.Text + e.Err + e.Diff
		if e.Call != nil {
			dump += e.Call.Intent + string(e.Call.Input)
		}
		if strings.Contains(dump, canary) {
			t.Errorf("event %s holds the secret", e.Kind)
		}
		if e.Kind == EventText {
			streamed.WriteString(e.Text)
		}
	}
	if got := streamed.String(); got != "it is [redacted] okbye" {
		t.Errorf("streamed %q", got)
	}
	for _, e := range stored(t, store, s.ID()) {
		dump := e.Text + string(e.Input)
		if e.Message != nil {
			for _, b := range e.Message.Blocks {
				dump += b.Text + string(b.Input)
			}
		}
		if strings.Contains(dump, canary) {
			t.Errorf("entry %s holds the secret", e.Kind)
		}
	}
}

// FuzzWords: however a text arrives, what is shown of it is the scrubbed text, and no secret.
func FuzzWords(f *testing.F) {
	const canary = "canary-7f3a9"
	f.Add("it is canary-7f3a9 ok", uint8(3))
	f.Add(canary+canary, uint8(1))
	f.Add("\u2003canary-7f3a9\u00a0\xff", uint8(2))
	f.Add(strings.Repeat("x", 2*maxHeldText)+" "+canary, uint8(200))
	f.Fuzz(func(t *testing.T, text string, step uint8) {
		w := wordScrubber{s: secret.NewScrubber(secret.New(canary))}
		var shown strings.Builder
		for rest := text; rest != ""; {
			n := min(len(rest), int(step)+1)
			shown.WriteString(w.next(rest[:n]))
			rest = rest[n:]
		}
		shown.WriteString(w.flush())
		longest := 0
		for _, word := range strings.Fields(text) {
			longest = max(longest, len(word))
		}
		if longest >= maxHeldText {
			return // a word that long comes in pieces
		}
		if got, want := shown.String(), w.s.Text(text); got != want {
			t.Errorf("shown %q, want %q", got, want)
		}
	})
}
