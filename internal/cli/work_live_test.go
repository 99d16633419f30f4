package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"magi-code/internal/agent"
	"magi-code/internal/provider"
	"magi-code/internal/session"
)

func testLive(t *testing.T, zoo string) {
	for name, test := range map[string]func(*testing.T, string){
		"frozen": liveFrozen, "storm": liveStorm, "unchanged": liveUnchanged, "failed": liveFailed, "shared": liveShared, "rights": liveRights,
		"before": liveBeforeFirstTurn, "http": liveHTTP, "reconnected": liveReconnected, "unadvertised": liveUnadvertised, "sidebyside": liveSideBySide, "resumed": liveResumed,
	} {
		t.Run(name, func(t *testing.T) { test(t, zoo) })
	}
}

// liveSite has one server whose catalog changes on command.
func liveSite(t *testing.T, zoo, settings string) *site {
	return openSite(t, zoo, plan{servers: map[string][]string{"s": {"live"}, "other": {"live"}}, settings: settings})
}

const allowAll = `{"permissions": {"allow": ["mcp__*"]}}`

// R-L1, R-L3, R-L4, S29, X2: a server adds, removes and changes tools during a turn. The turn keeps its catalog through all
// its requests; the next one has the new one, told in one notice, with a new cache key; the one after has nothing new.
func liveFrozen(t *testing.T, zoo string) {
	s := liveSite(t, zoo, allowAll)
	m := steps(
		calls("mcp__s__grow", with(`{"name":"new"}`)),
		calls("mcp__s__shrink", with(`{"name":"add"}`)),
		calls("mcp__s__alter", with(`{"name":"echo","text":"It says what you say."}`)),
		calls("mcp__s__new", with(`{}`), "mcp__s__add", with(`{"a":1,"b":2}`), "mcp__s__big", with(`{"bytes":3}`)),
		says("first"),
		calls("mcp__s__new", with(`{}`), "mcp__s__add", with(`{"a":1,"b":2}`)),
		says("second"),
		says("third"),
	)
	k := s.talk(m, nil)
	k.turn("one")
	q := m.seen()
	if len(q) != 5 {
		t.Fatalf("%d requests", len(q))
	}
	for i := range q {
		if !slices.Equal(offered(q[i]), offered(q[0])) || q[i].CacheKey != q[0].CacheKey {
			t.Errorf("request %d of the turn has another catalog", i)
		}
		if d, _ := advertised(q[i], "mcp__s__echo"); d.Description != "Gives its text back." {
			t.Errorf("request %d describes echo as %q", i, d.Description)
		}
	}
	if got := answers(q[4]); len(got) != 3 || !strings.Contains(got[0], `there is no tool named "mcp__s__new"`) || !strings.Contains(got[1], "unknown tool add") || got[2] != "xxx" {
		t.Errorf("calls across the change: %q", got)
	}
	if n := s.ask("s", "listings", `{}`); n != "1" {
		t.Errorf("%s listings before the second turn", n)
	}
	if n := k.notices(); n != nil {
		t.Errorf("the first turn told %q", n)
	}
	k.forget()
	k.turn("two")
	q = m.seen()
	if n := k.notices(); len(n) != 1 {
		t.Errorf("notices: %q", n)
	} else {
		wantParts(t, n[0], `"s"`, "added mcp__s__new", "removed mcp__s__add", "changed mcp__s__echo")
	}
	noted := 0
	for _, e := range k.entries() {
		if e.Kind == session.Note && strings.Contains(e.Text, "added mcp__s__new") {
			noted++
		}
	}
	if noted != 1 {
		t.Errorf("the session holds %d notes of the change", noted)
	}
	if _, ok := advertised(q[5], "mcp__s__add"); ok {
		t.Error("the removed tool is still advertised")
	}
	if d, _ := advertised(q[5], "mcp__s__echo"); d.Description != "It says what you say." {
		t.Errorf("echo is %q", d.Description)
	}
	if got := answers(q[6]); len(got) != 2 || got[0] != "new was called" || !strings.Contains(got[1], `there is no tool named "mcp__s__add"`) {
		t.Errorf("calls after the change: %q", got)
	}
	if q[5].CacheKey == q[4].CacheKey || q[5].CacheKey != q[6].CacheKey {
		t.Error("the cache key must change with the catalog, at the turn's beginning and only there")
	}
	k.forget()
	k.turn("three")
	if n := k.notices(); n != nil {
		t.Errorf("the third turn told %q", n)
	}
	if last := m.seen()[7]; last.CacheKey != q[6].CacheKey {
		t.Error("nothing changed, and the cache key did")
	}
	if s.ask("s", "listings", `{}`) != "2" || s.ask("other", "listings", `{}`) != "1" {
		t.Error("another number of listings than one for each change, at the server that announced it")
	}
}

// R-L1, X2: any number of announcements is one refresh.
func liveStorm(t *testing.T, zoo string) {
	s := liveSite(t, zoo, allowAll)
	m := steps(calls("mcp__s__announce", with(`{"times":500}`)), calls("mcp__s__announce", with(`{"times":500}`)), says("a"), says("b"), says("c"))
	k := s.talk(m, nil)
	k.turn("one")
	s.ask("s", "announce", `{"times":500}`) // and when nothing runs
	if n := s.ask("s", "listings", `{}`); n != "1" {
		t.Errorf("%s listings during the turn", n)
	}
	k.turn("two")
	if n := s.ask("s", "listings", `{}`); n != "2" {
		t.Errorf("%s listings after the storm", n)
	}
	k.turn("three")
	if n := s.ask("s", "listings", `{}`); n != "2" {
		t.Errorf("%s listings in the calm after the storm", n)
	}
}

// R-L4: a listing that says the same keeps the catalog and the cache key, and tells nothing; so does a change that is not
// advertised.
func liveUnchanged(t *testing.T, zoo string) {
	s := liveSite(t, zoo, `{"permissions": {"allow": ["mcp__*"], "deny": ["mcp__s__secret*"]}}`)
	m := steps(says("a"), says("b"), says("c"))
	k := s.talk(m, nil)
	k.turn("one")
	s.ask("s", "announce", `{"times":1}`)
	k.turn("two")
	if n := s.ask("s", "listings", `{}`); n != "2" {
		t.Errorf("%s listings", n)
	}
	s.ask("s", "grow", `{"name":"secret_tool"}`)
	k.turn("three")
	q := m.seen()
	if q[0].CacheKey != q[1].CacheKey || q[1].CacheKey != q[2].CacheKey || q[0].CacheKey == "" {
		t.Errorf("cache keys %q, %q, %q", q[0].CacheKey, q[1].CacheKey, q[2].CacheKey)
	}
	if n := k.notices(); len(n) != 1 { // the person hears of the tool, though the model does not
		t.Errorf("notices: %q", n)
	}
}

// R-L2: a failed or invalid refresh keeps the old catalog, stale, with one retry at the next turn and no further one
// until the server announces again.
func liveFailed(t *testing.T, zoo string) {
	for _, kind := range []string{"error", "twins", "array"} {
		t.Run(kind, func(t *testing.T) {
			s := liveSite(t, zoo, allowAll)
			m := &scripted{answer: func(context.Context, provider.Request) []provider.Event { return says("yes") }}
			k := s.talk(m, nil)
			k.turn("start")
			key := m.seen()[0].CacheKey
			s.ask("s", "grow", `{"name":"new"}`)
			s.ask("s", "fail", `{"times":-1,"kind":"`+kind+`"}`)
			for turn, listings := range []string{"2", "3", "3", "3"} { // the refresh, its one retry, nothing more
				k.turn("again")
				st := s.status("s")
				if !st.Stale || st.Err == nil || len(st.Tools) != 15 {
					t.Errorf("turn %d: stale %v, %d tools, %v", turn, st.Stale, len(st.Tools), st.Err)
				}
				if got := s.ask("s", "listings", `{}`); got != listings {
					t.Errorf("turn %d: %s listings, not %s", turn, got, listings)
				}
			}
			for i, q := range m.seen() {
				if _, ok := advertised(q, "mcp__s__echo"); !ok || q.CacheKey != key {
					t.Errorf("request %d lost the old catalog", i)
				}
			}
			s.ask("s", "fail", `{"times":1,"kind":"`+kind+`"}`) // announces: fails once more, and the retry works
			k.turn("fails")
			if !s.status("s").Stale {
				t.Error("not stale after another failure")
			}
			k.turn("works")
			if st := s.status("s"); st.Stale || st.Err != nil || len(st.Tools) != 16 {
				t.Errorf("after the retry: stale %v, %d tools, %v", st.Stale, len(st.Tools), st.Err)
			}
			if n := k.notices(); len(n) != 1 || !strings.Contains(n[0], "added mcp__s__new") {
				t.Errorf("notices: %q", n)
			}
			if got := s.ask("s", "listings", `{}`); got != "5" {
				t.Errorf("%s listings in the end", got)
			}
		})
	}
}

// R-L3: two conversations share the servers. What one refreshes is not seen by the other's turn under way, nor by the
// children that it starts later; its next turn has it, and is told.
func liveShared(t *testing.T, zoo string) {
	s := liveSite(t, zoo, allowAll)
	quick := &scripted{answer: func(context.Context, provider.Request) []provider.Event { return says("done") }}
	second := s.talk(quick, nil)
	second.turn("zero")
	var slow *scripted
	step := 0
	slow = &scripted{answer: func(_ context.Context, q provider.Request) []provider.Event {
		if isChild(q) {
			return says("child: " + fmt.Sprint(slices.Contains(offered(q), "mcp__s__new")))
		}
		step++
		switch step {
		case 1:
			s.ask("s", "grow", `{"name":"new"}`)
			second.turn("refreshes, while the other turn runs")
			return calls("mcp__s__new", with(`{}`))
		case 2:
			return calls("subagents", `{"intent":"look","tasks":[{"prompt":"is there a new tool?"}]}`)
		}
		return says("done")
	}}
	first := s.talk(slow, nil)
	first.turn("one")
	if n := second.notices(); len(n) != 1 || !strings.Contains(n[0], "added mcp__s__new") {
		t.Errorf("the second conversation was told %q", n)
	}
	q := slow.seen()
	for i := range q {
		if slices.Contains(offered(q[i]), "mcp__s__new") {
			t.Errorf("request %d of the running turn has the new tool", i)
		}
	}
	if got := answers(q[1]); !strings.Contains(got[0], "there is no tool named") {
		t.Errorf("the call in the running turn: %q", got)
	}
	if got := answers(q[3]); !strings.Contains(got[0], "child: false") {
		t.Errorf("the child: %q", got)
	}
	if n := first.notices(); n != nil {
		t.Errorf("the first conversation was told %q in its running turn", n)
	}
	first.turn("two")
	if n := first.notices(); len(n) != 1 || !strings.Contains(n[0], "added mcp__s__new") {
		t.Errorf("the first conversation was told %q", n)
	}
	if !slices.Contains(offered(slow.seen()[4]), "mcp__s__new") || s.ask("s", "listings", `{}`) != "2" {
		t.Error("the next turn must have the tool from the one refresh")
	}
}

// R-L5: refreshed tools pass through the rules, both exclusion lists, and the ceilings of subagents, when they are
// advertised and again when they are called.
func liveRights(t *testing.T, zoo string) {
	s := liveSite(t, zoo, `{"permissions": {"allow": ["mcp__*"], "deny": ["mcp__s__denied*"]},
		"capabilities": {"tools": {"disabled": ["mcp__s__hidden*"], "code_mode": {"disabled": ["mcp__s__direct*"]}}}}`)
	grown := []string{"denied_x", "hidden_x", "direct_x", "free_x"}
	step := 0
	m := &scripted{}
	m.answer = func(_ context.Context, q provider.Request) []provider.Event {
		if isChild(q) {
			if len(q.Messages) > 1 {
				return says(strings.Join(offered(q), " ") + "\n" + strings.Join(answers(q), "\n"))
			}
			return calls("mcp__s__free_x", with(`{}`), "code_mode", scriptInput(`return tools.call("mcp__s__free_x", `+with(`{}`)+`).error || "reached"`))
		}
		step++
		switch step {
		case 2:
			var pairs []string
			code := `return [`
			for _, n := range grown {
				pairs = append(pairs, "mcp__s__"+n, with(`{}`))
				code += `tools.call("mcp__s__` + n + `", ` + with(`{}`) + `), `
			}
			pairs = append(pairs, "code_mode", scriptInput(code+`].map(r => r.content || r.error).join("\n")`))
			return calls(append(pairs, "subagents", `{"intent":"look","tasks":[{"prompt":"a","tools":["mcp__s__echo","code_mode"]},{"prompt":"b","mode":"inspect"}]}`)...)
		}
		return says("done")
	}
	k := s.talk(m, nil)
	k.turn("one")
	for _, n := range grown {
		s.ask("s", "grow", `{"name":"`+n+`"}`)
	}
	k.turn("two")
	var main []provider.Request
	for _, q := range m.seen() {
		if !isChild(q) {
			main = append(main, q)
		}
	}
	names := offered(main[1])
	for n, want := range map[string]bool{"denied_x": false, "hidden_x": false, "direct_x": true, "free_x": true} {
		if slices.Contains(names, "mcp__s__"+n) != want {
			t.Errorf("%s advertised directly: %v", n, !want)
		}
	}
	d, _ := advertised(main[1], "code_mode")
	wantParts(t, d.Description, "mcp__s__hidden_x")
	if strings.Contains(d.Description, "denied_x") || strings.Contains(d.Description, "direct_x") {
		t.Errorf("the index of scripts names what they cannot call:\n%s", d.Description)
	}
	got := answers(main[2])
	if len(got) != 6 {
		t.Fatalf("answers: %q", got)
	}
	for i, want := range []string{"denied by the permission rule", "excluded from direct use", "direct_x was called", "free_x was called"} {
		wantParts(t, got[i], want)
	}
	for i, want := range []string{"denied by the permission rule", "hidden_x was called", "excluded from Code Mode", "free_x was called"} {
		if lines := strings.Split(got[4], "\n"); len(lines) != 4 || !strings.Contains(lines[i], want) {
			t.Errorf("the script got %q", lines)
		}
	}
	child := got[5]
	wantParts(t, child, "mcp__s__free_x is not among the tools of this subagent")
	if strings.Contains(child, "reached") || strings.Contains(child, "was called") || strings.Count(child, "not among the tools") != 4 {
		t.Errorf("the children: %s", child)
	}
}

// S29: a change between the start of the servers and the first turn of a conversation is in that turn's catalog, and told in
// it; so is one between two conversations. What one was told, the next is not told again.
func liveBeforeFirstTurn(t *testing.T, zoo string) {
	s := liveSite(t, zoo, allowAll)
	if n := s.w.announceTools(t.Context(), s.m); n != nil {
		t.Errorf("the first start told %q", n)
	}
	s.ask("s", "grow", `{"name":"new"}`)
	m := steps(calls("mcp__s__new", with(`{}`)), says("done"))
	k := s.talk(m, nil)
	k.turn("one")
	if got := answers(m.seen()[1]); got[0] != "new was called" {
		t.Errorf("the first turn's call: %q", got)
	}
	if e := k.of(agent.EventResult); len(e) != 1 || e[0].IsError {
		t.Errorf("events: %+v", e)
	}
	if n := k.notices(); len(n) != 1 || !strings.Contains(n[0], "added mcp__s__new") {
		t.Errorf("the first turn told %q", n)
	}
	s.ask("s", "grow", `{"name":"newer"}`)
	second := s.talk(steps(says("done")), nil)
	second.turn("one")
	if n := second.notices(); len(n) != 1 || !strings.Contains(n[0], "added mcp__s__newer") || strings.Contains(n[0], "new,") {
		t.Errorf("the second conversation was told %q", n)
	}
	third := s.talk(steps(says("done")), nil)
	third.turn("one")
	if n := third.notices(); n != nil {
		t.Errorf("the third conversation was told %q", n)
	}
	if n := s.w.announceTools(t.Context(), s.m); len(n) != 1 || !strings.Contains(n[0], "added new, newer") {
		t.Errorf("the next start told %q", n)
	}
}
