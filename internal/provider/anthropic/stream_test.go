package anthropic

import (
	"testing"

	"magi-code/internal/provider"
)

func TestOddAnswers(t *testing.T) {
	start, stop := answer[0], `{"type":"message_stop"}`
	ended := func(reason string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":2}}`
	}
	for _, c := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"invalid input", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\": nope"}}`, `{"type":"content_block_stop","index":0}`, ended("tool_use"), stop},
			[]string{`block tool_call t n "{\"a\": nope"`, "done tool_use {Input:10 CacheRead:200 CacheWrite:30 Output:2 Cost:0}"}},
		{"no input", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n"}}`, `{"type":"content_block_stop","index":0}`, ended("end_turn"), stop},
			[]string{`block tool_call t n {}`, "done tool_use {Input:10 CacheRead:200 CacheWrite:30 Output:2 Cost:0}"}},
		{"input at once", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{"a":1}}}`, ended("tool_use"), stop},
			[]string{`block tool_call t n {"a":1}`, "done tool_use {Input:10 CacheRead:200 CacheWrite:30 Output:2 Cost:0}"}},
		{"empty text", []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_stop","index":0}`, ended("end_turn"), stop},
			[]string{"done end_turn {Input:10 CacheRead:200 CacheWrite:30 Output:2 Cost:0}"}},
		{"refusal", []string{start, ended("refusal"), stop}, []string{"done refusal {Input:10 CacheRead:200 CacheWrite:30 Output:2 Cost:0}"}},
		{"limit", []string{start, ended("max_tokens"), stop}, []string{"done max_tokens {Input:10 CacheRead:200 CacheWrite:30 Output:2 Cost:0}"}},
		{"no message_stop", []string{start, ended("end_turn")}, []string{"done end_turn {Input:10 CacheRead:200 CacheWrite:30 Output:2 Cost:0}"}},
		{"lone deltas and far indices", []string{start, `{"type":"content_block_delta","index":5,"delta":{"type":"text_delta","text":"x"}}`, `{"type":"content_block_stop","index":-1}`,
			`{"type":"content_block_start","index":9007199254740991,"content_block":{"type":"text","text":"far"}}`, ended("end_turn"), stop},
			[]string{"text far", "block text far", "done end_turn {Input:10 CacheRead:200 CacheWrite:30 Output:2 Cost:0}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, p := serve(t, sse(c.events...))
			lines, _, err := collect(t.Context(), p, hello())
			if err != nil {
				t.Fatal(err)
			}
			same(t, lines, c.want)
		})
	}
}

func FuzzStream(f *testing.F) {
	for _, e := range answer {
		f.Add([]byte(e), []byte(answer[len(answer)-2]))
	}
	f.Add([]byte(`{"type":"content_block_start","index":-9,"content_block":{"type":"tool_use"}}`), []byte(`{"type":"error","error":7}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		done := 0
		c := collector{emit: func(e provider.Event) bool {
			if e.Kind == provider.BlockDone && e.Block.Kind == provider.ToolCall && !e.Block.Input.IsValid() {
				t.Fatalf("input %q", e.Block.Input)
			}
			if e.Kind == provider.Done {
				done++
			}
			return done == 0
		}}
		for _, data := range [][]byte{one, two, one} {
			if ended, err := c.take(data); ended || err != nil {
				break
			}
		}
		if done > 1 {
			t.Fatal("more than one last event")
		}
	})
}

func BenchmarkAnswer(b *testing.B) { // one streamed answer with one call, over loopback
	_, p := serve(b, sse(answer...))
	r := hello()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := collect(b.Context(), p, r); err != nil {
			b.Fatal(err)
		}
	}
}
