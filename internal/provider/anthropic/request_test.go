package anthropic

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

const fullRequest = `{
	"model":"claude-x","max_tokens":32000,"stream":true,
	"system":[{"type":"text","text":"be good","cache_control":{"type":"ephemeral"}}],
	"tools":[
		{"name":"a","description":"A","input_schema":{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"b":{}}}},
		{"name":"b","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],
	"messages":[
		{"role":"user","content":[{"type":"text","text":"first"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQI="}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"ok "},
			{"type":"tool_use","id":"call_1","name":"a","input":{"z":1}},
			{"type":"tool_use","id":"functions_b_0_ID","name":"b","input":{"invalid_input":"{\"x\":"}}]},
		{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQI="}}]},
			{"type":"tool_result","tool_use_id":"functions_b_0_ID","content":[{"type":"text","text":"(no output)"}],"is_error":true},
			{"type":"text","text":"and more","cache_control":{"type":"ephemeral"}}]},
		{"role":"user","content":[{"type":"text","text":"[image image/svg+xml, 2 bytes, not shown to the model]","cache_control":{"type":"ephemeral"}}]},
		{"role":"assistant","content":[{"type":"text","text":"I will"}]}
	]}`

func conversation() provider.Request {
	png := []byte{1, 2}
	return provider.Request{
		Model: "claude-x", System: "be good",
		Tools: []tool.Tool{{Name: "a", Description: "A", Schema: jsontext.Value(`{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"b":{}}}`)}, {Name: "b"}},
		Messages: []provider.Message{
			{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: "first"}, {Kind: provider.Text, Text: " \n"}, {Kind: provider.Image, MIME: "image/png", Data: png}}},
			{Role: provider.Assistant, Blocks: []provider.Block{
				{Kind: provider.Thinking, Text: "t", Origin: Name, Opaque: jsontext.Value(`{"type":"thinking","thinking":"t","signature":"s"}`)},
				{Kind: provider.Thinking, Text: "of another service", Origin: "openai", Opaque: jsontext.Value(`{"type":"reasoning"}`)},
				{Kind: provider.Thinking, Text: "unsigned", Origin: Name},
				{Kind: provider.Text, Text: "ok "},
				{Kind: provider.ToolCall, CallID: "call_1", Name: "a", Input: jsontext.Value(`{"z":1}`)},
				{Kind: provider.ToolCall, CallID: "functions.b:0", Name: "b", Input: provider.Input(`{"x":`)}}},
			{Role: provider.User, Blocks: []provider.Block{
				{Kind: provider.Text, Text: "and more"},
				{Kind: provider.ToolResult, CallID: "call_1", Content: []tool.Content{{Kind: tool.Text, Text: "one"}, {Kind: tool.Image, MIME: "image/png", Data: png}}},
				{Kind: provider.ToolResult, CallID: "functions.b:0", IsError: true, Content: []tool.Content{{Kind: tool.Text}}}}},
			{Role: provider.Assistant, Blocks: []provider.Block{{Kind: provider.Text, Text: ""}}},
			{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Image, MIME: "image/svg+xml", Data: png}}},
			{Role: provider.Assistant, Blocks: []provider.Block{{Kind: provider.Text, Text: "I will \n"}}},
		}}
}

// canonical is an object without white space, its own members in order.
func canonical(t *testing.T, s string) string {
	t.Helper()
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(s), &members); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	b, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What services refuse is repaired, cache marks stand on copies, schemas arrive to the digit.
func TestRequest(t *testing.T) {
	s, p := serve(t, sse(answer...))
	r := conversation()
	before := fmt.Sprintf("%+v", r)
	for range 2 {
		if _, _, err := collect(t.Context(), p, r); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.ReplaceAll(canonical(t, fullRequest), "functions_b_0_ID", provider.CallID("functions.b:0"))
	if got := canonical(t, string(s.bodies[0])); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !bytes.Equal(s.bodies[0], s.bodies[1]) {
		t.Error("the same request was written in two ways, which loses the cache")
	}
	if fmt.Sprintf("%+v", r) != before {
		t.Error("the request was changed")
	}
}

func TestBrokenTextStillGoes(t *testing.T) { // B6
	s, p := serve(t, sse(answer...))
	r := hello()
	r.Messages[0].Blocks[0].Text = "a\xffb\x00c"
	if _, _, err := collect(t.Context(), p, r); err != nil {
		t.Fatal(err)
	}
	if got := string(s.bodies[0]); !strings.Contains(got, `"a`+"\uFFFD"+`b\u0000c"`) {
		t.Errorf("got %s", got)
	}
}

// What the service made goes back to it in the next request, unchanged.
func TestThoughtsGoBack(t *testing.T) {
	s, p := serve(t, sse(answer...))
	r := hello()
	_, blocks, err := collect(t.Context(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	r.Messages = append(r.Messages, provider.Message{Role: provider.Assistant, Blocks: blocks},
		provider.Message{Role: provider.User, Blocks: []provider.Block{{Kind: provider.ToolResult, CallID: "toolu_1", Content: []tool.Content{{Kind: tool.Text, Text: "x"}}}}})
	if _, _, err := collect(t.Context(), p, r); err != nil {
		t.Fatal(err)
	}
	want := `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"ZGF0YQ"},{"type":"text","text":"Hello wörld"},{"type":"tool_use","id":"toolu_1","name":"files__read","input":{"intent":"x","arguments":{}}}]}`
	if got := string(s.bodies[1]); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

func BenchmarkRequest(b *testing.B) { // 200 messages, 200 tools
	r := provider.Request{Model: "m", System: strings.Repeat("s", 4000)}
	for i := range 200 {
		r.Tools = append(r.Tools, tool.Tool{Name: fmt.Sprint("server__tool", i), Description: strings.Repeat("d", 200),
			Schema: jsontext.Value(`{"type":"object","properties":{"intent":{"type":"string"},"arguments":{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"]}},"required":["intent","arguments"],"additionalProperties":false}`)})
		role := []provider.Role{provider.User, provider.Assistant}[i%2]
		r.Messages = append(r.Messages, provider.Message{Role: role, Blocks: []provider.Block{{Kind: provider.Text, Text: strings.Repeat("hello\n", 100)}}})
	}
	b.ReportAllocs()
	for b.Loop() {
		body, err := encode(r, &provider.EncodedTools{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}
