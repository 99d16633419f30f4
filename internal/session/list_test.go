package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"magi-code/internal/provider"
)

// testContext is for processes and goroutines that no test can hand its own.
var testContext = context.Background()

func TestListAndLatest(t *testing.T) {
	store := NewStore(filepath.Join(t.TempDir(), "none"))
	if infos, err := store.List(""); err != nil || infos != nil {
		t.Fatalf("%v, %v", infos, err)
	}
	if id, err := store.Latest("/a"); err != nil || id != "" {
		t.Fatalf("%q, %v", id, err)
	}
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	age := func(id string, day int) {
		if err := os.Chtimes(store.path(id), base, base.AddDate(0, 0, day)); err != nil {
			t.Fatal(err)
		}
	}
	a1 := newSession(t, store, "/a", "first \x1b[31mred\u202e\nprompt "+strings.Repeat("long ", 100))
	a2 := newSession(t, store, "/a", "second")
	b := newSession(t, store, "/b", "other")
	silent, _ := store.Create("/a") // a file without a message is nothing to go on with
	mustAppend(t, silent, Entry{Kind: Note, Text: "model changed"})
	mustClose(t, silent)
	age(a1, 1)
	age(a2, 2)
	age(b, 3)
	age(silent.ID(), 4)
	check := func(dir string, want ...string) {
		t.Helper()
		infos, err := store.List(dir)
		var got []string
		for _, i := range infos {
			got = append(got, i.ID)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("List(%q) = %v, %v, want %v", dir, got, err, want)
		}
		latest, err := store.Latest(dir)
		if err != nil || latest != want[0] {
			t.Fatalf("Latest(%q) = %q, %v", dir, latest, err)
		}
	}
	check("", b, a2, a1)
	check("/a", a2, a1)
	check("/a/", a2, a1)
	infos, _ := store.List("/a")
	title := infos[1].Title
	if strings.ContainsAny(title, "\x1b\n\u202e") || !strings.HasPrefix(title, "first") || len(title) > titleBytes+3 { // S27
		t.Errorf("title %q", title)
	}
	if infos[0].Messages != 1 || infos[0].Dir != "/a" || infos[0].Created.IsZero() || !infos[0].Modified.Equal(base.AddDate(0, 0, 2)) {
		t.Errorf("%+v", infos[0])
	}

	// Going on with an old one makes it the latest, and its count is found behind lines of any length.
	s := mustOpen(t, store, a1)
	mustAppend(t, s, say(provider.Assistant, "answer"), say(provider.User, "more"), Entry{Kind: Result, Text: strings.Repeat("x", 3*tailBytes)})
	mustClose(t, s)
	if err := os.Chtimes(store.path(a1), base, base.AddDate(0, 0, 9)); err != nil {
		t.Fatal(err)
	}
	check("/a", a1, a2)
	if infos, _ := store.List("/a"); infos[0].Messages != 3 {
		t.Errorf("%d messages", infos[0].Messages)
	}
}

// The first prompt need not be the first entry.
func TestTitleFromLaterLine(t *testing.T) {
	store := NewStore(t.TempDir())
	s, _ := store.Create("/w")
	mustAppend(t, s, Entry{Kind: Note, Text: "a note"}, say(provider.Assistant, "no"), say(provider.User, "the prompt"))
	mustClose(t, s)
	if infos, _ := store.List("/w"); len(infos) != 1 || infos[0].Title != "the prompt" {
		t.Errorf("%+v", infos)
	}
}

// A torn last line hides neither the session nor its count.
func TestListTorn(t *testing.T) {
	store := NewStore(t.TempDir())
	id := newSession(t, store, "/w", "prompt")
	f, _ := os.OpenFile(store.path(id), os.O_WRONLY|os.O_APPEND, 0)
	_, _ = f.WriteString(`{"n":77,"kind":"mess`)
	_ = f.Close()
	if infos, _ := store.List(""); len(infos) != 1 || infos[0].Messages != 1 {
		t.Errorf("%+v", infos)
	}
}

// BenchmarkList measures a folder of many long sessions: time must not depend on their length.
func BenchmarkList(b *testing.B) {
	store := NewStore(b.TempDir())
	for range 1000 {
		s, _ := store.Create("/w")
		for range 3 {
			_ = s.Append(say(provider.User, strings.Repeat("x", 30_000)))
		}
		_ = s.Close()
	}
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			_, _ = store.List("")
		}
	})
	b.Run("latest", func(b *testing.B) {
		for b.Loop() {
			_, _ = store.Latest("/w")
		}
	})
}
