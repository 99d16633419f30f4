package tool

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// R-N2, R-N3, S33: one validator for direct calls and scripts.
func TestParse(t *testing.T) {
	builtin := Tool{Name: "read", Origin: Builtin}
	remote := Tool{Name: "mcp__fs__read_file", Origin: MCP}
	client := Tool{Name: "editor_open", Origin: Client}
	for _, c := range []struct {
		name  string
		tool  Tool
		input string
		args  string
		why   string
		fails string
	}{
		{"builtin", builtin, `{"intent":"look","path":"a","n":1}`, `{"path":"a","n":1}`, "look", ""},
		{"builtin, intent last", builtin, `{"path":"a", "intent": "look" }`, `{"path":"a"}`, "look", ""},
		{"builtin, nothing else", builtin, `{"intent":"look"}`, `{}`, "look", ""},
		{"builtin, escaped name", builtin, `{"\u0069ntent":"look","p":2}`, `{"p":2}`, "look", ""},
		{"builtin keeps odd names and big numbers", builtin, `{"a\u0062":123456789012345678901234567890,"intent":"x"}`, `{"a\u0062":123456789012345678901234567890}`, "x", ""},
		{"builtin without intent", builtin, `{"path":"a"}`, "", "", `"intent" is missing`},
		{"builtin, empty input", builtin, " \n", "", "", `"intent" is missing`},
		{"blank intent", builtin, `{"intent":" \t\n"}`, "", "", `"intent" is blank`},
		{"invisible intent", builtin, `{"intent":"\u200b\u2060\u00a0\u202e"}`, "", "", `"intent" is blank`},
		{"intent of another type", builtin, `{"intent":7}`, "", "", `"intent" must be a string`},
		{"null intent", builtin, `{"intent":null}`, "", "", `"intent" must be a string`},
		{"case twin is no intent", builtin, `{"Intent":"x"}`, "", "", `"intent" is missing`},
		{"not an object", builtin, `[1]`, "", "", "must be one JSON object"},
		{"broken", builtin, `{"intent":"x"`, "", "", "not valid JSON"},
		{"broken value", builtin, `{"intent":}`, "", "", "not valid JSON at byte 10"},
		{"no JSON at all", builtin, `please`, "", "", "not valid JSON"},
		{"trailing data", builtin, `{"intent":"x"} {}`, "", "", "goes on behind"},
		{"duplicate", builtin, `{"intent":"x","intent":"y"}`, "", "", "twice"},
		{"duplicate inside", remote, `{"intent":"x","arguments":{"a":1,"a":2}}`, "", "", "twice"},
		{"bad UTF-8", builtin, "{\"intent\":\"x\",\"p\":\"\xff\"}", "", "", "not valid JSON"},

		{"mcp", remote, `{"intent":"see","arguments":{"path":"a","intent":"theirs"}}`, `{"path":"a","intent":"theirs"}`, "see", ""},
		{"mcp, order turned", remote, `{"arguments":{},"intent":"see"}`, `{}`, "see", ""},
		{"mcp, big number untouched", remote, `{"arguments":{"n":1e400, "m" : 0.10},"intent":"s"}`, `{"n":1e400, "m" : 0.10}`, "s", ""},
		{"mcp, no arguments", remote, `{"intent":"see"}`, "", "", `"arguments" is missing`},
		{"mcp, null arguments", remote, `{"intent":"see","arguments":null}`, "", "", `"arguments" must be a JSON object`},
		{"mcp, arguments as text", remote, `{"intent":"see","arguments":"{}"}`, "", "", `"arguments" must be a JSON object`},
		{"mcp, loose field", remote, `{"intent":"see","arguments":{},"path":"a"}`, "", "", `unknown member "path"`},
		{"mcp, no intent", remote, `{"arguments":{}}`, "", "", `"intent" is missing`},
		{"mcp, empty", remote, ``, "", "", `"intent" is missing`},

		{"client", client, `{"file":"a"}`, `{"file":"a"}`, "", ""},
		{"client, empty", client, ``, `{}`, "", ""},
		{"client with an intent of its own", client, `{"intent":5}`, `{"intent":5}`, "", ""},
		{"client, duplicate", client, `{"a":1,"a":1}`, "", "", "twice"},
		{"no origin", Tool{Name: "x"}, `{"intent":"x"}`, "", "", "no known origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, err := Parse(c.tool, "id1", []byte(c.input))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("error %v, want one with %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(call.Arguments) != c.args || call.Intent != c.why || call.ID != "id1" || call.Name != c.tool.Name {
				t.Errorf("got %+v (arguments %s)", call, call.Arguments)
			}
			if want := c.input; want != "" && string(call.Input) != want {
				t.Errorf("input %s, want it as written", call.Input)
			}
		})
	}
}

// A call is bounded, and its bytes are its own.
func TestParseBoundAndCopy(t *testing.T) {
	big := []byte(`{"intent":"x","p":"` + strings.Repeat("a", MaxInput) + `"}`)
	if _, err := Parse(Tool{Origin: Builtin}, "", big); err == nil || !strings.Contains(err.Error(), "send less") {
		t.Errorf("over the bound: %v", err)
	}
	in := []byte(`{"intent":"why","arguments":{"a":"b"}}`)
	call, err := Parse(Tool{Origin: MCP}, "", in)
	if err != nil {
		t.Fatal(err)
	}
	clear(in)
	if string(call.Arguments) != `{"a":"b"}` || string(call.Input) != `{"intent":"why","arguments":{"a":"b"}}` {
		t.Errorf("the call changed with the caller's buffer: %s, %s", call.Input, call.Arguments)
	}
}

// A name in an error is made safe and short.
func TestParseErrorIsSafe(t *testing.T) {
	_, err := Parse(Tool{Origin: MCP}, "", []byte(`{"intent":"x","arguments":{},"\u001b[31m`+strings.Repeat("z", 999)+`":1}`))
	if err == nil || len(err.Error()) > 300 || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("error %q", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"intent":"a","arguments":{}}`, `{"intent":"a","x":[1,{"y":null}]}`, ``, `{`, `{"a":1,"a":2}`, `[]`, "{\"\xff\":1}", `{"intent":"\ud800"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, origin := range []Origin{Builtin, MCP, Client} {
			call, err := Parse(Tool{Name: "t", Origin: origin}, "1", []byte(in))
			if err != nil {
				continue
			}
			if !jsontext.Value(call.Arguments).IsValid() || call.Arguments.Kind() != '{' {
				t.Fatalf("%s: arguments %q of %q", origin, call.Arguments, in)
			}
			if origin != Client && isBlank(call.Intent) {
				t.Fatalf("%s: blank intent of %q", origin, in)
			}
			if strings.TrimSpace(in) != "" && string(call.Input) != in {
				t.Fatalf("input %q became %q", in, call.Input)
			}
			again, err := Parse(Tool{Name: "t", Origin: origin}, "1", call.Input)
			if err != nil || string(again.Arguments) != string(call.Arguments) {
				t.Fatalf("second parse of %q: %v", in, err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	in := []byte(`{"intent":"Read the project setup instructions","arguments":{"path":"README.md","offset":0,"limit":200}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(Tool{Name: "mcp__fs__read_file", Origin: MCP}, "1", in); err != nil {
			b.Fatal(err)
		}
	}
}
