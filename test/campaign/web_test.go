//go:build campaign && linux

package campaign

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// playWeb is an HTTP server as a process of its own: address. It tells the address that it got, and serves until it is killed or
// its stdin ends.
func playWeb(args []string) int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var l net.Listener
	for try := 0; ; try++ { // its predecessor's connections may hold the port for a moment
		var err error
		if l, err = net.Listen("tcp", args[0]); err == nil {
			break
		}
		if try == 100 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		<-time.After(20 * time.Millisecond)
	}
	fmt.Println("ready")
	fmt.Println(l.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(l, http.HandlerFunc(serveWeb)))
	return 1
}

// serveWeb is a small MCP server without sessions: echo gives its arguments back, slow does so after ms.
func serveWeb(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion, Name string
			Arguments             struct {
				Text string
				MS   int
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var result any
	switch m.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": m.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]string{"name": "web", "version": "1"}}
	case "tools/list":
		schema := map[string]string{"type": "object"}
		result = map[string]any{"tools": []any{map[string]any{"name": "echo", "inputSchema": schema}, map[string]any{"name": "slow", "inputSchema": schema}}}
	default:
		if m.Params.Name == "slow" {
			<-time.After(time.Duration(m.Params.Arguments.MS) * time.Millisecond)
		}
		result = map[string]any{"content": []any{map[string]string{"type": "text", "text": m.Params.Arguments.Text}}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}
