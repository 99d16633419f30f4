package mcp

import (
	"fmt"
	"strings"
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

// The whole catalogue anew: fifty servers with forty tools each list them, and the snapshot is made of them. The
// fakes' serving is in it. Four times the tools may take four times as long and no more.
func BenchmarkCatalogue(b *testing.B) {
	for _, each := range []int{10, 40, 160} {
		b.Run(fmt.Sprintf("%d tools", 50*each), func(b *testing.B) {
			property := `"field_%d":{"type":"string","description":"What the field of this number is for, in one sentence."}`
			var properties, tools []string
			for i := range 10 {
				properties = append(properties, fmt.Sprintf(property, i))
			}
			for i := range each {
				tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":%q,"inputSchema":{"type":"object","properties":{%s}}}`, i, strings.Repeat("It says more about that. ", 10), strings.Join(properties, ",")))
			}
			fakes := map[string]*fake{}
			for i := range 50 {
				fakes[fmt.Sprintf("server%02d", i)] = &fake{tools: strings.Join(tools, ","), changes: true}
			}
			m := start(b, Options{}, fakes)
			b.ReportAllocs()
			for b.Loop() {
				for _, s := range m.servers {
					s.mu.Lock()
					s.due = true
					s.mu.Unlock()
				}
				m.mu.Lock()
				m.current = Snapshot{}
				m.mu.Unlock()
				if snap, _ := m.Prepare(b.Context(), Snapshot{}); snap.Tools().Len() != 50*each {
					b.Fatalf("%d tools", snap.Tools().Len())
				}
			}
		})
	}
}
