package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

type object = map[string]any

// wireCall is one tool call of a scripted service.
type wireCall struct{ tool, input string }

// service is a model on loopback that speaks the three wires. It makes one call and answers with what the call gave.
type service struct {
	url  string
	mu   sync.Mutex
	seen []object // the requests, as they came
}

// requests are the requests so far.
func (s *service) requests() []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]object(nil), s.seen...)
}

func startService(t *testing.T, c wireCall) *service {
	t.Helper()
	s := &service{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q object
		if err := json.NewDecoder(io.LimitReader(r.Body, 16<<20)).Decode(&q); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, q)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		answer := ""
		if result, ok := wireResult(q); ok {
			answer = "The script says: " + result
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/messages"):
			anthropicWire(w, c, answer)
		case strings.HasSuffix(r.URL.Path, "/responses"):
			responsesWire(w, c, answer)
		case strings.HasSuffix(r.URL.Path, "/chat/completions"):
			chatWire(w, c, answer)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// wireResult finds the text of the tool result in a request of any of the three wires.
func wireResult(q object) (string, bool) {
	messages, _ := q["messages"].([]any)
	for _, m := range messages {
		m, _ := m.(object)
		if m["role"] == "tool" {
			return wireText(m["content"]), true
		}
		parts, _ := m["content"].([]any)
		for _, p := range parts {
			if o, _ := p.(object); o["type"] == "tool_result" {
				return wireText(o["content"]), true
			}
		}
	}
	items, _ := q["input"].([]any)
	for _, i := range items {
		if o, _ := i.(object); o["type"] == "function_call_output" {
			return wireText(o["output"]), true
		}
	}
	return "", false
}

// wireText is a text, or the texts of parts.
func wireText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	parts, _ := v.([]any)
	text := ""
	for _, p := range parts {
		o, _ := p.(object)
		s, _ := o["text"].(string)
		text += s
	}
	return text
}

// wireTools are the descriptions of the advertised tools by name.
func wireTools(q object) map[string]string {
	out := map[string]string{}
	list, _ := q["tools"].([]any)
	for _, one := range list {
		o, _ := one.(object)
		if f, ok := o["function"].(object); ok {
			o = f
		}
		name, _ := o["name"].(string)
		out[name], _ = o["description"].(string)
	}
	return out
}

func sse(w io.Writer, name string, v any) {
	b, _ := json.Marshal(v) // maps of plain values always encode
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", b)
}

func anthropicWire(w io.Writer, c wireCall, answer string) {
	stop, block, delta := "tool_use", object{"type": "tool_use", "id": "toolu_1", "name": c.tool, "input": object{}}, object{"type": "input_json_delta", "partial_json": c.input}
	if answer != "" {
		stop, block, delta = "end_turn", object{"type": "text", "text": ""}, object{"type": "text_delta", "text": answer}
	}
	sse(w, "message_start", object{"type": "message_start", "message": object{"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []any{}, "usage": object{"input_tokens": 1, "output_tokens": 1}}})
	sse(w, "content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	sse(w, "content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	sse(w, "content_block_stop", object{"type": "content_block_stop", "index": 0})
	sse(w, "message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop}, "usage": object{"output_tokens": 5}})
	sse(w, "message_stop", object{"type": "message_stop"})
}

func responsesWire(w io.Writer, c wireCall, answer string) {
	item := object{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": c.tool, "arguments": c.input, "status": "completed"}
	if answer != "" {
		item = object{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": answer, "annotations": []any{}}}}
	}
	sse(w, "response.created", object{"type": "response.created", "response": object{"id": "r1", "status": "in_progress"}})
	sse(w, "response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": item})
	if answer != "" {
		sse(w, "response.output_text.delta", object{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m1", "delta": answer})
	}
	sse(w, "response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	sse(w, "response.completed", object{"type": "response.completed", "response": object{"id": "r1", "status": "completed", "output": []any{item}, "usage": object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}})
}

func chatWire(w io.Writer, c wireCall, answer string) {
	chunk := func(delta object, finish any) {
		sse(w, "", object{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	if answer != "" {
		chunk(object{"role": "assistant", "content": answer}, nil)
		chunk(object{}, "stop")
	} else {
		chunk(object{"role": "assistant", "tool_calls": []any{object{"index": 0, "id": "call_1", "type": "function", "function": object{"name": c.tool, "arguments": c.input}}}}, nil)
		chunk(object{}, "tool_calls")
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
