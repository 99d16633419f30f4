//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

type object = map[string]any

// scriptedModel speaks three provider wires on loopback: it calls the named tool once, with the given arguments, and answers
// with what the tool's result said. It returns the base address.
func scriptedModel(t *testing.T, tool string, arguments object) string {
	t.Helper()
	input, err := json.Marshal(object{"intent": "see what the file says", "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(body), `"`+tool+`"`) {
			http.Error(w, `{"error":{"message":"the tool is not offered"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		answer := ""
		if result, ok := toolResult(body); ok {
			answer = "The file says: " + result
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/messages"):
			anthropicAnswer(w, tool, string(input), answer)
		case strings.HasSuffix(r.URL.Path, "/responses"):
			responsesAnswer(w, tool, string(input), answer)
		case strings.HasSuffix(r.URL.Path, "/chat/completions"):
			chatAnswer(w, tool, string(input), answer)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// toolResult finds the text of a tool result in a request of any of the three wires.
func toolResult(body []byte) (string, bool) {
	var q struct {
		Messages []struct {
			Role    string
			Content any
		}
		Input any
	}
	if json.Unmarshal(body, &q) != nil {
		return "", false
	}
	for _, m := range q.Messages {
		if m.Role == "tool" {
			return fmt.Sprint(m.Content), true
		}
		parts, _ := m.Content.([]any)
		for _, p := range parts {
			if o, _ := p.(object); o["type"] == "tool_result" {
				return fmt.Sprint(o["content"]), true
			}
		}
	}
	items, _ := q.Input.([]any)
	for _, i := range items {
		if o, _ := i.(object); o["type"] == "function_call_output" {
			return fmt.Sprint(o["output"]), true
		}
	}
	return "", false
}

func event(w io.Writer, name string, v any) {
	b, _ := json.Marshal(v) // maps of plain values always encode
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", b)
}

func anthropicAnswer(w io.Writer, tool, input, answer string) {
	stop, block, delta := "tool_use", object{"type": "tool_use", "id": "toolu_1", "name": tool, "input": object{}}, object{"type": "input_json_delta", "partial_json": input}
	if answer != "" {
		stop, block, delta = "end_turn", object{"type": "text", "text": ""}, object{"type": "text_delta", "text": answer}
	}
	event(w, "message_start", object{"type": "message_start", "message": object{"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []any{}, "usage": object{"input_tokens": 1, "output_tokens": 1}}})
	event(w, "content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	event(w, "content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	event(w, "content_block_stop", object{"type": "content_block_stop", "index": 0})
	event(w, "message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop}, "usage": object{"output_tokens": 5}})
	event(w, "message_stop", object{"type": "message_stop"})
}

func responsesAnswer(w io.Writer, tool, input, answer string) {
	item := object{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool, "arguments": input, "status": "completed"}
	if answer != "" {
		item = object{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": answer, "annotations": []any{}}}}
	}
	event(w, "response.created", object{"type": "response.created", "response": object{"id": "r1", "status": "in_progress"}})
	event(w, "response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": item})
	if answer != "" {
		event(w, "response.output_text.delta", object{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m1", "delta": answer})
	}
	event(w, "response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	event(w, "response.completed", object{"type": "response.completed", "response": object{"id": "r1", "status": "completed", "output": []any{item}, "usage": object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}})
}

func chatAnswer(w io.Writer, tool, input, answer string) {
	chunk := func(delta object, finish any) {
		event(w, "", object{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	if answer != "" {
		chunk(object{"role": "assistant", "content": answer}, nil)
		chunk(object{}, "stop")
	} else {
		chunk(object{"role": "assistant", "tool_calls": []any{object{"index": 0, "id": "call_1", "type": "function", "function": object{"name": tool, "arguments": input}}}}, nil)
		chunk(object{}, "tool_calls")
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// patchFile merges top-level members into a JSON file.
func patchFile(path, members string) error {
	all := object{}
	if b, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(b, &all); err != nil {
			return err
		}
	}
	if err := json.Unmarshal([]byte(members), &all); err != nil {
		return err
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
