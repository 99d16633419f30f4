package mcp

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

// pages serves tools/list by a function of the cursor ("" first) and the page number.
func pages(f func(cursor string, n int) string) func(p *peer, r jsonrpc.Request) {
	n := 0
	return func(p *peer, r jsonrpc.Request) {
		if r.Method != "tools/list" {
			p.standard(r)
			return
		}
		n++
		params, _ := object(r.Params, "cursor")
		cursor, _ := text(params["cursor"])
		if n == 1 && len(r.Params) > 0 {
			cursor = "the first page was asked for with parameters: " + string(r.Params)
		}
		p.result(r, f(cursor, n))
	}
}

// R-P3, B39: pages, and what ends them.
func TestPagination(t *testing.T) {
	for _, c := range []struct {
		name  string
		page  func(cursor string, n int) string
		tools int
		fails string
	}{
		{"three pages", func(cursor string, n int) string {
			if want := []string{"", "p 2\"", "p3"}[n-1]; cursor != want {
				return `"wrong cursor"`
			}
			return fmt.Sprintf(`{"tools":[%s],"nextCursor":%s}`, oneTool(fmt.Sprint("t", n)), []string{`"p 2\""`, `"p3"`, `null`}[n-1])
		}, 3, ""},
		{"empty cursor", func(_ string, n int) string { return `{"tools":[` + oneTool("t") + `],"nextCursor":""}` }, 1, ""},
		{"null cursor", func(_ string, n int) string { return `{"tools":[` + oneTool("t") + `],"nextCursor":null}` }, 1, ""},
		{"cursor of another type", func(_ string, n int) string { return `{"tools":[],"nextCursor":7}` }, 0, "nextCursor"},
		{"repeated cursor", func(_ string, n int) string {
			return fmt.Sprintf(`{"tools":[%s],"nextCursor":"same"}`, oneTool(fmt.Sprint("t", n)))
		}, 0, "repeats a cursor"},
		{"cursors in a ring", func(_ string, n int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"c%d"}`, n%3) }, 0, "repeats a cursor"},
		{"too many pages", func(_ string, n int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"c%d"}`, n) }, 0, "more than 1000 pages"},
		{"too many bytes", func(_ string, n int) string {
			return fmt.Sprintf(`{"tools":[],"x":%q,"nextCursor":"c%d"}`, strings.Repeat("x", 6<<20), n)
		}, 0, "larger than 16 MiB"},
		{"no tools member", func(string, int) string { return `{}` }, 0, ""},
		{"null tools", func(string, int) string { return `{"tools":null}` }, 0, ""},
		{"tools of another type", func(string, int) string { return `{"tools":{}}` }, 0, "not an array"},
		{"no object", func(string, int) string { return `[]` }, 0, "not an object"},
		{"duplicate over pages", func(_ string, n int) string {
			return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%s"}`, oneTool("twice"), []string{"more", ""}[n-1])
		}, 0, `two tools of the name "twice"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := start(t, Options{}, map[string]*fake{"s": {serve: pages(c.page)}})
			st := statusOf(t, m, "s")
			if c.fails != "" {
				if st.State != Failed || st.Err.Phase != PhaseList || !strings.Contains(st.Err.Text, c.fails) {
					t.Errorf("%v, %v", st.State, st.Err)
				}
				return
			}
			if st.State != Ready || len(st.Tools) != c.tools {
				t.Errorf("%v, %d tools, %v", st.State, len(st.Tools), st.Err)
			}
		})
	}
}

// R-P2: a server without tools/list has no tools. W3: any other error is a failure of the phase.
func TestListRefused(t *testing.T) {
	for _, c := range []struct {
		code  int
		state State
	}{{-32601, Ready}, {-32603, Failed}} {
		f := &fake{serve: func(p *peer, r jsonrpc.Request) {
			if r.Method == "tools/list" {
				p.fault(r, c.code, "Internal error", "")
				return
			}
			p.standard(r)
		}}
		m := start(t, Options{}, map[string]*fake{"s": f})
		if st := statusOf(t, m, "s"); st.State != c.state || c.state == Failed && st.Err.Phase != PhaseList {
			t.Errorf("%d: %v, %v", c.code, st.State, st.Err)
		}
	}
}

// S13: a server that dribbles pages, each in time, is ended all the same.
func TestListTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		f := &fake{serve: func(p *peer, r jsonrpc.Request) {
			if r.Method != "tools/list" {
				p.standard(r)
				return
			}
			n++
			cursor := n
			time.AfterFunc(29*time.Second, func() { p.result(r, fmt.Sprintf(`{"tools":[],"nextCursor":"c%d"}`, cursor)) })
		}}
		m := start(t, Options{}, map[string]*fake{"s": f})
		e := m.Failures()
		if len(e) != 1 || e[0].Phase != PhaseList || !strings.Contains(e[0].Text, "within 5m0s") {
			t.Errorf("%v", e)
		}
		closeNow(t, m)
		<-time.After(time.Hour)
	})
}

// R-N1, B38, S30, W5, W6: a bad tool is left out by name, with the reason; the rest works.
func TestOmittedTools(t *testing.T) {
	long := strings.Repeat("x", 64-len("mcp__s__"))
	listed := []string{
		oneTool("good"), oneTool("also_good-2_"), oneTool(long), oneTool("_leading"),
		oneTool(long + "x"), oneTool("with.dot"), oneTool("with/slash"), oneTool("with space"), oneTool("ünicode"), oneTool(""), oneTool("a__b"),
		oneTool("Twin"), oneTool("twin"), oneTool(`new\u000aline\u202e`),
		`{"description":"no name"}`, `{"name":7}`, `null`, `[]`, `"text"`,
		`{"name":"deep","inputSchema":` + strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100) + `}`,
		`{"name":"big","inputSchema":{"description":"` + strings.Repeat("x", maxSchema) + `"}}`,
		`{"name":"odd_fields","title":7,"description":null,"inputSchema":null,"outputSchema":"broken","annotations":[],"icons":[{"src":"http://127.0.0.1:1/x"}],"more":1}`,
	}
	f := &fake{tools: strings.Join(listed, ",")}
	m := start(t, Options{}, map[string]*fake{"s": f})
	st := statusOf(t, m, "s")
	if st.State != Ready {
		t.Fatalf("%v", st.Err)
	}
	snap, _ := m.Prepare(t.Context(), Snapshot{})
	if want := "mcp__s___leading mcp__s__also_good-2_ mcp__s__good mcp__s__odd_fields mcp__s__" + long; toolNames(snap) != want {
		t.Errorf("kept %s", toolNames(snap))
	}
	var b strings.Builder
	for _, o := range st.Omitted {
		fmt.Fprintf(&b, "%s: %s\n", o.Name, o.Reason)
	}
	want := long + `x: its full name mcp__s__` + long + `x has 65 bytes, more than the 64 that providers take
with.dot: its name has characters other than letters, digits, _ and -
with/slash: its name has characters other than letters, digits, _ and -
with space: its name has characters other than letters, digits, _ and -
ünicode: its name has characters other than letters, digits, _ and -
: it has no name
a__b: its name contains __
Twin: another tool's name differs from its name in case only
twin: another tool's name differs from its name in case only
new\nline\u{202e}: its name has characters other than letters, digits, _ and -
tool 15: it has no name
tool 16: it has no name
tool 17: it is not an object
tool 18: it is not an object
tool 19: it is not an object
deep: its schema is nested deeper than 64 levels
big: its schema has 262162 bytes, more than 262144
`
	if strings.ReplaceAll(b.String(), `new\u{a}line`, `new\nline`) != want {
		t.Errorf("omitted:\n%s", b.String())
	}
}

// S13: the number of tools and of named omissions is bounded, and said to be.
func TestToolBounds(t *testing.T) {
	var b strings.Builder
	for i := range maxTools + 5 {
		fmt.Fprintf(&b, `%s{"name":"t%d"}`, strings.Repeat(",", min(i, 1)), i)
	}
	s := testServer("s")
	raw, extra, _, err := readPage(jsontext.Value(`{"tools":[`+b.String()+`]}`), nil, 0)
	if err != nil || extra != 5 {
		t.Fatalf("%d extra, %v", extra, err)
	}
	l, err := s.catalogue(raw, extra)
	if err != nil || l.set.Len() != maxTools || len(l.omitted) != 1 || !strings.HasPrefix(l.omitted[0].Reason, "5 more") {
		t.Errorf("%v, %+v", err, l.omitted)
	}
	var bad []rawTool
	for i := range maxOmitted + 7 {
		bad = append(bad, rawTool{name: fmt.Sprint("b.", i)})
	}
	if l, err = s.catalogue(bad, 0); err != nil || len(l.omitted) != maxOmitted+1 || !strings.HasPrefix(l.omitted[maxOmitted].Reason, "7 more") {
		t.Errorf("%v, %d omitted", err, len(l.omitted))
	}
}

// S13, S27, S28, R-D5: descriptions are bounded and scrubbed; people can see what is hidden, the model gets it without.
func TestDescriptions(t *testing.T) {
	const canary = "canary-5f3a-secret"
	s := testServer("s")
	s.o.Scrub = secret.NewScrubber(secret.New(canary))
	l, err := s.catalogue([]rawTool{
		{name: "a", title: "T\u202e", description: "see\u200b this " + canary + "\x1b[31m", schema: jsontext.Value(`{"description":"` + canary + `"}`)},
		{name: "b", description: strings.Repeat("ä", maxDescription)},
		{name: "c", title: canary[:9] + "\u200b" + canary[9:], description: canary[:9] + "\x1b[0m" + canary[9:]},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := l.set.Get("mcp__s__a")
	if a.Description != "see this [redacted]" || l.infos[0].Description != "see\u200b this [redacted]\x1b[31m" || l.infos[0].Title != "T\u202e" {
		t.Errorf("%q, %q", a.Description, l.infos[0])
	}
	if strings.Contains(string(a.Schema), canary) || !a.Schema.IsValid() {
		t.Errorf("schema %s", a.Schema)
	}
	b, _ := l.set.Get("mcp__s__b")
	if len(b.Description) > maxDescription || !strings.Contains(b.Description, "omitted") {
		t.Errorf("%d bytes", len(b.Description))
	}
	if c, _ := l.set.Get("mcp__s__c"); c.Description != "[redacted]" || l.infos[2].Title != "[redacted]" || l.infos[2].Description != "[redacted]" {
		t.Errorf("torn apart: %q, %q", c.Description, l.infos[2])
	}
	if b.Remote != "b" || b.Server != "s" || b.Origin != "mcp" || b.ReadOnly {
		t.Errorf("%+v", b)
	}
}

// testServer is a server that is never started.
func testServer(name string) *server {
	return &server{name: name, o: &Options{Scrub: secret.NewScrubber()}, def: define(name)}
}

func FuzzToolsList(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"tools":null}`, `{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"x"}`, `{"tools":[{"name":"a"},{"name":"a"}]}`,
		`{"tools":[{"name":"A"},{"name":"a"},7,null]}`, `[]`, `{"tools":[{"name":"\ud800","description":"\u202e"}]}`, `{"nextCursor":"\ud800"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		raw, extra, _, err := readPage(jsontext.Value(in), nil, 0)
		if err != nil {
			return
		}
		l, err := testServer("s").catalogue(raw, extra)
		if err != nil {
			return
		}
		if l.set.Len()+len(l.omitted) != len(raw) || l.set.Len() != len(l.infos) {
			t.Fatalf("%d tools became %d and %d omitted", len(raw), l.set.Len(), len(l.omitted))
		}
		for _, tool := range l.set.All() {
			if !tool.Schema.IsValid() || nameProblem("s", tool.Remote) != "" || tool.Name != advertised("s", tool.Remote) {
				t.Fatalf("%+v", tool)
			}
		}
	})
}

// split takes an advertised name apart: the first separator is the one, because servers' names hold none.
func split(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, namePrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, nameSeparator)
}

// R-N1, S30: no pair of names can be read as another pair.
func FuzzToolName(f *testing.F) {
	for _, s := range [][2]string{{"s", "t"}, {"a-b", "_x"}, {"a", "b_"}, {"s", "a__b"}, {"s", ""}, {"s", "ä"}, {"s", strings.Repeat("x", 60)}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, server, tool string) {
		if server == "" || !isPlain(server) || strings.Contains(server, "__") || strings.HasSuffix(server, "_") {
			return // a structural error of the definition
		}
		if nameProblem(server, tool) != "" {
			return
		}
		name := advertised(server, tool)
		if len(name) > 64 || !isPlain(name) {
			t.Fatalf("%q", name)
		}
		if s, r, ok := split(name); !ok || s != server || r != tool {
			t.Fatalf("%q reads as %q and %q", name, s, r)
		}
	})
}

func TestCloseMatches(t *testing.T) {
	names := []string{"read_file", "write_file", "list_dir", "readFile", "zip"}
	for want, best := range map[string]string{"read_fil": "read_file", "READ_FILE": "read_file", "file": "read_file write_file readFile", "lst_dir": "list_dir", "qqqqqq": "", "": ""} {
		got := strings.Join(closeMatches(want, names), " ")
		if best == "" && want != "" && got != "" || best != "" && !strings.HasPrefix(got, strings.Fields(best)[0]) {
			t.Errorf("%q: %q", want, got)
		}
	}
}

func benchTools(n int) []rawTool {
	raw := make([]rawTool, n)
	for i := range raw {
		raw[i] = rawTool{name: fmt.Sprintf("tool_%06d", i), description: "Does one thing and says so in a sentence of usual length.",
			schema: jsontext.Value(`{"type":"object","properties":{"path":{"type":"string","description":"where"},"limit":{"type":"integer","minimum":0}},"required":["path"]}`)}
	}
	return raw
}

func BenchmarkCatalogue1000(b *testing.B) {
	s, raw := testServer("s"), benchTools(1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.catalogue(raw, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// A snapshot of 50 servers with 2,000 tools each, as after one of them changed.
func BenchmarkSnapshot50x2000(b *testing.B) {
	parts := make([]part, 50)
	for i := range parts {
		l, err := testServer(fmt.Sprintf("server%02d", i)).catalogue(benchTools(2000), 0)
		if err != nil {
			b.Fatal(err)
		}
		parts[i] = part{l.set, l.digest}
	}
	b.ReportAllocs()
	for b.Loop() {
		if mergeParts(parts).Len() != 100_000 {
			b.Fatal("tools are missing")
		}
	}
}
