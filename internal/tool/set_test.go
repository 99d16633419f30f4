package tool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestSet(t *testing.T) {
	var zero Set
	if zero.Len() != 0 || len(zero.All()) != 0 {
		t.Error("the zero set is not empty")
	}
	if _, ok := zero.Get(""); ok {
		t.Error("the zero set has a tool")
	}
	in := []Tool{{Name: "write"}, {Name: "bash"}, {Name: "read", ReadOnly: true}}
	s, err := NewSet(in...)
	if err != nil {
		t.Fatal(err)
	}
	in[0].Name = "changed"
	all := s.All()
	if names(all) != "bash read write" {
		t.Errorf("order %s", names(all))
	}
	all[0].Name = "changed"
	if got, ok := s.Get("bash"); !ok || got.Name != "bash" {
		t.Error("a copy changed the set")
	}
	if _, ok := s.Get("rea"); ok {
		t.Error("found a name that is not there")
	}
	if f := s.Filter(func(t Tool) bool { return t.ReadOnly }); names(f.All()) != "read" || s.Len() != 3 {
		t.Error("filter")
	}
	if _, err := NewSet(Tool{Name: "a"}, Tool{Name: "b"}, Tool{Name: "a"}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("duplicate: %v", err)
	}
}

func TestMerge(t *testing.T) {
	set := func(names ...string) Set {
		var ts []Tool
		for _, n := range names {
			ts = append(ts, Tool{Name: n})
		}
		s, err := NewSet(ts...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// "-" sorts before "_": the order of tools is not the order of server names.
	m, err := Merge(set("mcp__a__x", "mcp__a__b"), Set{}, set("mcp__a-b__x"), set("bash", "write"), set("read"))
	if err != nil {
		t.Fatal(err)
	}
	if got := names(m.All()); got != "bash mcp__a-b__x mcp__a__b mcp__a__x read write" {
		t.Errorf("merged %s", got)
	}
	if _, err := Merge(set("a", "b"), set("b")); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("duplicate: %v", err)
	}
	if m, err := Merge(); err != nil || m.Len() != 0 {
		t.Error("merge of nothing")
	}
}

// R-L4: equal exactly when what is advertised is equal.
func TestDigest(t *testing.T) {
	digest := func(ts ...Tool) string {
		s, err := NewSet(ts...)
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest()
	}
	a := Tool{Name: "a", Description: "d", Schema: jsontext.Value(`{}`), Origin: MCP, Server: "s"}
	b := Tool{Name: "b"}
	same := a
	same.Origin, same.Server, same.Remote, same.ReadOnly = Client, "other", "r", true
	if digest(a, b) != digest(b, same) {
		t.Error("order given or what is not advertised changes the digest")
	}
	seen := map[string]string{}
	for _, c := range []struct {
		what string
		set  []Tool
	}{
		{"nothing", nil},
		{"a", []Tool{a}},
		{"a, b", []Tool{a, b}},
		{"name", []Tool{{Name: "ad", Description: "", Schema: a.Schema}}},
		{"description", []Tool{{Name: "a", Description: "d ", Schema: a.Schema}}},
		{"schema", []Tool{{Name: "a", Description: "d", Schema: jsontext.Value(`{ }`)}}},
		{"moved border", []Tool{{Name: "a", Description: "d{}"}}},
	} {
		d := digest(c.set...)
		if len(d) != 64 || strings.ToLower(d) != d {
			t.Errorf("digest %q", d)
		}
		if was, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", c.what, was)
		}
		seen[d] = c.what
	}
}

func names(ts []Tool) string {
	var b []string
	for _, t := range ts {
		b = append(b, t.Name)
	}
	return strings.Join(b, " ")
}

func manyTools(n int) []Tool {
	ts := make([]Tool, n)
	for i := range ts {
		ts[i] = Tool{
			Name: fmt.Sprintf("mcp__server__tool_%06d", i), Description: "Does one thing and says so in a sentence of usual length.",
			Schema: jsontext.Value(`{"type":"object","properties":{"intent":{"type":"string"},"arguments":{"type":"object","properties":{"path":{"type":"string"}}}}}`),
		}
	}
	return ts
}

func BenchmarkDigest1000(b *testing.B) {
	s, err := NewSet(manyTools(1000)...)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Digest()
	}
}

func BenchmarkNewSet1000(b *testing.B) {
	ts := manyTools(1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewSet(ts...); err != nil {
			b.Fatal(err)
		}
	}
}
