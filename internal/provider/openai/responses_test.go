package openai

import (
	"errors"
	"strings"
	"testing"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

var responsesAnswer = []string{
	`{"type":"response.created","sequence_number":0,"response":{"id":"r","status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null,"tools":[]}}`,
	`{"type":"response.in_progress","sequence_number":1,"response":{"id":"r","status":"in_progress"}}`,
	`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
	`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"hm"}`,
	`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","status":null,"summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2Vj"}}`,
	`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"m1","role":"assistant","status":"in_progress","content":[]}}`,
	`{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
	`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Hello "}`,
	`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"w\u00f6rld"}`,
	`{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"Hello wörld"}`,
	`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"m1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"Hello wörld","annotations":[]}]}}`,
	`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"files__read","arguments":""}}`,
	`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"inte"}`,
	`{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"intent\":\"x\",\"arguments\":{}}"}`,
	`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"files__read","arguments":"{\"intent\":\"x\",\"arguments\":{}}","status":"completed"}}`,
	`{"type":"response.some_future_event","delta":{"x":1}}`,
	`{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"reasoning"},{"type":"message"},{"type":"function_call"}],"usage":{"input_tokens":240,"input_tokens_details":{"cached_tokens":200,"cache_write_tokens":30},"output_tokens":25,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":265}}}`,
}

var responsesLines = []string{
	"thinking hm", "block thinking hm", "text Hello ", "text wörld", "block text Hello wörld",
	`block tool_call call_1 files__read {"intent":"x","arguments":{}}`,
	"done tool_use {Input:10 CacheRead:200 CacheWrite:30 Output:25 Cost:0}",
}

func TestResponsesStream(t *testing.T) { // R-G1
	s := serve(t, named(responsesAnswer...))
	lines, blocks, err := collect(t.Context(), s.responses(), hello())
	if err != nil {
		t.Fatal(err)
	}
	same(t, lines, responsesLines)
	if got := string(blocks[0].Opaque); got != `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2Vj"}` {
		t.Errorf("kept reasoning %s", got)
	}
	if got := string(blocks[1].Opaque); got != `{"phase":"commentary"}` {
		t.Errorf("kept phase %s", got)
	}
	if r := s.requests[0]; r.URL.Path != "/v1/responses" {
		t.Errorf("path %s", r.URL)
	}
}

const responsesRequestBody = `{
	"model":"gpt-x","stream":true,"store":false,"instructions":"be good",
	"tools":[
		{"type":"function","name":"a","description":"A","parameters":{"type":"object","properties":{"z":{"maximum":12345678901234567890},"b":{}}},"strict":false},
		{"type":"function","name":"b","parameters":{"type":"object","properties":{}},"strict":false}],
	"input":[
		{"type":"message","role":"user","content":[{"type":"input_text","text":"first"},{"type":"input_image","image_url":"data:image/png;base64,AQI=","detail":"auto"}]},
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},
		{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"ok"}]},
		{"type":"function_call","call_id":"call_1","name":"a","arguments":"{\"z\":1}"},
		{"type":"function_call","call_id":"functions_b_0_ID","name":"b","arguments":"{\"invalid_input\":\"{\\\"x\\\":\"}"},
		{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"one\n[image image/png]"},{"type":"input_image","image_url":"data:image/png;base64,AQI=","detail":"auto"}]},
		{"type":"function_call_output","call_id":"functions_b_0_ID","output":"The call failed: (no output)"},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"[image image/svg+xml, 2 bytes, not shown to the model]"}]}],
	"include":["reasoning.encrypted_content"],"max_output_tokens":99,
	"prompt_cache_key":"HASH"}`

func TestResponsesRequest(t *testing.T) {
	s := serve(t, named(responsesAnswer...))
	r := conversation(Name, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`)
	for range 2 {
		if _, _, err := collect(t.Context(), s.responses(), r); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.ReplaceAll(responsesRequestBody, "functions_b_0_ID", provider.CallID("functions.b:0"))
	want = strings.Replace(want, "HASH", cacheKey(r.CacheKey), 1)
	sameJSON(t, s.bodies[0], want)
	if s.bodies[0] != s.bodies[1] || len(cacheKey(r.CacheKey)) > maxCacheKey {
		t.Error("the same request was written in two ways, or its cache key is too long")
	}
}

// A model that has no encrypted reasoning is asked without it, once and for all.
func TestResponsesWithoutReasoning(t *testing.T) {
	s := serve(t, status(400, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`), named(responsesAnswer...))
	p := s.responses()
	for range 2 {
		lines, _, err := collect(t.Context(), p, hello())
		if err != nil {
			t.Fatal(err)
		}
		same(t, lines, responsesLines)
	}
	if s.count() != 3 || strings.Contains(s.bodies[1]+s.bodies[2], "encrypted") {
		t.Errorf("%d requests: %s", s.count(), s.bodies)
	}
}

func TestResponsesOddAnswers(t *testing.T) {
	done := func(body string) string { return `{"type":"response.completed","response":` + body + `}` }
	for _, c := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"only the last event", []string{done(`{"output":[{"type":"message","content":[{"type":"output_text","text":"all"}]}],"usage":{"input_tokens":3,"output_tokens":1}}`)},
			[]string{"text all", "block text all", "done end_turn {Input:3 CacheRead:0 CacheWrite:0 Output:1 Cost:0}"}},
		{"no usage", []string{done(`{"output":[],"usage":null}`)}, []string{"done end_turn {Input:0 CacheRead:0 CacheWrite:0 Output:0 Cost:0}"}},
		{"invalid arguments, no call id", []string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_7","name":"n","arguments":"{\"a"}}`, done(`{}`)},
			[]string{`block tool_call fc_7 n "{\"a"`, "done tool_use {Input:0 CacheRead:0 CacheWrite:0 Output:0 Cost:0}"}},
		{"limit", []string{`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`},
			[]string{"done max_tokens {Input:0 CacheRead:0 CacheWrite:0 Output:0 Cost:0}"}},
		{"filter", []string{`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`},
			[]string{"done refusal {Input:0 CacheRead:0 CacheWrite:0 Output:0 Cost:0}"}},
		{"refusal", []string{`{"type":"response.refusal.delta","output_index":0,"delta":"No."}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"refusal","refusal":"No."}]}}`, done(`{}`)},
			[]string{"text No.", "block text No.", "done refusal {Input:0 CacheRead:0 CacheWrite:0 Output:0 Cost:0}"}},
		{"reasoning that cannot go back", []string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"web_search_call"}}`, done(`{}`)},
			[]string{"done end_turn {Input:0 CacheRead:0 CacheWrite:0 Output:0 Cost:0}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, _, err := collect(t.Context(), serve(t, named(c.events...)).responses(), hello())
			if err != nil {
				t.Fatal(err)
			}
			same(t, lines, c.want)
		})
	}
}

func TestResponsesFailuresInStream(t *testing.T) {
	overflow := `{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window"}}}`
	_, _, err := collect(t.Context(), serve(t, named(overflow)).responses(), hello())
	if !errors.Is(err, provider.ErrContextOverflow) {
		t.Errorf("%v", err)
	}
	for name, event := range map[string]string{
		"failed":    `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oops"}}}`,
		"no reason": `{"type":"response.failed","response":{"status":"failed","error":null}}`,
		"limit":     `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}`,
		"error":     `{"type":"error","code":"server_error","message":"oops","param":null,"sequence_number":1}`,
		"nested":    `{"type":"error","error":{"type":"server_error","code":"server_error","message":"oops"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, named(event), named(responsesAnswer...))
			lines, _, err := collect(t.Context(), s.responses(), hello())
			if err != nil || s.count() != 2 || !strings.HasPrefix(lines[0], "retry ") {
				t.Errorf("%d requests, %v, %v", s.count(), lines, err)
			}
		})
	}
}

func TestResponsesNoKey(t *testing.T) {
	_, _, err := collect(t.Context(), NewResponses(Options{}), hello())
	failed, _ := errors.AsType[*provider.Error](err)
	if failed == nil || !strings.Contains(failed.Hint, "set OPENAI_API_KEY") {
		t.Errorf("%v", err)
	}
}

func TestResponsesReasoningGoesBack(t *testing.T) {
	s := serve(t, named(responsesAnswer...))
	r := hello()
	_, blocks, err := collect(t.Context(), s.responses(), r)
	if err != nil {
		t.Fatal(err)
	}
	r.Messages = append(r.Messages, provider.Message{Role: provider.Assistant, Blocks: blocks},
		provider.Message{Role: provider.User, Blocks: []provider.Block{{Kind: provider.ToolResult, CallID: "call_1", Content: []tool.Content{{Kind: tool.Text, Text: "x"}}}}})
	if _, _, err := collect(t.Context(), s.responses(), r); err != nil {
		t.Fatal(err)
	}
	want := `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2Vj"},{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Hello wörld"}]},{"type":"function_call","call_id":"call_1"`
	if !strings.Contains(s.bodies[1], want) {
		t.Errorf("got %s", s.bodies[1])
	}
}

func FuzzResponses(f *testing.F) {
	for _, e := range responsesAnswer {
		f.Add([]byte(e), []byte(responsesAnswer[len(responsesAnswer)-1]))
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		done := 0
		c := collector{emit: func(e provider.Event) bool {
			if e.Kind == provider.BlockDone && e.Block.Kind == provider.ToolCall && !e.Block.Input.IsValid() {
				t.Fatalf("input %q", e.Block.Input)
			}
			if e.Kind == provider.Done {
				done++
			}
			return true
		}}
		for _, data := range [][]byte{one, two} {
			if ended, err := c.take(data); ended || err != nil {
				break
			}
		}
		if done > 1 {
			t.Fatal("more than one last event")
		}
	})
}
