package codemode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// call is a host with one tool.
func call(f func(ctx context.Context, input jsontext.Value) Outcome) Host {
	return Host{Tools: []ToolInfo{{Name: "f"}}, Call: func(ctx context.Context, _ string, input jsontext.Value) Outcome { return f(ctx, input) }}
}

// TestSizes: each limit of size, at its edge and past it. // R-G5
func TestSizes(t *testing.T) {
	big := func(n int) Host {
		return call(func(context.Context, jsontext.Value) Outcome {
			return Outcome{Success: true, Content: jsontext.Value(`"` + strings.Repeat("x", n-2) + `"`)}
		})
	}
	ask := "const r = tools.call('f', {}); return r.success ? r.content.length : r.error"
	source := func(n int) string { return "return 1" + strings.Repeat(" ", n-len("return 1")) }
	for name, c := range map[string]struct {
		host   Host
		source string
		value  string
		err    string
	}{
		"source":      {big(2), source(64 << 10), "1", ""},
		"source past": {big(2), source(64<<10 + 1), "", "the source has 65537 bytes, more than the 65536"},
		"result":      {big(1 << 20), ask, fmt.Sprint(1<<20 - 2), ""},
		"result past": {big(1<<20 + 1), ask, `"the result has 1048577 bytes, more than the 1048576 that a script may get; ask for less"`, ""},
		"return":      {big(2), "return 'x'.repeat((256 << 10) - 2)", `"` + strings.Repeat("x", 256<<10-2) + `"`, ""},
		"return past": {big(2), "return 'x'.repeat((256 << 10) - 1)", "", "more than the 262144"},
		"no content":  {call(func(context.Context, jsontext.Value) Outcome { return Outcome{Success: true} }), "return tools.call('f', {})", `{"success":true,"content":null}`, ""},
		"no error":    {call(func(context.Context, jsontext.Value) Outcome { return Outcome{} }), "return tools.call('f', {})", `{"success":false,"error":"the tool failed without saying why"}`, ""},
		"bad content": {call(func(context.Context, jsontext.Value) Outcome {
			return Outcome{Success: true, Content: jsontext.Value("{")}
		}), "return tools.call('f', {})", `{"success":false,"error":"the result is not JSON"}`, ""},
		"no input":         {call(func(_ context.Context, in jsontext.Value) Outcome { return Outcome{Error: fmt.Sprint(len(in))} }), "return tools.call('f')", `{"success":false,"error":"0"}`, ""},
		"result is a copy": {big(100), "const a = tools.call('f', {}), b = tools.call('f', {}); a.content = 1; return b.content.length", "98", ""},
	} {
		var r Runner
		value, _, err := r.Run(t.Context(), c.source, c.host, Limits{})
		if string(value) != c.value || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %.100s, %v", name, value, err)
		}
	}
}

// TestConsoleBound: console output is kept up to its limit, and the cut is told.
func TestConsoleBound(t *testing.T) {
	_, console, err := run(t, "for (let i = 0; i < 1000; i++) console.log('x'.repeat(999))", Limits{})
	if err != nil || len(console) > 64<<10+100 || !strings.HasSuffix(console, "... console output is cut at 65536 bytes\n") {
		t.Errorf("%d bytes, %v", len(console), err)
	}
	_, console, err = run(t, "console.log('before'); nope()", Limits{})
	if err == nil || console != "before\n" {
		t.Errorf("console %q, %v", console, err)
	}
}

// TestCallAllOverlaps: calls are under way together, not all at once, and come back in order. // R-G5
func TestCallAllOverlaps(t *testing.T) {
	var now, most atomic.Int32
	var first sync.WaitGroup
	first.Add(maxOverlap)
	host := call(func(_ context.Context, in jsontext.Value) Outcome {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		first.Done()
		first.Wait() // ends only when sixteen are under way
		return Outcome{Success: true, Content: in}
	})
	var r Runner
	value, _, err := r.Run(t.Context(), "return tools.callAll(Array.from({length: 16}, (_, i) => ({name: 'f', input: {i}}))).every((r, i) => r.content.i === i)", host, Limits{})
	if err != nil || string(value) != "true" || most.Load() != maxOverlap {
		t.Errorf("%s, %v, %d at once", value, err, most.Load())
	}
}

// TestCancel: the caller's context ends a script that computes and one that waits for a call.
func TestCancel(t *testing.T) {
	for _, source := range []string{"tools.call('f', {}); while (true) {}", "return tools.call('f', {stay: true})"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		mine := errors.New("the person pressed a key")
		host := call(func(ctx context.Context, in jsontext.Value) Outcome {
			cancel(mine)
			if len(in) > 2 {
				<-ctx.Done()
			}
			return Outcome{Error: "stopped"}
		})
		var r Runner
		_, _, err := r.Run(ctx, source, host, Limits{})
		if !errors.Is(err, mine) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestClock: time limits count the calls, and not what a person needs for an answer.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fired atomic.Int32
		c := newClock(time.Minute, func() { fired.Add(1) })
		ctx := context.WithValue(t.Context(), clockKey{}, c)
		time.Sleep(20 * time.Second) // synthetic time of the bubble
		first, second := Hold(ctx), Hold(ctx)
		time.Sleep(time.Hour)
		first()
		first()
		time.Sleep(time.Hour)
		if left := c.remaining(); left != 40*time.Second {
			t.Errorf("%s left", left)
		}
		second()
		time.Sleep(39 * time.Second)
		synctest.Wait()
		if left := c.remaining(); fired.Load() != 0 || left != time.Second {
			t.Errorf("fired %d times, %s left", fired.Load(), left)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if fired.Load() != 1 || c.remaining() != 0 {
			t.Errorf("fired %d times, %s left", fired.Load(), c.remaining())
		}
		Hold(t.Context())() // outside a script
	})
}

// TestStuck: a script whose call ignores its end is left behind, the next one is refused until it has ended, and Close
// waits for it.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		host := call(func(context.Context, jsontext.Value) Outcome { <-release; return Outcome{} })
		var r Runner
		began := time.Now()
		_, _, err := r.Run(t.Context(), "tools.call('f', {})", host, Limits{Time: time.Second})
		if err == nil || !strings.Contains(err.Error(), "left behind") || time.Since(began) != time.Second+stopGrace {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if _, _, err := r.Run(t.Context(), "return 1", host, Limits{}); !errors.Is(err, errStuck) {
			t.Errorf("a second script: %v", err)
		}
		bound, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(bound); err == nil {
			t.Error("Close did not say that a script cannot be stopped")
		}
		close(release)
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if v, _, err := r.Run(t.Context(), "return 1", host, Limits{}); err != nil || string(v) != "1" {
			t.Errorf("after its end: %s, %v", v, err)
		}
	})
}

// TestEngines: four scripts have an engine at once, and one that a script started does not wait for a place.
func TestEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Runner
		var now, most atomic.Int32
		nested := func(ctx context.Context) Outcome {
			v, _, err := r.Run(ctx, "return 7", Host{}, Limits{})
			if err != nil {
				return Outcome{Error: err.Error()}
			}
			return Outcome{Success: true, Content: v}
		}
		host := call(func(ctx context.Context, _ jsontext.Value) Outcome {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second) // synthetic time of the bubble
			return nested(ctx)
		})
		var work sync.WaitGroup
		for range 2 * maxEngines {
			work.Go(func() {
				if v, _, err := r.Run(t.Context(), "return tools.call('f').content", host, Limits{}); err != nil || string(v) != "7" {
					t.Errorf("%s, %v", v, err)
				}
			})
		}
		work.Wait()
		if most.Load() != maxEngines {
			t.Errorf("%d engines at once", most.Load())
		}
	})
}

// FuzzBridge: whatever a script manages to send through the bridge, the answer is JSON or an error.
func FuzzBridge(f *testing.F) {
	f.Add("call", `[{"name":"add","input":{"intent":"x","a":1,"b":2}}]`)
	f.Add("call", `[{"name":"read"},null,{"input":[]},{"name":"\ud800","input":"\ud800"}]`)
	f.Add("search", `{"query":"read","limit":1e400}`)
	f.Add("describe", "\xff")
	f.Add("budget", "")
	f.Add("list", "x")
	f.Add("log", "\x00")
	f.Fuzz(func(t *testing.T, op, payload string) {
		c := newClock(time.Minute, func() {})
		defer c.stop()
		s := &script{host: world(), limits: DefaultLimits(), clock: c}
		answer, err := s.bridge(t.Context(), []any{op, payload})
		if text, ok := answer.(string); err == nil && (!ok || !jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true))) {
			t.Errorf("answer %v", answer)
		}
	})
}

// TestSearch ranks by name, then by description.
func TestSearch(t *testing.T) {
	c := &catalog{tools: []ToolInfo{
		{Name: "mcp__a__list_issues", Description: "Everything about pull requests."},
		{Name: "mcp__b__pull_request", Description: "One."}, {Name: "mcp__c__other", Description: "pull " + strings.Repeat("long ", 200)},
		{Name: "mcp__d__nothing", Description: "None."},
	}}
	var names []string
	for _, hit := range c.search("PULL request!", 0) {
		names = append(names, hit.Name)
		if len(hit.Description) > maxSummary+len("...") {
			t.Errorf("%s: %d bytes of description", hit.Name, len(hit.Description))
		}
	}
	if got := strings.Join(names, " "); got != "mcp__b__pull_request mcp__a__list_issues mcp__c__other" {
		t.Error(got)
	}
	if len(c.search("", 5)) != 0 || len(c.search("e", 2)) != 2 {
		t.Error("limits are not kept")
	}
}

// BenchmarkScript is what a small script costs, engine and prelude included.
func BenchmarkScript(b *testing.B) {
	host := world()
	for b.Loop() {
		var r Runner
		if _, _, err := r.Run(b.Context(), "return tools.call('add', {intent: 'x', a: 1, b: 2}).content", host, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
