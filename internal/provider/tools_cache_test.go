package provider

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/tool"
)

// TestEncodedTools: a list is encoded once for each cache key, never kept without one, and the number kept is bounded.
func TestEncodedTools(t *testing.T) {
	var e EncodedTools
	made := 0
	get := func(key string, tools ...tool.Tool) string {
		raw, err := e.Get(Request{CacheKey: key, Tools: tools}, func() (jsontext.Value, error) {
			made++
			return jsontext.Value(`["` + key + `"]`), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for range 3 {
		if got := get("a"); got != `["a"]` {
			t.Error(got)
		}
	}
	if get("a", tool.Tool{}); made != 2 {
		t.Errorf("made %d times", made)
	}
	get("")
	get("")
	if made != 4 {
		t.Errorf("made %d times", made)
	}
	for _, k := range "bcdefghijklmnop" {
		get(string(k))
	}
	if len(e.kept) > maxEncodedTools {
		t.Errorf("%d kept", len(e.kept))
	}
	failed := errors.New("x")
	if _, err := e.Get(Request{CacheKey: "z"}, func() (jsontext.Value, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}

func TestWithTools(t *testing.T) {
	if got := string(WithTools([]byte(`{"a":1}`), jsontext.Value(`[2]`))); got != `{"tools":[2],"a":1}` {
		t.Error(got)
	}
	if got := string(WithTools([]byte(`{"a":1}`), nil)); got != `{"a":1}` {
		t.Error(got)
	}
}
