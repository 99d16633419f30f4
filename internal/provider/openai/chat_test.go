package openai

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

var chatAnswer = []string{
	`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
	`{"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}`,
	`{"choices":[{"index":0,"delta":{"content":"Hello "},"finish_reason":null}],"usage":null,"error":null}`,
	`{"choices":[{"index":0,"delta":{"content":"w\u00f6rld","reasoning_content":null}}]}`,
	`{"choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"files__read","arguments":""}}]}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"intent\":\"x\",\"argu"}}]}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ments\":{}}"}}]}}]}`,
	`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
	`{"choices":[],"usage":{"prompt_tokens":210,"completion_tokens":25,"total_tokens":235,"prompt_tokens_details":{"cached_tokens":200}}}`,
	`[DONE]`,
}

var chatLines = []string{
	"thinking hm", "text Hello ", "text wörld", "block thinking hm", "block text Hello wörld",
	`block tool_call call_1 files__read {"intent":"x","arguments":{}}`,
	"done tool_use {Input:10 CacheRead:200 CacheWrite:0 Output:25 Cost:0}",
}

func TestChatStream(t *testing.T) { // R-G1
	s := serve(t, nameless(chatAnswer...))
	lines, blocks, err := collect(t.Context(), s.chat(), hello())
	if err != nil {
		t.Fatal(err)
	}
	same(t, lines, chatLines)
	if b := blocks[0]; string(b.Opaque) != `{"reasoning_content":"hm"}` || b.Origin != "local" {
		t.Errorf("kept reasoning %+v", b)
	}
	if r := s.requests[0]; r.URL.Path != "/v1/chat/completions" || s.chat().Name() != "local" {
		t.Errorf("path %s", r.URL)
	}
}

const chatRequestBody = `{
	"model":"gpt-x","stream":true,"stream_options":{"include_usage":true},"max_tokens":99,
	"tools":[
		{"type":"function","function":{"name":"a","description":"A","parameters":{"type":"object","properties":{"z":{"maximum":12345678901234567890},"b":{}}}}},
		{"type":"function","function":{"name":"b","parameters":{"type":"object","properties":{}}}}],
	"messages":[
		{"role":"system","content":"be good"},
		{"role":"user","content":[{"type":"text","text":"first"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]},
		{"role":"assistant","content":"ok","reasoning_content":"t","tool_calls":[
			{"id":"call_1","type":"function","function":{"name":"a","arguments":"{\"z\":1}"}},
			{"id":"functions_b_0_ID","type":"function","function":{"name":"b","arguments":"{\"invalid_input\":\"{\\\"x\\\":\"}"}}]},
		{"role":"tool","content":"one\n[image image/png]","tool_call_id":"call_1"},
		{"role":"tool","content":"The call failed: (no output)","tool_call_id":"functions_b_0_ID"},
		{"role":"user","content":[{"type":"text","text":"Image from the result of call call_1:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]},
		{"role":"user","content":"[image image/svg+xml, 2 bytes, not shown to the model]"}]}`

func TestChatRequest(t *testing.T) {
	s := serve(t, nameless(chatAnswer...))
	r := conversation("local", `{"reasoning_content":"t"}`)
	for range 2 {
		if _, _, err := collect(t.Context(), s.chat(), r); err != nil {
			t.Fatal(err)
		}
	}
	sameJSON(t, s.bodies[0], strings.ReplaceAll(chatRequestBody, "functions_b_0_ID", provider.CallID("functions.b:0")))
	if s.bodies[0] != s.bodies[1] {
		t.Error("the same request was written in two ways")
	}
	// Reasoning of an earlier turn stays at home.
	r.Messages = append(r.Messages, provider.Message{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: "next"}}})
	if _, _, err := collect(t.Context(), s.chat(), r); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.bodies[2], "reasoning") {
		t.Errorf("got %s", s.bodies[2])
	}
}

// The differences between servers that imitate the API.
func TestChatDialects(t *testing.T) {
	end := `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	const none = "{Input:0 CacheRead:0 CacheWrite:0 Output:0 Cost:0}"
	for _, c := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"arguments as an object, no index, no id, finish stop", []string{
			`{"choices":[{"delta":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"n","arguments":{"a":1}}}]}}]}`, end, `[DONE]`},
			[]string{`block tool_call call_1_0 n {"a":1}`, "done tool_use " + none}},
		{"every call at index 0", []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"n","arguments":"{\"a\":1}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"y","function":{"name":"n","arguments":"{\"a\""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":2}"}}]}}]}`, end, `[DONE]`},
			[]string{`block tool_call x n {"a":1}`, `block tool_call y n {"a":2}`, "done tool_use " + none}},
		{"id repeated in every piece", []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"n","arguments":"{\"a\""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"arguments":":2}"}}]}}]}`, end, `[DONE]`},
			[]string{`block tool_call x n {"a":2}`, "done tool_use " + none}},
		{"interleaved calls", []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"n","arguments":"{"}},{"index":1,"id":"y","function":{"name":"m","arguments":"{"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"}"}}]}}]}`, end, `[DONE]`},
			[]string{`block tool_call x n {}`, `block tool_call y m {}`, "done tool_use " + none}},
		{"content in parts", []string{`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, end, `[DONE]`},
			[]string{"text ab", "block text ab", "done end_turn " + none}},
		{"reasoning in the other field", []string{`{"choices":[{"delta":{"reasoning":"r","content":""}}]}`, `{"choices":[{"delta":{"content":"a"}}]}`, end, `[DONE]`},
			[]string{"thinking r", "text a", "block thinking r", "block text a", "done end_turn " + none}},
		{"no end mark", []string{`{"choices":[{"delta":{"content":"a"}}]}`, end}, []string{"text a", "block text a", "done end_turn " + none}},
		{"no reason to finish", []string{`{"choices":[{"delta":{"content":"a"}}]}`, `[DONE]`}, []string{"text a", "block text a", "done end_turn " + none}},
		{"usage beside the last choice, as floats", []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":"length"}],"usage":{"prompt_tokens":3.0,"completion_tokens":1}}`, `[DONE]`},
			[]string{"text a", "block text a", "done max_tokens {Input:3 CacheRead:0 CacheWrite:0 Output:1 Cost:0}"}},
		{"what it cost", []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"cost":0.00125}}`, `[DONE]`},
			[]string{"text a", "block text a", "done end_turn {Input:3 CacheRead:0 CacheWrite:0 Output:1 Cost:0.00125}"}},
		{"a price that is nonsense", []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"cost":{"total":"NaN"}}}`, `[DONE]`},
			[]string{"text a", "block text a", "done end_turn {Input:3 CacheRead:0 CacheWrite:0 Output:1 Cost:0}"}},
		{"refusal", []string{`{"choices":[{"delta":{"refusal":"No."},"finish_reason":"stop"}]}`, `[DONE]`}, []string{"text No.", "block text No.", "done refusal " + none}},
		{"half a surrogate pair", []string{`{"choices":[{"delta":{"content":"a\ud83d"},"finish_reason":"stop"}]}`, `[DONE]`}, []string{"text a\uFFFD", "block text a\uFFFD", "done end_turn " + none}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, _, err := collect(t.Context(), serve(t, nameless(c.events...)).chat(), hello())
			if err != nil {
				t.Fatal(err)
			}
			same(t, lines, c.want)
		})
	}
}

func TestChatWithoutUsage(t *testing.T) {
	s := serve(t, status(422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"stream_options: Extra inputs are not permitted"}]}`), nameless(chatAnswer...))
	p := s.chat()
	for range 2 {
		if _, _, err := collect(t.Context(), p, hello()); err != nil {
			t.Fatal(err)
		}
	}
	if s.count() != 3 || strings.Contains(s.bodies[1]+s.bodies[2], "stream_options") {
		t.Errorf("%d requests: %s", s.count(), s.bodies)
	}
}

func TestChatErrorInStream(t *testing.T) {
	s := serve(t, nameless(chatAnswer[2], `{"id":"x","error":{"code":502,"message":"Provider disconnected"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`), nameless(chatAnswer...))
	lines, _, err := collect(t.Context(), s.chat(), hello())
	if err != nil || len(lines) < 2 || !strings.Contains(lines[1], "the service failed (502): Provider disconnected; trying again") {
		t.Errorf("%v, %v", lines, err)
	}
	s = serve(t, nameless(`{"error":{"code":400,"message":"context length exceeded"}}`))
	if _, _, err := collect(t.Context(), s.chat(), hello()); !errors.Is(err, provider.ErrContextOverflow) {
		t.Errorf("%v", err)
	}
}

func TestChatConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String() + "/v1"
	_ = l.Close()
	_, _, err = collect(t.Context(), NewChat(Options{Name: "ollama", BaseURL: address, HTTP: &http.Transport{}}), hello())
	failed, _ := errors.AsType[*provider.Error](err)
	if failed == nil || failed.Error() != `provider "ollama": cannot connect to `+address+`: connection refused` ||
		failed.Hint != "start the service, or set the base URL of provider ollama in the settings to the right address" {
		t.Errorf("%+v", failed)
	}
	_, _, err = collect(t.Context(), NewChat(Options{Name: "x", BaseURL: "localhost:1234"}), hello())
	if err == nil || !strings.Contains(err.Error(), "not an http or https address") {
		t.Errorf("%v", err)
	}
}

func TestChatAddressWithPath(t *testing.T) {
	s := serve(t, nameless(chatAnswer...))
	p := NewChat(Options{Name: "n", BaseURL: s.url + "/api/v1/chat/completions/", HTTP: s.tr})
	if _, _, err := collect(t.Context(), p, hello()); err != nil || s.requests[0].URL.Path != "/api/v1/chat/completions" {
		t.Errorf("%v %s", err, s.requests[0].URL)
	}
}

func TestChatAudioResult(t *testing.T) {
	got := resultText(provider.Block{Content: []tool.Content{{Kind: tool.Link, Text: "[link]"}, {Kind: tool.Text, Text: "x"}}})
	if got != "[link]\nx" {
		t.Errorf("got %q", got)
	}
}

func FuzzChat(f *testing.F) {
	for i, e := range chatAnswer {
		f.Add([]byte(e), []byte(chatAnswer[(i+1)%len(chatAnswer)]))
	}
	f.Add([]byte(`{"choices":[{"delta":{"tool_calls":[{"index":-5,"function":{"name":"n","arguments":[1]}}]}}]}`), []byte(`{"error":"x"}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		done := 0
		c := chatCollector{emit: func(e provider.Event) bool {
			if e.Kind == provider.BlockDone && e.Block.Kind == provider.ToolCall && (!e.Block.Input.IsValid() || e.Block.CallID == "") {
				t.Fatalf("call %q input %q", e.Block.CallID, e.Block.Input)
			}
			if e.Kind == provider.Done {
				done++
			}
			return true
		}}
		for _, data := range [][]byte{one, two, one} {
			if c.take(data) != nil {
				return
			}
		}
		if err := c.end(true); err == nil && done != 1 {
			t.Fatalf("%d last events", done)
		}
	})
}
