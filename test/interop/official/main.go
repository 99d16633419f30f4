// Command official is a server built with the official Go SDK: over stdio, or over Streamable HTTP with -http ADDR.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	Text string `json:"text" jsonschema:"text to echo"`
}

type output struct {
	Text string `json:"text"`
}

func main() {
	addr := flag.String("http", "", "listen on this address instead of stdio")
	stateless := flag.Bool("stateless", false, "HTTP without MCP sessions")
	asJSON := flag.Bool("json", false, "HTTP replies as JSON instead of SSE")
	flag.Parse()
	s := mcp.NewServer(&mcp.Implementation{Name: "official", Version: "1"}, nil)
	for i := range 3 {
		mcp.AddTool(s, &mcp.Tool{Name: fmt.Sprintf("echo%d", i), Description: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
			return nil, output(in), nil
		})
	}
	if *addr == "" {
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: *stateless, JSONResponse: *asJSON})
	log.Fatal(http.ListenAndServe(*addr, h))
}
