package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// maxDemoLine bounds a message to the demo server, in bytes.
const maxDemoLine = 1 << 20

// newDemoServer is the MCP server of magi-code demo: a child process that speaks MCP over stdio like any other.
func newDemoServer(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "demo-server",
		Short:  "The MCP server of magi-code demo, over stdio",
		Hidden: true,
		Args:   noArgs,
		RunE:   func(*cobra.Command, []string) error { return serveDemo(a.in, a.out) },
	}
}

const demoTools = `[
{"name":"search_notes","description":"Search the demo notes for a text and return the notes that hold it.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"the text to look for"}},"required":["query"]}},
{"name":"add_numbers","description":"Add two numbers.","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}
]`

func demoNotes() []string {
	return []string{
		"2026-03-02 The kettle in the lab boils at 96 degrees; good for green tea.",
		"2026-03-09 Release day: tag first, then announce.",
		"2026-03-17 Black tea wants four minutes, and nobody wants cold tea.",
	}
}

// demoMessage is what the demo server reads.
type demoMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
		Name            string `json:"name"`
		Arguments       struct {
			Query string  `json:"query"`
			A     float64 `json:"a"`
			B     float64 `json:"b"`
		} `json:"arguments"`
	} `json:"params"`
}

func serveDemo(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxDemoLine)
	for lines.Scan() {
		var m demoMessage
		if json.Unmarshal(lines.Bytes(), &m) != nil || len(m.ID) == 0 {
			continue
		}
		result, problem := demoResult(m)
		reply := map[string]any{"jsonrpc": "2.0", "id": m.ID}
		if problem != "" {
			reply["error"] = map[string]any{"code": -32601, "message": problem}
		} else {
			reply["result"] = result
		}
		b, err := json.Marshal(reply)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", b); err != nil {
			return err
		}
	}
	return lines.Err()
}

func demoResult(m demoMessage) (result any, problem string) {
	switch m.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "magi-code demo notes", "version": "1"},
		}, ""
	case "ping":
		return map[string]any{}, ""
	case "tools/list":
		return map[string]any{"tools": json.RawMessage(demoTools)}, ""
	case "tools/call":
		text, failed := demoCall(m)
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": failed}, ""
	}
	return nil, "Method not found"
}

func demoCall(m demoMessage) (text string, failed bool) {
	a := m.Params.Arguments
	switch m.Params.Name {
	case "search_notes":
		var found []string
		for _, n := range demoNotes() {
			if strings.Contains(strings.ToLower(n), strings.ToLower(a.Query)) {
				found = append(found, n)
			}
		}
		if len(found) == 0 {
			return fmt.Sprintf("no note holds %q", a.Query), false
		}
		return strings.Join(found, "\n"), false
	case "add_numbers":
		return fmt.Sprint(a.A + a.B), false
	}
	return fmt.Sprintf("no tool is called %q", m.Params.Name), true
}
