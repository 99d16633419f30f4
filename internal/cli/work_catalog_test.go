package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
	"magi-code/internal/provider"
	"magi-code/internal/secret"
)

// manyServers are fifty servers with forty tools each.
func manyServers() map[string][]string { return wideServers(50, 40) }

func wideServers(n, each int) map[string][]string {
	servers := map[string][]string{}
	for i := range n {
		servers[fmt.Sprintf("server%02d", i)] = []string{"wide", fmt.Sprintf("n=%d", each)}
	}
	return servers
}

const hideAll = `{"permissions": {"allow": ["mcp__*"]}, "capabilities": {"tools": {"disabled": ["mcp__*"]}}}`

// Issue 5, 6: with 2,000 tools of 50 servers hidden from direct use, the model gets a bounded index, finds a tool by search, reads
// its schema and calls it.
func testCatalog(t *testing.T, zoo string) {
	s := openSite(t, zoo, plan{servers: manyServers(), settings: hideAll})
	got, k := runScript(t, s, `
		const all = tools.list().filter(t => t.name.startsWith("mcp__"));
		const hits = tools.search("server31 tool_0017", 3);
		const schema = tools.describe(hits[0].name).inputSchema;
		const r = tools.call(hits[0].name, {intent: "call what was found", arguments: {}});
		return [all.length, hits[0].name, schema.required.join(), r.content].join("|");`, nil)
	if got != "2000|mcp__server31__tool_0017|intent,arguments|tool_0017 was called" {
		t.Errorf("the script got %q", got)
	}
	q := k.model.seen()[0]
	if len(q.Tools) > 20 {
		t.Errorf("%d tools are advertised", len(q.Tools))
	}
	d, _ := advertised(q, "code_mode")
	if len(d.Description) > 12<<10 {
		t.Errorf("the description of code_mode has %d bytes", len(d.Description))
	}
	wantParts(t, d.Description, "more: find them with tools.search")
}

// zooFor builds the servers for a benchmark.
func zooFor(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "zoo.exe")
	if out, err := exec.Command("go", "build", "-o", path, "magi-code/test/zoo").CombinedOutput(); err != nil {
		b.Fatalf("the zoo does not build: %v\n%s", err, out)
	}
	return path
}

// BenchmarkTurn is everything that a turn does besides the model's answer, with the tools of 50 running servers: catalog,
// rights, system prompt, digest, events; no session. With 2,000 tools it may take 20 ms, and twice the tools twice that.
func BenchmarkTurn(b *testing.B) {
	zoo := zooFor(b)
	for _, c := range []struct {
		name, settings string
		each, secrets  int
	}{{"500 tools", allowAll, 10, 0}, {"2000 tools", allowAll, 40, 0}, {"2000 tools, hidden", hideAll, 40, 0}, {"2000 tools, 100 secrets", allowAll, 40, 100}, {"8000 tools", allowAll, 160, 0}} {
		b.Run(c.name, func(b *testing.B) {
			s := openSite(b, zoo, plan{servers: wideServers(50, c.each), settings: c.settings})
			for i := range c.secrets {
				s.a.scrub.Add(secret.New(fmt.Sprintf("a secret of many %d", i*i)))
			}
			s.w.provider = &forgetful{}
			conversation := s.w.conversation(these(s.m), nil, nil, func(agent.Event) {})
			prompt := []provider.Block{{Kind: provider.Text, Text: "go"}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conversation.Send(b.Context(), prompt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWire is a turn with 2,000 tools over each provider's wire, to a service that answers at once.
func BenchmarkWire(b *testing.B) {
	zoo := zooFor(b)
	for _, each := range []int{10, 40} {
		for _, name := range []string{"anthropic", "openai", "local"} {
			b.Run(fmt.Sprintf("%s, %d tools", name, 50*each), func(b *testing.B) {
				service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "text/event-stream")
					map[string]func(io.Writer, wireCall, string){"anthropic": anthropicWire, "openai": responsesWire, "local": chatWire}[name](w, wireCall{}, "done")
				}))
				defer service.Close()
				s := openSite(b, zoo, plan{
					servers: wideServers(50, each), provider: name, watched: true,
					settings: `{"permissions": {"allow": ["mcp__*"]}, "endpoints": {"local": {"base_url": "` + service.URL + `/v1", "model": "m"}}}`,
					env:      map[string]string{"ANTHROPIC_API_KEY": "k1", "OPENAI_API_KEY": "k2", "ANTHROPIC_BASE_URL": service.URL, "OPENAI_BASE_URL": service.URL + "/v1"},
				})
				conversation := s.w.conversation(these(s.m), nil, nil, func(agent.Event) {})
				b.ReportAllocs()
				for b.Loop() {
					if turn, err := conversation.Send(b.Context(), []provider.Block{{Kind: provider.Text, Text: "go"}}); err != nil || turn.Text != "done" {
						b.Fatal(turn, err)
					}
				}
			})
		}
	}
}

// forgetful answers at once and keeps nothing.
type forgetful struct{ scripted }

func (*forgetful) Stream(context.Context, provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		for _, e := range says("done") {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// BenchmarkRefreshOfMany is a turn before which one of the fifty servers changes its tools.
func BenchmarkRefreshOfMany(b *testing.B) {
	servers := manyServers()
	servers["live"] = []string{"live"}
	s := openSite(b, zooFor(b), plan{servers: servers, settings: allowAll})
	s.w.provider = &forgetful{}
	c := s.w.conversation(these(s.m), nil, nil, func(agent.Event) {})
	n := 0
	for b.Loop() {
		n++
		s.ask("live", "alter", fmt.Sprintf(`{"name":"echo","text":"version %d"}`, n))
		if _, err := c.Send(b.Context(), []provider.Block{{Kind: provider.Text, Text: "go"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkKnownOfMany compares 2,000 tools with those of the last run at a start.
func BenchmarkKnownOfMany(b *testing.B) {
	s := openSite(b, zooFor(b), plan{servers: manyServers()})
	s.w.announceTools(b.Context(), s.m)
	for b.Loop() {
		if n := s.w.announceTools(b.Context(), s.m); n != nil {
			b.Fatal(n)
		}
	}
}

// BenchmarkSearchOfMany is a script that searches 2,000 tools; the engine's start is in it.
func BenchmarkSearchOfMany(b *testing.B) {
	s := openSite(b, zooFor(b), plan{servers: manyServers(), settings: hideAll})
	for _, n := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("%d searches", n), func(b *testing.B) {
			code := scriptInput(fmt.Sprintf(`for (let i = 0; i < %d; i++) { tools.search("read the tool of server " + i, 10) } return 0`, n))
			s.w.provider = &scripted{answer: func(_ context.Context, q provider.Request) []provider.Event {
				if len(answers(q)) > 0 {
					return says("done")
				}
				return calls("code_mode", code)
			}}
			for b.Loop() {
				c := s.w.conversation(these(s.m), nil, nil, func(agent.Event) {})
				if _, err := c.Send(b.Context(), []provider.Block{{Kind: provider.Text, Text: "go"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStartOfMany starts 50 servers with 2,000 tools and ends them.
func BenchmarkStartOfMany(b *testing.B) {
	s := openSite(b, zooFor(b), plan{servers: manyServers()})
	for b.Loop() {
		m, err := s.a.startServers(b.Context(), s.w, nil)
		if err != nil {
			b.Fatal(err)
		}
		if snapshot, _ := m.Prepare(b.Context(), mcp.Snapshot{}); snapshot.Tools().Len() != 2000 {
			b.Fatal("tools are missing")
		}
		closeManager(b.Context(), m)
	}
}
