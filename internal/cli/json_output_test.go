package cli

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestHarmlessJSON: what acts on a terminal or cannot be seen is escaped, and every value is what it was (S27).
func TestHarmlessJSON(t *testing.T) {
	for _, text := range []string{"plain", "ünï 😀 ❤️", "\x1b[2J\x00\x7f\u0085", "\u202e\u200b\ufeff", "tag \U000e0041 <b>&", "line\u2028break", "back\\slash \\u202e \"x\"", "bad \xff\xfe", "\ufffd"} {
		var out bytes.Buffer
		if err := newEncoder(&out).Encode(map[string]string{text: text}); err != nil {
			t.Fatal(err)
		}
		if odd := hidden(out.String()); odd != "" {
			t.Errorf("%+q is written as %+q", text, out.String())
		}
		var plain bytes.Buffer
		if err := json.NewEncoder(&plain).Encode(map[string]string{text: text}); err != nil {
			t.Fatal(err)
		}
		var got, want map[string]string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Errorf("%+q: %v", out.String(), err)
		}
		if err := json.Unmarshal(plain.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		for k, v := range want {
			if got[k] != v || len(got) != 1 {
				t.Errorf("%+q became %+q", want, got)
			}
		}
	}
}
