package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"magi-code/internal/provider"
)

// script writes a history as short words: "u:text", "a:text", "t:thought", "c:id" a call, "r:id" its result, "R:id" a
// recorded result; messages are separated by |.
func script(s string) []Entry {
	var entries []Entry
	for part := range strings.SplitSeq(s, "|") {
		var m provider.Message
		for w := range strings.FieldsSeq(part) {
			kind, text, _ := strings.Cut(w, ":")
			b := provider.Block{Kind: provider.Text, Text: text}
			role := provider.User
			switch kind {
			case "a":
				role = provider.Assistant
			case "t":
				role, b.Kind = provider.Assistant, provider.Thinking
			case "c":
				role, b = provider.Assistant, provider.Block{Kind: provider.ToolCall, CallID: text, Name: "tool"}
			case "r":
				b = result(text, "ok", false)
			case "R":
				entries = append(entries, Entry{Kind: Result, CallID: text, Text: "recorded"})
				continue
			}
			m.Role = role
			m.Blocks = append(m.Blocks, b)
		}
		if m.Role != "" {
			entries = append(entries, Entry{Kind: Message, Message: &m})
		}
	}
	return entries
}

func unscript(messages []provider.Message) string {
	var parts []string
	for _, m := range messages {
		var words []string
		for _, b := range m.Blocks {
			switch b.Kind {
			case provider.Thinking:
				words = append(words, "t:"+b.Text)
			case provider.ToolCall:
				words = append(words, "c:"+b.CallID)
			case provider.ToolResult:
				word := "r:"
				if b.IsError {
					word = "i:"
				} else if b.Content[0].Text == "recorded" {
					word = "R:"
				}
				words = append(words, word+b.CallID)
			default:
				words = append(words, string(m.Role)[:1]+":"+b.Text)
			}
		}
		parts = append(parts, strings.Join(words, " "))
	}
	return strings.Join(parts, " | ")
}

// R-G8: whatever the crash left, the next request is one that providers accept.
func TestMessages(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "u:1|a:2|u:3", "u:1 | a:2 | u:3"},
		{"calls", "u:1|a:x c:A c:B|r:B r:A u:2|a:3", "u:1 | a:x c:A c:B | r:A r:B u:2 | a:3"},
		{"results in several messages", "u:1|c:A c:B|r:A|r:B|a:3", "u:1 | c:A c:B | r:A r:B | a:3"},
		{"no result at the end", "u:1|c:A", "u:1 | c:A | i:A"},
		{"no result before a prompt", "u:1|c:A|u:2", "u:1 | c:A | i:A u:2"},
		{"no result before an answer", "u:1|c:A|a:2", "u:1 | c:A | i:A | a:2"},
		{"one of two", "u:1|c:A c:B|r:B", "u:1 | c:A c:B | i:A r:B"},
		{"recorded", "u:1|c:A c:B|R:A", "u:1 | c:A c:B | R:A i:B"},
		{"recorded twice", "u:1|c:A|R:A|r:A|c:A|R:A", "u:1 | c:A | r:A | c:A | i:A"},
		{"orphaned result", "u:1|a:2|r:A u:3", "u:1 | a:2 | u:3"},
		{"only an orphan", "u:1|a:2|r:A|a:3", "u:1 | a:2 a:3"},
		{"result too late", "u:1|c:A|a:2|r:A u:3", "u:1 | c:A | i:A | a:2 | u:3"},
		{"result twice", "u:1|c:A|r:A r:A|r:A u:2", "u:1 | c:A | r:A u:2"},
		{"call twice", "u:1|c:A c:A|r:A", "u:1 | c:A | r:A"},
		{"neighbours", "u:1|u:2|a:3|a:4", "u:1 u:2 | a:3 a:4"},
		{"begins with the model", "a:0|c:A|r:A|u:1|a:2", "u:1 | a:2"},
		{"thought alone", "u:1|t:x|u:2", "u:1 u:2"},
		{"thought at the end", "u:1|t:x a:y t:z|u:2", "u:1 | t:x a:y | u:2"},
		{"empty text", "u:1|a: |u:2", "u:1 u:2"},
		{"nothing", "", ""},
	} {
		if got := unscript(Messages(script(tc.in))); got != tc.want {
			t.Errorf("%s: %q\n got %q\nwant %q", tc.name, tc.in, got, tc.want)
		}
	}
}

// Results of calls inside a script or subagent answer no call of the conversation.
func TestInnerResults(t *testing.T) {
	entries := append(script("u:1|c:A"), Entry{Kind: Result, CallID: "A", Under: "X", Text: "inner"})
	if got := unscript(Messages(entries)); got != "u:1 | c:A | i:A" {
		t.Error(got)
	}
}

// The entries are not changed, and what is repaired stays as it is.
func TestMessagesPure(t *testing.T) {
	entries := script("u:1|a:2|a:3|c:A|r:B|u:4")
	before := script("u:1|a:2|a:3|c:A|r:B|u:4")
	got := Messages(entries)
	if d := cmp.Diff(before, entries); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(got, again(got)); d != "" {
		t.Error(d)
	}
}

func again(messages []provider.Message) []provider.Message {
	var entries []Entry
	for i := range messages {
		entries = append(entries, Entry{Kind: Message, Message: &messages[i]})
	}
	return Messages(entries)
}

// checkAcceptable fails unless providers accept the history.
func checkAcceptable(t *testing.T, messages []provider.Message) {
	t.Helper()
	var open map[string]bool
	for i, m := range messages {
		if want := []provider.Role{provider.User, provider.Assistant}[i%2]; m.Role != want {
			t.Fatalf("message %d is the %s's", i, m.Role)
		}
		if len(m.Blocks) == 0 {
			t.Fatalf("message %d is empty", i)
		}
		calls, results := make(map[string]bool), 0
		for j, b := range m.Blocks {
			switch b.Kind {
			case provider.ToolCall:
				if m.Role != provider.Assistant || calls[b.CallID] {
					t.Fatalf("message %d: call %q out of place", i, b.CallID)
				}
				calls[b.CallID] = true
			case provider.ToolResult:
				if j != results || !open[b.CallID] {
					t.Fatalf("message %d: result %q out of place", i, b.CallID)
				}
				delete(open, b.CallID)
				results++
			case provider.Thinking:
				if m.Role != provider.Assistant || j == len(m.Blocks)-1 {
					t.Fatalf("message %d: thought out of place", i)
				}
			case provider.Text:
				if strings.TrimSpace(b.Text) == "" {
					t.Fatalf("message %d: blank text", i)
				}
			case provider.Image:
			default:
				t.Fatalf("message %d: block of kind %q", i, b.Kind)
			}
		}
		if len(open) > 0 {
			t.Fatalf("message %d answers not all calls: %v", i, open)
		}
		open = calls
	}
	if len(open) > 0 {
		t.Fatalf("calls without an answer: %v", open)
	}
}

// FuzzEntries reads any bytes as a session: no panic, bounded notes, an acceptable history that repair leaves alone,
// and lines that can be written again.
func FuzzEntries(f *testing.F) {
	head := `{"n":0,"kind":"session","version":1,"time":"2026-01-01T00:00:00Z"}` + "\n"
	f.Add([]byte(head))
	f.Add([]byte(head + `{"n":1,"kind":"message","message":{"role":"user","blocks":[{"kind":"text","text":"x"}]}}` + "\n{torn"))
	f.Add([]byte(head + `{"kind":"message","message":{"role":"assistant","blocks":[{"kind":"tool_call","callId":"1","name":"a","input":{"a":1,"a":2}}]}}` + "\n\x00\n"))
	f.Add([]byte(head + `{"kind":"result","callId":"1","text":"\ud800"}` + "\r\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse(t.Context(), strings.NewReader(string(data)))
		if err != nil {
			return
		}
		if c.whole > int64(len(data)) || len(c.entries) == 0 || c.entries[0].Kind != Header {
			t.Fatalf("%d of %d bytes, %d entries", c.whole, len(data), len(c.entries))
		}
		messages := Messages(c.entries)
		checkAcceptable(t, messages)
		if d := cmp.Diff(messages, again(messages)); d != "" {
			t.Fatal(d)
		}
		for _, e := range c.entries {
			text, err := encode(7, e)
			if err != nil || strings.Count(string(text), "\n") != 1 {
				t.Fatalf("%q, %v", text, err)
			}
			if n, ok := lineCount(text[:len(text)-1]); !ok || n != 7 {
				t.Fatalf("count of %q", text)
			}
			if _, ok := readEntry(text[:len(text)-1]); !ok {
				t.Fatalf("cannot read back %q", text)
			}
		}
	})
}
