package mcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"magi-code/internal/mcp/jsonrpc"
)

// S31: nothing that a server points to is ever fetched: icons, links, remote references, addresses in _meta.
func TestNothingIsFetched(t *testing.T) {
	var hits atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer web.Close()
	fill := strings.NewReplacer("URL", web.URL).Replace
	f := &fake{tools: fill(`{"name":"t","icons":[{"src":"URL/icon"}],"_meta":{"u":"URL/meta"},"annotations":{"title":"URL/title"},` +
		`"inputSchema":{"$schema":"URL/schema","$id":"URL/id","properties":{"a":{"$ref":"URL/ref#/a"},"b":{"$dynamicRef":"URL/dyn"}}},"outputSchema":{"$ref":"URL/out"}}`)}
	f.serve = func(p *peer, r jsonrpc.Request) {
		switch r.Method {
		case "initialize":
			p.result(r, fill(`{"protocolVersion":"2025-06-18","serverInfo":{"name":"n","websiteUrl":"URL/site","icons":[{"src":"URL/i"}]},"instructions":"see URL/doc"}`))
		case "tools/call":
			p.result(r, fill(`{"content":[{"type":"resource_link","uri":"URL/link","name":"l"},{"type":"resource","resource":{"uri":"URL/res"}},{"type":"text","text":"![x](URL/img)"}],"_meta":{"u":"URL"}}`))
		default:
			p.standard(r)
		}
	}
	m := start(t, Options{}, map[string]*fake{"s": f})
	r, err := m.Call(t.Context(), "s", "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Plain()
	r.ForModel(0)
	snap, _ := m.Prepare(t.Context(), Snapshot{})
	tool, _ := snap.Tools().Get("mcp__s__t")
	if strings.Contains(string(tool.Schema), web.URL) {
		t.Errorf("a remote reference is left in %s", tool.Schema)
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}
