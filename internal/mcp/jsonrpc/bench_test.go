package jsonrpc

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// toolsList is an answer to tools/list of about size bytes, as real servers write them.
func toolsList(size int) []byte {
	const tool = `{"name":"tool_%d","description":"Reads a \"file\" and returns what it says, line by line.\nLong text follows: %s","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"where"},"limit":{"type":"integer","minimum":0}},"required":["path"],"additionalProperties":false}}`
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":2,"result":{"tools":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, tool, i, strings.Repeat("word ", 60))
	}
	b.WriteString("]}}")
	return b.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	for name, msg := range map[string][]byte{
		"ping":  []byte(`{"jsonrpc":"2.0","id":7,"method":"ping"}`),
		"call":  []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hello"}]}}`),
		"2MB":   toolsList(2 << 20),
		"100KB": toolsList(100 << 10),
	} {
		b.Run(name, func(b *testing.B) {
			var d decoder
			b.SetBytes(int64(len(msg)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.decode(msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// echo answers every request on the other end with its id.
func echo(b *testing.B, c net.Conn) {
	f := newFrames(c, MaxFrame, func([]byte) {})
	var out []byte
	var d decoder
	for {
		line, _, err := f.next()
		if err != nil {
			return
		}
		m, err := d.decode(line)
		if err != nil {
			b.Error(err)
			return
		}
		out, _ = AppendResponse(out[:0], Response{ID: m.Request.ID, Result: []byte(`{"content":[{"type":"text","text":"hello"}]}`)})
		if _, err := c.Write(append(out, '\n')); err != nil {
			return
		}
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, overlap := range []int{1, 64} {
		b.Run(fmt.Sprint(overlap), func(b *testing.B) {
			near, far := net.Pipe()
			c := NewConn(b.Context(), near, near, Options{})
			var wg sync.WaitGroup
			wg.Go(func() { echo(b, far) })
			params := []byte(`{"name":"echo","arguments":{"text":"hello"}}`)
			next := make(chan int, overlap)
			b.ReportAllocs()
			b.ResetTimer()
			var calls sync.WaitGroup
			for range overlap {
				calls.Go(func() {
					for i := range next {
						if _, err := c.Call(b.Context(), Request{ID: fmt.Append(nil, i), Method: "tools/call", Params: params}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for i := range b.N {
				next <- i
			}
			close(next)
			calls.Wait()
			b.StopTimer()
			_ = far.Close()
			_ = c.Close(b.Context())
			wg.Wait()
		})
	}
}
