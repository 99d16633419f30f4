package offline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wrapped(arguments string) jsontext.Value {
	return jsontext.Value(`{"type":"object","properties":{"intent":{"type":"string"},"arguments":` + arguments + `},"required":["intent","arguments"],"additionalProperties":false}`)
}

var (
	echo = tool.Tool{Name: "demo__echo", Server: "demo", Remote: "echo", Origin: tool.MCP, Description: "Repeats a message.",
		Schema: wrapped(`{"type":"object","properties":{"message":{"type":"string"},"times":{"type":"integer"}},"required":["message"]}`)}
	add = tool.Tool{Name: "demo__get_sum", Server: "demo", Remote: "get_sum", Origin: tool.MCP, Description: "Adds two numbers and returns the sum.",
		Schema: wrapped(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"integer"}},"required":["a","b"]}`)}
	read = tool.Tool{Name: "read", Origin: tool.Builtin, Description: "Reads a file of the workspace.",
		Schema: jsontext.Value(`{"type":"object","properties":{"intent":{"type":"string"},"path":{"type":"string"},"limit":{"type":"integer"}},"required":["intent","path"]}`)}
	write = tool.Tool{Name: "write", Origin: tool.Builtin, Description: "Creates or replaces a file.",
		Schema: jsontext.Value(`{"type":"object","properties":{"intent":{"type":"string"},"path":{"type":"string"},"content":{"type":"string"}},"required":["intent","path","content"]}`)}
	editor = tool.Tool{Name: "client_open", Origin: tool.Client, Description: "Opens a tab in the editor.", Schema: jsontext.Value(`{"type":"object"}`)}
	tools  = []tool.Tool{editor, echo, add, read, write}
)

const because = `"intent":"` + intent + `"`

func ask(prompt string) provider.Request {
	return provider.Request{Model: "offline", Tools: tools, Messages: []provider.Message{
		{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: prompt}}}}}
}

type outcome struct {
	calls  []string // "name input"
	text   string
	deltas int
	stop   provider.Stop
	usage  provider.Usage
	blocks []provider.Block
	err    error
}

func next(ctx context.Context, r provider.Request) outcome {
	var o outcome
	streamed := ""
	for e, err := range New().Stream(ctx, r) {
		if err != nil {
			o.err = err
			return o
		}
		switch e.Kind {
		case provider.TextDelta:
			o.deltas++
			streamed += e.Text
		case provider.BlockDone:
			o.blocks = append(o.blocks, e.Block)
			if e.Block.Kind == provider.ToolCall {
				o.calls = append(o.calls, e.Block.Name+" "+string(e.Block.Input))
			}
			if e.Block.Kind == provider.Text {
				o.text += e.Block.Text
			}
		case provider.Done:
			o.stop, o.usage = e.Stop, e.Usage
		}
	}
	if o.text != streamed {
		o.err = fmt.Errorf("streamed %q, block %q", streamed, o.text)
	}
	return o
}

// play runs a whole turn, answering every call by what it was called with.
func play(t *testing.T, prompt string) (calls [][]string, text string) {
	t.Helper()
	r := ask(prompt)
	seen := map[string]bool{}
	for range 20 {
		o := next(t.Context(), r)
		if o.err != nil {
			t.Fatal(o.err)
		}
		if len(o.calls) == 0 {
			if o.stop != provider.EndTurn {
				t.Errorf("stop %s without a call", o.stop)
			}
			return calls, o.text
		}
		if o.stop != provider.ToolUse {
			t.Errorf("stop %s with calls", o.stop)
		}
		calls = append(calls, o.calls)
		results := provider.Message{Role: provider.User}
		for _, b := range o.blocks {
			if b.Kind == provider.ToolCall {
				if seen[b.CallID] {
					t.Errorf("id %s was used before", b.CallID)
				}
				seen[b.CallID] = true
				results.Blocks = append(results.Blocks, provider.Block{Kind: provider.ToolResult, CallID: b.CallID, IsError: strings.Contains(string(b.Input), "bad"),
					Content: []tool.Content{{Kind: tool.Text, Text: "<" + string(b.Input) + ">"}}})
			}
		}
		r.Messages = append(r.Messages, provider.Message{Role: provider.Assistant, Blocks: o.blocks}, results)
	}
	t.Fatal("the turn does not end")
	return nil, ""
}

func TestScript(t *testing.T) { // R-G1
	mcp := func(arguments string) string { return "demo__echo {" + because + `,"arguments":` + arguments + `}` }
	for _, c := range []struct {
		name, prompt string
		want         [][]string
		text         []string
	}{
		{"whole name", `call demo__echo {"message":"hi"}`, [][]string{{mcp(`{"message":"hi"}`)}}, []string{"demo__echo", "answered", "hi"}},
		{"partial name, no arguments", `call ECHO`, [][]string{{mcp(`{}`)}}, []string{"answered"}},
		{"own name", `call echo`, [][]string{{mcp(`{}`)}}, nil},
		{"whole input", `call echo {"intent":"mine","arguments":{"message":"x"}}`, [][]string{{`demo__echo {"intent":"mine","arguments":{"message":"x"}}`}}, nil},
		{"arguments alone", `call echo {"arguments":{"message":"x"}}`, [][]string{{`demo__echo {` + because + `,"arguments":{"message":"x"}}`}}, nil},
		{"a built-in", `call read {"path":"a.txt"}`, [][]string{{`read {` + because + `,"path":"a.txt"}`}}, nil},
		{"a built-in without fields", `call read { }`, [][]string{{`read {` + because + `}`}}, nil},
		{"a client tool", `call client_open {"x":1}`, [][]string{{`client_open {"x":1}`}}, nil},
		{"invalid JSON goes through", `call read {"path":`, [][]string{{`read "{\"path\":"`}}, nil},
		{"one answer", "call read {\"path\":\"a\"}\ncall echo", [][]string{{`read {` + because + `,"path":"a"}`, mcp(`{}`)}}, []string{"read", "echo"}},
		{"two answers", "call echo {\"n\":1}\n\ncall echo {\"n\":2}\nsay both\n\nsay all done", [][]string{{mcp(`{"n":1}`)}, {mcp(`{"n":2}`)}}, []string{"all done"}},
		{"parallel", `parallel 3 echo {"n":1}`, [][]string{{mcp(`{"n":1}`), mcp(`{"n":1}`), mcp(`{"n":1}`)}}, nil},
		{"failed call", `call echo {"bad":1}`, [][]string{{mcp(`{"bad":1}`)}}, []string{"failed: <"}},
		{"say", "say hello there", nil, []string{"hello there"}},
		{"unknown", "call nothing {}", nil, []string{"no tool named \"nothing\"", "demo__echo, demo__get_sum, read, write"}},
		{"several", "call demo__ {}", nil, []string{"several tools", "demo__echo, demo__get_sum."}},
		{"lines around", "Please do this:\ncall echo {\"n\":1}\nThanks", [][]string{{mcp(`{"n":1}`)}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls, text := play(t, c.prompt)
			if fmt.Sprint(calls) != fmt.Sprint(c.want) {
				t.Errorf("calls %q\nwant  %q", calls, c.want)
			}
			for _, part := range c.text {
				if !strings.Contains(text, part) {
					t.Errorf("answer %q lacks %q", text, part)
				}
			}
		})
	}
}

func TestNaturalLanguage(t *testing.T) {
	mcp := func(name, arguments string) string { return name + " {" + because + `,"arguments":` + arguments + `}` }
	for _, c := range []struct{ prompt, want string }{
		{`Please echo "hello world"`, mcp("demo__echo", `{"message":"hello world"}`)},
		{`use the echo tool with hello world`, mcp("demo__echo", `{"message":"hello world"}`)},
		{`What is the sum of 2.5 and 40?`, mcp("demo__get_sum", `{"a":2.5,"b":40}`)},
		{`add two numbers`, mcp("demo__get_sum", `{"a":1,"b":1}`)},
		{`read the file docs/guide.md please`, `read {` + because + `,"path":"docs/guide.md"}`},
		{`Read main.go.`, `read {` + because + `,"path":"main.go"}`},
		{`read limit=5 "a b.txt"`, `read {` + because + `,"limit":5,"path":"a b.txt"}`},
		{`write 'don''t' to notes.txt`, `write {` + because + `,"content":"don","path":"notes.txt"}`},
		{`echo message="a b" times=3`, mcp("demo__echo", `{"message":"a b","times":3}`)},
	} {
		calls, text := play(t, c.prompt)
		if len(calls) != 1 || len(calls[0]) != 1 || calls[0][0] != c.want {
			t.Errorf("%s: got %q, want %q", c.prompt, calls, c.want)
			continue
		}
		if !strings.Contains(text, "offline planner") || !strings.Contains(text, "<{") {
			t.Errorf("%s: answer %q", c.prompt, text)
		}
	}
	_, text := play(t, "What is the meaning of life?")
	if !strings.Contains(text, "not a model") || !strings.Contains(text, "demo__echo") {
		t.Errorf("answer %q", text)
	}
	r := ask("anything")
	r.Tools = nil
	if o := next(t.Context(), r); !strings.Contains(o.text, "no tools") {
		t.Errorf("answer %q", o.text)
	}
}

// A second turn starts anew, whatever the first one was.
func TestSecondTurn(t *testing.T) {
	r := ask("call echo {}\n\nsay one")
	r.Messages = append(r.Messages,
		provider.Message{Role: provider.Assistant, Blocks: []provider.Block{{Kind: provider.Text, Text: "one"}}},
		provider.Message{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: "say two"}}})
	if o := next(t.Context(), r); o.text != "two" {
		t.Errorf("answer %q", o.text)
	}
}

func TestSameEveryTime(t *testing.T) {
	for _, prompt := range []string{"read the file x.go", "parallel 2 echo {}", "something else", `write "a" b.txt`} {
		first := fmt.Sprintf("%+v", next(t.Context(), ask(prompt)))
		for range 20 {
			if again := fmt.Sprintf("%+v", next(t.Context(), ask(prompt))); again != first {
				t.Fatalf("%s: %s, then %s", prompt, first, again)
			}
		}
	}
}

func TestUsageAndDeltas(t *testing.T) {
	r := ask("say one two three four")
	r.System = "five words are in here"
	o := next(t.Context(), r)
	if o.usage != (provider.Usage{Input: 10, Output: 4}) || o.deltas != 4 {
		t.Errorf("%+v, %d deltas", o.usage, o.deltas)
	}
	if o := next(t.Context(), ask("say "+strings.Repeat("word ", 10_000))); o.deltas > 2*maxDeltas {
		t.Errorf("%d deltas", o.deltas)
	}
}

func TestFailThinkRetry(t *testing.T) {
	o := next(t.Context(), ask("fail the roof is on fire"))
	failed, ok := errors.AsType[*provider.Error](o.err)
	if !ok || failed.Error() != `provider "offline": the roof is on fire` {
		t.Errorf("%v", o.err)
	}
	o = next(t.Context(), ask("think well\nsay ok"))
	if len(o.blocks) != 2 || o.blocks[0].Kind != provider.Thinking || o.blocks[0].Text != "well" {
		t.Errorf("%+v", o.blocks)
	}
	var seen []string
	for e := range New().Stream(t.Context(), ask("say a\nretry busy\nsay b")) {
		seen = append(seen, string(e.Kind)+":"+e.Text)
	}
	if got := strings.Join(seen, " "); got != "text:a block: retry:busy text:b block: done:" {
		t.Errorf("got %s", got)
	}
}

func TestWaitAndSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for prompt, want := range map[string]int{"slow 100 tick tock": 26, "wait": 0, "say x\nwait": 1} {
			ctx, cancel := context.WithTimeout(t.Context(), 510*time.Millisecond)
			start, deltas := time.Now(), 0
			var last error
			for e, err := range New().Stream(ctx, ask(prompt)) {
				if e.Kind == provider.TextDelta {
					deltas++
				}
				last = err
			}
			cancel()
			if !errors.Is(last, context.DeadlineExceeded) || time.Since(start) != 510*time.Millisecond || deltas != want {
				t.Errorf("%s: %v after %s and %d deltas", prompt, last, time.Since(start), deltas)
			}
		}
		start := time.Now()
		if o := next(t.Context(), ask("slow 5 tick tock")); o.text != "tick tock tick tock tick " || time.Since(start) != 5*slowWait {
			t.Errorf("%q after %s", o.text, time.Since(start))
		}
	})
}

func TestStopsWhenNobodyListens(t *testing.T) {
	for range New().Stream(t.Context(), ask("say a b c\nslow 10000 x\nwait")) {
		break // the iterator would panic if it went on
	}
}

func TestFillTypes(t *testing.T) {
	odd := tool.Tool{Name: "shape", Origin: tool.MCP, Schema: wrapped(`{"type":"object","properties":{
		"color":{"enum":["red","green"]},"mode":{"type":"string","enum":["slow","fast"]},"deep":{"type":"object","properties":{"list":{"type":"array","items":{"type":"string"}}},"required":["list"]},
		"ids":{"type":"array","items":{"type":"integer"},"minItems":2},"on":{"type":"boolean"},"verbose":{"type":"boolean"},"kind":{"const":7},"nothing":{"type":"null"},
		"maybe":{"type":["null","number"]},"any":true},
		"required":["color","mode","deep","ids","on","verbose","kind","nothing","maybe","any","missing"]}`)}
	r := ask(`shape in green, verbose, "a" "b" 4 5`)
	r.Tools = []tool.Tool{odd}
	want := `shape {` + because + `,"arguments":{"any":"green, verbose, 4 5","color":"green","deep":{"list":["a","b"]},"ids":[4,5],"kind":7,"maybe":1,"missing":"green, verbose, 4 5","mode":"slow","nothing":null,"on":false,"verbose":true}}`
	if o := next(t.Context(), r); len(o.calls) != 1 || o.calls[0] != want {
		t.Errorf("got  %q\nwant %q", o.calls, want)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("call echo {\"a\":1}", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"array"},"minItems":999999}},"required":["a"]}`)
	f.Add("echo \"x", `{"required":["a","a"],"properties":{"a":{"$ref":"#"}}}`)
	f.Add("parallel 9999999999999 x", `[]`)
	f.Add("echo =a b= 'c", `{"type":7}`)
	f.Fuzz(func(t *testing.T, prompt, schema string) {
		if !jsontext.Value(schema).IsValid() {
			schema = `{}`
		}
		if words := strings.Fields(prompt); len(words) > 0 && (words[0] == "wait" || words[0] == "slow") || strings.Contains(prompt, "slow") || strings.Contains(prompt, "wait") {
			return
		}
		for _, origin := range []tool.Origin{tool.MCP, tool.Builtin, tool.Client} {
			r := ask(prompt)
			r.Tools = []tool.Tool{{Name: "echo", Origin: origin, Schema: jsontext.Value(schema)}}
			for e, err := range New().Stream(t.Context(), r) {
				if err == nil && e.Kind == provider.BlockDone && e.Block.Kind == provider.ToolCall && !e.Block.Input.IsValid() {
					t.Fatalf("input %q", e.Block.Input)
				}
			}
		}
	})
}
