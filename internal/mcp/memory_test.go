package mcp

import (
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// allocated is how many bytes f allocates in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// S13, X4: large messages made of the smallest things there are cost no more than a small multiple of their size, beside a
// fixed sum for the parts that are kept.
func TestMemoryOfHostileMessages(t *testing.T) {
	const size, slack = 2 << 20, 10 << 20
	many := func(open, item, end string) jsontext.Value {
		return jsontext.Value(open + strings.Repeat(item+",", size/(len(item)+1)) + item + end)
	}
	for name, in := range map[string]jsontext.Value{
		"empty parts":       many(`{"content":[`, `{}`, `]}`),
		"members of a part": many(`{"content":[{`, `"a":0`, `}]}`),
		"structured":        many(`{"structuredContent":[`, `0`, `]}`),
	} {
		if n := allocated(func() { readResult(in) }); n > 3*size+slack {
			t.Errorf("result of %s: %d MiB for %d MiB", name, n>>20, size>>20)
		}
	}
	for name, in := range map[string]jsontext.Value{
		"empty tools":       many(`{"tools":[`, `{}`, `]}`),
		"members":           many(`{"tools":null,`, `"":0`, `}`),
		"members of a tool": many(`{"tools":[{`, `"a":0`, `}]}`),
	} {
		n := allocated(func() {
			raw, extra, _, err := readPage(in, nil, 0)
			if err == nil {
				_, err = testServer("s").catalogue(raw, extra)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if n > 3*size+slack {
			t.Errorf("listing of %s: %d MiB for %d MiB", name, n>>20, size>>20)
		}
	}
}
