package mcp

import (
	"sync"
	"testing"
)

// 64 calls under way at once on one connection, from the tool's Run to its result; the peer answers from memory.
func BenchmarkCalls64(b *testing.B) {
	f := &fake{tools: oneTool("t")}
	m := start(b, Options{}, map[string]*fake{"s": f})
	snap, _ := m.Prepare(b.Context(), Snapshot{})
	b.ReportAllocs()
	for b.Loop() {
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := run(b.Context(), snap, "mcp__s__t", `{"path":"README.md"}`); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func BenchmarkCall(b *testing.B) {
	f := &fake{tools: oneTool("t")}
	m := start(b, Options{}, map[string]*fake{"s": f})
	snap, _ := m.Prepare(b.Context(), Snapshot{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := run(b.Context(), snap, "mcp__s__t", `{"path":"README.md"}`); err != nil {
			b.Fatal(err)
		}
	}
}
