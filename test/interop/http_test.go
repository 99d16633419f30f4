//go:build interop

package interop

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// TestHTTPServers: mcp test and mcp call over Streamable HTTP, on servers that others wrote (R-H1 to R-H4, R-Q2).
func TestHTTPServers(t *testing.T) {
	dir, node := modules(t)
	official := officialServer(t)
	everything := filepath.Join(dir, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	gateway := filepath.Join(dir, "supergateway", "dist", "index.js")
	for _, c := range []struct {
		name   string
		path   string
		start  func(addr, port string) ([]string, []string) // environment and argv
		tool   string
		input  string
		answer string
	}{
		{"official", "/", func(addr, _ string) ([]string, []string) { return nil, []string{official, "-http", addr} }, "echo0", `{"text":"hello"}`, "hello"},
		{"official-json", "/", func(addr, _ string) ([]string, []string) { return nil, []string{official, "-http", addr, "-json"} }, "echo0", `{"text":"hello"}`, "hello"},
		{"official-stateless", "/", func(addr, _ string) ([]string, []string) { return nil, []string{official, "-http", addr, "-stateless"} }, "echo0", `{"text":"hello"}`, "hello"},
		{"official-stateless-json", "/", func(addr, _ string) ([]string, []string) {
			return nil, []string{official, "-http", addr, "-stateless", "-json"}
		}, "echo0", `{"text":"hello"}`, "hello"},
		{"everything", "/mcp", func(_, port string) ([]string, []string) {
			return []string{"PORT=" + port}, []string{node, everything, "streamableHttp"}
		}, "echo", `{"message":"hello"}`, "hello"},
		{"bridged", "/mcp", func(_, port string) ([]string, []string) {
			return nil, []string{node, gateway, "--stdio", official, "--outputTransport", "streamableHttp", "--stateful", "--port", port}
		}, "echo0", `{"text":"hello"}`, "hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := freeAddr(t)
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				t.Fatal(err)
			}
			env, argv := c.start(addr, port)
			background(t, addr, env, argv...)
			w := newWorld(t, map[string]any{"remote": map[string]any{"type": "http", "url": "http://localhost:" + port + c.path + "?key=canary-query"}})
			out := w.ok("mcp", "list")
			want(t, out, "http http://localhost:"+port+c.path, "enabled")
			if strings.Contains(out, "canary-query") {
				t.Errorf("the query is shown:\n%s", out)
			}
			want(t, w.ok("mcp", "test", "remote"), c.tool, "over http")
			want(t, w.ok("mcp", "call", "remote", c.tool, c.input), c.answer)
			want(t, w.ok("run", "--provider", "offline", "--allow", "mcp__*", "call mcp__remote__"+c.tool+" "+c.input), c.answer)
		})
	}
}
