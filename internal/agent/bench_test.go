package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/secret"
	"magi-code/internal/tool"
)

// largeCatalog is fifty servers with forty tools each, of the size that is found in the wild.
func largeCatalog(b *testing.B) tool.Set {
	b.Helper()
	schema := jsontext.Value(`{"type":"object","properties":{"intent":{"type":"string"},"arguments":{"type":"object","properties":{` +
		strings.Repeat(`"field":{"type":"string","description":"what it is"},`, 20) + `"last":{"type":"string"}}}}}`)
	var tools []tool.Tool
	for s := range 50 {
		for i := range 40 {
			one := server(fmt.Sprintf("server%02d", s), fmt.Sprintf("tool_%02d", i), echo)
			one.Description, one.Schema = strings.Repeat("A sentence about it. ", 10), schema
			tools = append(tools, one)
		}
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		b.Fatal(err)
	}
	return set
}

// BenchmarkCatalog makes the kit of a run out of 2,000 tools, digest included: at most 20 ms.
func BenchmarkCatalog(b *testing.B) {
	set := largeCatalog(b)
	for name, c := range map[string]Config{
		"plain":    {},
		"hidden":   {ExcludeDirect: []string{"mcp__*"}},
		"scrubbed": {Scrub: secret.NewScrubber(secret.New("canary-1"), secret.New("/home/somebody"))},
	} {
		b.Run(name, func(b *testing.B) {
			conv := New(c)
			for b.Loop() {
				t := &turn{c: conv, out: &stream{}, provider: steps()}
				if _, err := t.freeze(set); err != nil {
					b.Fatal(err)
				}
				r := &run{t: t, history: &history{}}
				if err := r.equip(); err != nil {
					b.Fatal(err)
				}
				_ = r.cacheKey()
			}
		})
	}
}

// BenchmarkUnknown suggests names among 2,000.
func BenchmarkUnknown(b *testing.B) {
	set := largeCatalog(b)
	for b.Loop() {
		_ = unknown("mcp__server31__tol_17", set)
	}
}
