package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

// writerEnv makes the test binary a process that appends to a session until it is killed.
const writerEnv = "MAGI_TEST_SESSION_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		if err := writeForever(dir, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(fullEnv); dir != "" {
		if err := fillDisk(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// writeForever appends numbered notes and prints the number of each after it was acknowledged.
func writeForever(dir, id, first string) error {
	store := NewStore(dir)
	s, err := store.Create("/w")
	if id != "new" {
		s, err = store.Open(testContext, id)
	}
	if err != nil {
		return err
	}
	fmt.Println(s.ID())
	n, _ := strconv.Atoi(first)
	for ; ; n++ {
		e := Entry{Kind: Note, CallID: strconv.Itoa(n), Text: strings.Repeat("x", n%7*100_000)}
		if n%5 == 0 {
			e = say(provider.User, strconv.Itoa(n))
		}
		if err := s.Append(e); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func say(role provider.Role, text string) Entry {
	return Entry{Kind: Message, Message: &provider.Message{Role: role, Blocks: []provider.Block{{Kind: provider.Text, Text: text}}}}
}

func mustAppend(t *testing.T, s *Session, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

func mustClose(t *testing.T, s *Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, store *Store, id string) *Session {
	t.Helper()
	s, err := store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// newSession makes a session file with one prompt and returns its id.
func newSession(t *testing.T, store *Store, dir, prompt string) string {
	t.Helper()
	s, err := store.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, say(provider.User, prompt))
	mustClose(t, s)
	return s.ID()
}

// R-G8: what was appended is there again, to the digit, and the file is private.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	store := NewStore(dir)
	s, err := store.Create("/work/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("something was written before the first Append")
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	entries := []Entry{
		{Kind: Message, Time: at, Message: &provider.Message{Role: provider.User, Blocks: []provider.Block{
			{Kind: provider.Text, Text: "hello\n\x00\u2028world"}, {Kind: provider.Image, MIME: "image/png", Data: []byte{1, 2, 0}},
		}}},
		{Kind: Call, Time: at, CallID: "1", Under: "0", Tool: "mcp__a__b", Input: jsontext.Value(`{"intent":"i","a":12345678901234567890123.0,"a":"x"}`)},
		{Kind: Result, Time: at, CallID: "1", Text: "done", IsError: true},
		{Kind: Usage, Time: at, Usage: &provider.Usage{Input: 1, Output: 2}, Model: "m"},
		{Kind: Message, Time: at, Message: &provider.Message{Role: provider.User, Blocks: []provider.Block{
			{Kind: provider.ToolResult, CallID: "1", Content: []tool.Content{{Kind: tool.Text, Text: "t"}}},
		}}},
	}
	mustAppend(t, s, entries...)
	mustClose(t, s)
	mustClose(t, s)
	if err := s.Append(entries[0]); err == nil {
		t.Error("Append after Close")
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, store.path(s.ID()): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	raw, err := os.ReadFile(store.path(s.ID()))
	if err != nil || strings.Contains(string(raw), `"version":0`) || !strings.HasPrefix(string(raw), `{"n":0,"kind":"session",`) {
		t.Errorf("%s, %v", raw, err)
	}
	again := mustOpen(t, store, s.ID())
	got := again.Entries()
	if len(got) == 0 || got[0].Kind != Header || got[0].ID != s.ID() || got[0].Dir != "/work" || got[0].Version != 1 {
		t.Fatalf("header: %+v", got)
	}
	if d := cmp.Diff(entries, got[1:]); d != "" {
		t.Error(d)
	}
	if again.Dir() != "/work" {
		t.Error(again.Dir())
	}
}

func TestAppendRefuses(t *testing.T) {
	s, _ := NewStore(t.TempDir()).Create("/w")
	for _, k := range []EntryKind{"", Header} {
		if err := s.Append(Entry{Kind: k}); err == nil {
			t.Errorf("kind %q was appended", k)
		}
	}
}

// Input that is not JSON, and text that is not UTF-8, must not stop a session.
func TestOddText(t *testing.T) {
	store := NewStore(t.TempDir())
	s, _ := store.Create("/w")
	mustAppend(t, s,
		Entry{Kind: Call, Input: jsontext.Value(`{"a":`), Text: "a\xffb"},
		Entry{Kind: Message, Message: &provider.Message{Role: provider.Assistant, Blocks: []provider.Block{{Kind: provider.ToolCall, Input: jsontext.Value("{\n nope")}}}},
		Entry{Kind: Call, Input: jsontext.Value("{\n\"a\": 1\n}")},
	)
	mustClose(t, s)
	got := mustOpen(t, store, s.ID()).Entries()[1:]
	if string(got[0].Input) != `"{\"a\":"` || got[0].Text != "a\ufffdb" {
		t.Errorf("%+v", got[0])
	}
	if string(got[1].Message.Blocks[0].Input) != `"{\n nope"` {
		t.Errorf("%+v", got[1])
	}
	if string(got[2].Input) != `{"a":1}` {
		t.Errorf("%+v", got[2])
	}
}

// An entry larger than a line is stored cut, whatever part of it is large.
func TestHugeEntries(t *testing.T) {
	huge, part := strings.Repeat("hügé ", 12<<20/7), strings.Repeat("pärt ", 5<<20/6)
	store := NewStore(t.TempDir())
	s, _ := store.Create("/w")
	block := provider.Block{
		Kind: provider.ToolResult, CallID: "1", Text: part, Data: []byte(part), MIME: "image/png",
		Content: []tool.Content{{Kind: tool.Text, Text: part}, {Kind: tool.Image, Data: []byte(part)}},
	}
	opaque := provider.Block{Kind: provider.Thinking, Text: "short", Opaque: quote(part), Origin: "x"}
	many := make([]provider.Block, 1800)
	for i := range many {
		many[i] = provider.Block{Kind: provider.Text, Text: strings.Repeat("y", 10_000)}
	}
	mustAppend(t, s,
		Entry{Kind: Result, Text: huge, Input: jsontext.Value(`{"a":` + string(quote(part)) + `}`)},
		Entry{Kind: Message, Message: &provider.Message{Role: provider.User, Blocks: []provider.Block{block, opaque}}},
		Entry{Kind: Message, Message: &provider.Message{Role: provider.User, Blocks: many}},
	)
	mustClose(t, s)
	if len(block.Content[0].Text) != len(part) || len(many[0].Text) != 10_000 {
		t.Error("the caller's values were changed")
	}
	got := mustOpen(t, store, s.ID()).Entries()
	if len(got) != 4 {
		t.Fatalf("%d entries", len(got))
	}
	if n := len(got[1].Text); n > 5<<20 || n < 1<<20 || !strings.Contains(got[1].Text, "omitted") {
		t.Errorf("the result has %d bytes", n)
	}
	if in := got[1].Input; len(in) > 5<<20 || in.Kind() != '"' {
		t.Errorf("the input has %d bytes", len(in))
	}
	m := got[2].Message.Blocks
	if m[1].Opaque != nil || m[1].Text != "short" {
		t.Errorf("%.200v", m[1])
	}
	if !strings.Contains(m[0].Text, "too large") || m[0].Data != nil {
		t.Errorf("%.200v", m[0])
	}
	if len(got[3].Message.Blocks) != 1800 {
		t.Error("blocks are missing")
	}
}

// R-G8: a second holder gets an error that names the first, in this process and in another.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	store := NewStore(dir)
	id := newSession(t, store, "/w", "x")
	first := mustOpen(t, store, id)
	if _, err := store.Open(t.Context(), id); !errors.Is(err, ErrInUse) {
		t.Errorf("second Open here: %v", err)
	}
	cmd := exec.Command(os.Args[0], id, "1")
	cmd.Env = append(os.Environ(), writerEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "in use by process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("second process: %v, %s", err, out)
	}
	mustClose(t, first)
	mustClose(t, mustOpen(t, store, id))
}

// A holder that ends within a moment, as what a killed process was just starting, is waited for; so is the caller's own end.
func TestInUseForAMoment(t *testing.T) {
	store := NewStore(t.TempDir())
	id := newSession(t, store, "/w", "x")
	first := mustOpen(t, store, id)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		<-time.After(holdPatience / 6)
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	})
	second := mustOpen(t, store, id)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Open(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
	mustClose(t, second)
}

// A process that looks into the folder while a session is being created neither takes it nor breaks it.
func TestCreateAgainstOpen(t *testing.T) {
	store := NewStore(t.TempDir())
	for range 8 {
		s, _ := store.Create("/w")
		var wg sync.WaitGroup
		stop := make(chan struct{})
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if other, err := store.Open(testContext, s.ID()); err == nil {
					t.Error("opened a session that another holds")
					_ = other.Close()
					return
				}
			}
		})
		mustAppend(t, s, say(provider.User, "x"))
		close(stop)
		wg.Wait()
		mustClose(t, s)
	}
}

func TestConcurrentAppend(t *testing.T) {
	store := NewStore(t.TempDir())
	s, _ := store.Create("/w")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := s.Append(say(provider.User, "hello")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mustClose(t, s)
	if n := len(mustOpen(t, store, s.ID()).Entries()); n != 401 {
		t.Errorf("%d entries", n)
	}
	if infos, err := store.List(""); err != nil || infos[0].Messages != 400 {
		t.Errorf("%+v, %v", infos, err)
	}
}

// R-G8: kill -9 at any moment loses no acknowledged entry, and the session goes on.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	store := NewStore(dir)
	id, next := "new", 0
	torn := 0
	for round := range 10 {
		cmd := exec.Command(os.Args[0], id, strconv.Itoa(next))
		cmd.Env = append(os.Environ(), writerEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for seen := 0; seen <= 3+round%5 && lines.Scan(); seen++ {
			if seen == 0 {
				id = lines.Text()
			} else {
				next, _ = strconv.Atoi(lines.Text())
			}
		}
		_ = cmd.Process.Kill()
		for lines.Scan() { // what was acknowledged before the signal arrived
			next, _ = strconv.Atoi(lines.Text())
		}
		_ = cmd.Wait()
		if raw, err := os.ReadFile(store.path(id)); err == nil && !strings.HasSuffix(string(raw), "\n") {
			torn++
		}
		s := mustOpen(t, store, id)
		have := make(map[string]bool)
		for _, e := range s.Entries() {
			if e.Kind == Note && e.CallID == "" {
				t.Fatalf("round %d: %s", round, e.Text)
			}
			have[e.CallID] = true
			if e.Kind == Message {
				have[e.Message.Blocks[0].Text] = true
			}
		}
		for n := 0; n <= next; n++ {
			if !have[strconv.Itoa(n)] {
				t.Fatalf("round %d: entry %d was acknowledged and is gone", round, n)
			}
		}
		next++
		for have[strconv.Itoa(next)] {
			next++
		}
		mustClose(t, s)
	}
	t.Logf("%d entries, %d torn lines", next, torn)
}

// A file cut anywhere behind its header opens, holds every whole line, and takes new ones.
func TestCutAnywhere(t *testing.T) {
	store := NewStore(t.TempDir())
	s, _ := store.Create("/w")
	mustAppend(t, s, say(provider.User, "one"), Entry{Kind: Note, Text: "two"}, say(provider.Assistant, "three"))
	mustClose(t, s)
	path := store.path(s.ID())
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header := slices.Index(raw, '\n')
	for n := 0; n <= len(raw); n++ {
		if err := os.WriteFile(path, raw[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := store.Open(t.Context(), s.ID())
		if n < header {
			if err == nil {
				t.Fatalf("opened with %d bytes of the header", n)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		whole := strings.Count(string(raw[:n]), "\n")
		if n < len(raw) && raw[n] == '\n' {
			whole++ // all but the line break is there
		}
		mustAppend(t, again, Entry{Kind: Note, Text: "after"})
		mustClose(t, again)
		again = mustOpen(t, store, s.ID())
		got := again.Entries()
		if len(got) != whole+1 || got[whole].Text != "after" {
			t.Fatalf("cut at %d: %d entries, want %d and one more: %+v", n, len(got), whole, got)
		}
		mustClose(t, again)
	}
}

// Unreadable lines in the middle are left out and told; blank lines and kinds of newer versions are simply passed over.
func TestDamagedMiddle(t *testing.T) {
	store := NewStore(t.TempDir())
	id := newSession(t, store, "/w", "one")
	f, err := os.OpenFile(store.path(id), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(f, "\x00\x00\x00\n{]\n\n{\"n\":1,\"kind\":\"hologram\",\"x\":1}\n")
	_, _ = io.WriteString(f, strings.Repeat("z", maxLineBytes+1)+"\n")
	_, _ = io.WriteString(f, `{"n":1,"kind":"note","text":"two","future":{"a":1}}`+"\n")
	_ = f.Close()
	var got []string
	for _, e := range mustOpen(t, store, id).Entries() {
		got = append(got, string(e.Kind)+" "+e.Text)
	}
	want := []string{
		"session one", "message ", "note lines 3 to 5 of the session could not be read and were left out",
		"note line 7 of the session could not be read and was left out", "note two",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	store := NewStore(dir)
	write := func(id, text string) {
		if err := os.WriteFile(store.path(id), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("20260101T000000Z-aaaaaa", "")
	write("20260101T000000Z-aaaaab", "hello\n")
	write("20260102T000000Z-aaaaaa", `{"n":0,"kind":"session","version":2,"time":"2026-01-01T00:00:00Z"}`+"\n")
	if err := os.Mkdir(store.path("20260103T000000Z-aaaaaa"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", store.path("20260104T000000Z-aaaaaa")); err != nil {
		t.Fatal(err)
	}
	for id, word := range map[string]string{
		"20260101T000000Z-aaaaaa": "no session", "20260101T000000Z-aaaaab": "header", "20260102": "newer",
		"20260103T000000Z-aaaaaa": "regular", "20260104T000000Z-aaaaaa": "regular", "20260101": "2 sessions",
		"2027": "no such session", "": "no such session", "../x": "no such session", "a\x1b": "no such session",
		strings.Repeat("a", 200): "no such session",
	} {
		_, err := store.Open(t.Context(), id)
		if err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("Open(%q) = %v, want %q", id, err, word)
		}
	}
	if infos, err := store.List(""); err != nil || len(infos) != 0 {
		t.Errorf("unreadable files are listed: %+v, %v", infos, err)
	}
}
