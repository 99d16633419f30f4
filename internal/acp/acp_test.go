package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	sdk "github.com/coder/acp-go-sdk"

	"magi-code/internal/provider"
)

// readAll passes input through the filter and returns what the library would read and what was answered.
func readAll(t *testing.T, r io.Reader) (passed, replies string) {
	t.Helper()
	var out bytes.Buffer
	b, err := io.ReadAll(newFrames(r, &out))
	if err != nil {
		t.Fatal(err)
	}
	return string(b), out.String()
}

func TestFrames(t *testing.T) {
	good := `{"jsonrpc":"2.0","id":1,"method":"x"}`
	big := `{"x":"` + strings.Repeat("y", maxFrame) + `"}`
	for _, c := range []struct{ name, in, passed, replies string }{
		{"one", good + "\n", good + "\n", ""},
		{"CRLF, blanks, no end", "\r\n\n  " + good + "\r\n" + good, good + "\n" + good + "\n", ""},
		{"no JSON", "hello\n" + good + "\n", good + "\n", parseError},
		{"half", `{"a":` + "\n" + good + "\n", good + "\n", parseError},
		{"no object", "[]\n7\n\"x\"\nnull\n", "", strings.Repeat(parseError, 4)},
		{"a name twice", `{"id":1,"id":2}` + "\n" + good + "\n", good + "\n", parseError},
		{"too large", big + "\n" + good + "\n", good + "\n", tooLargeError},
		{"too large at the end", big, "", tooLargeError},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.in), iotest.HalfReader(strings.NewReader(c.in))} {
				passed, replies := readAll(t, r)
				if passed != c.passed || replies != c.replies {
					t.Errorf("passed %.200q\nreplied %.200q", passed, replies)
				}
			}
		})
	}
}

// FuzzFrames: whatever comes in, only whole JSON objects go on, one a line, and each other line is answered once.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"", "\n", "{}\n", "{}", "x\n{}\n[]\n", "{\"a\":1}\r\n\xff\n{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		passed, replies := readAll(t, bytes.NewReader(in))
		n := 0
		for line := range strings.Lines(passed) {
			n++
			if !json.Valid([]byte(line)) || line[0] != '{' {
				t.Errorf("passed on: %q", line)
			}
		}
		nonBlank := 0
		for line := range bytes.Lines(in) {
			if len(bytes.TrimSpace(line)) > 0 {
				nonBlank++
			}
		}
		if n+strings.Count(replies, "\n") != nonBlank {
			t.Errorf("%d lines, %d passed on, %d answered", nonBlank, n, strings.Count(replies, "\n"))
		}
	})
}

// TestClientTools: the whole list is validated before any of it counts (R-G11).
func TestClientTools(t *testing.T) {
	for _, c := range []struct{ name, tools, problem string }{
		{"none", `null`, ""},
		{"good", `[{"name":"a","description":"d","inputSchema":{"type":"object"},"timeoutMs":5}]`, ""},
		{"no list", `"x"`, "must be a list"},
		{"no name", `[{"description":"d","inputSchema":{"type":"object"}}]`, "1 to 64"},
		{"blank in name", `[{"name":"a b","description":"d","inputSchema":{"type":"object"}}]`, "1 to 64"},
		{"long name", `[{"name":"` + strings.Repeat("a", 65) + `","description":"d","inputSchema":{"type":"object"}}]`, "1 to 64"},
		{"of a server", `[{"name":"mcp__a__b","description":"d","inputSchema":{"type":"object"}}]`, "belong to MCP servers"},
		{"built-in", `[{"name":"bash","description":"d","inputSchema":{"type":"object"}}]`, "built-in"},
		{"twice", `[{"name":"a","description":"d","inputSchema":{"type":"object"}},{"name":"a","description":"d","inputSchema":{"type":"object"}}]`, "tool 1 (a): the name occurs twice"},
		{"no description", `[{"name":"a","inputSchema":{"type":"object"}}]`, "description"},
		{"no schema", `[{"name":"a","description":"d"}]`, "inputSchema"},
		{"no object", `[{"name":"a","description":"d","inputSchema":{"type":"array"}}]`, "inputSchema"},
		{"cases at the top", `[{"name":"a","description":"d","inputSchema":{"type":"object","oneOf":[{}]}}]`, "has oneOf at its top"},
		{"reference at the top", `[{"name":"a","description":"d","inputSchema":{"type":"object","$ref":"#/$defs/x"}}]`, "has $ref at its top"},
		{"cases below", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x.y-z_1":{"oneOf":[{}]}}}}]`, ""},
		{"odd property", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x y":{}}}}]`, `property "x y"`},
		{"hidden property", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x\u202e":{}}}}]`, "202e"},
		{"properties of another kind", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":["x"]}}]`, "properties of inputSchema is an object"},
		{"no time", `[{"name":"a","description":"d","inputSchema":{"type":"object"},"timeoutMs":0}]`, "timeoutMs"},
		{"too long", `[{"name":"a","description":"d","inputSchema":{"type":"object"},"timeoutMs":600001}]`, "timeoutMs"},
		{"hidden", `[{"name":"a\u202e","description":"d","inputSchema":{"type":"object"}}]`, `\u{202e}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tools any
			if err := json.Unmarshal([]byte(c.tools), &tools); err != nil {
				t.Fatal(err)
			}
			_, err := parseClientTools(map[string]any{metaKey: map[string]any{"tools": tools}}, []string{"bash"})
			if c.problem == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var r *sdk.RequestError
			if !errors.As(err, &r) || r.Code != -32602 || !strings.Contains(r.Message, c.problem) {
				t.Errorf("%v", err)
			}
		})
	}
}

// FuzzClientTools: no registration panics, and what passes has a sound name and schema.
func FuzzClientTools(f *testing.F) {
	f.Add([]byte(`[{"name":"a","description":"d","inputSchema":{"type":"object"}}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var tools any
		if json.Unmarshal(b, &tools) != nil {
			return
		}
		list, err := parseClientTools(map[string]any{metaKey: map[string]any{"tools": tools}}, nil)
		for _, c := range list {
			if err == nil && (!clientToolName.MatchString(c.Name) || !json.Valid(c.InputSchema) || c.timeout <= 0) {
				t.Errorf("%+v", c)
			}
		}
	})
}

func TestPromptBlocks(t *testing.T) {
	image := sdk.ImageBlock("aGk=", "image/png")
	blocks, err := promptBlocks([]sdk.ContentBlock{
		sdk.TextBlock("look"), image, sdk.ResourceLinkBlock("note", "file:///n.txt"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///m.txt", Text: "inside"}}),
	})
	if err != nil || len(blocks) != 4 {
		t.Fatalf("%v %v", blocks, err)
	}
	if blocks[1].Kind != provider.Image || string(blocks[1].Data) != "hi" || blocks[2].Text != "[note](file:///n.txt)" || !strings.Contains(blocks[3].Text, "inside") {
		t.Errorf("%+v", blocks)
	}
	for _, bad := range [][]sdk.ContentBlock{nil, {sdk.AudioBlock("aGk=", "audio/wav")}, {sdk.ImageBlock("%", "image/png")}} {
		if _, err := promptBlocks(bad); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

func TestNotStarted(t *testing.T) {
	if notStarted(nil) != "" {
		t.Error("a note without a reason")
	}
	text := notStarted([]sdk.McpServer{{Stdio: &sdk.McpServerStdio{Name: "a\x1b[31m"}}, {Http: &sdk.McpServerHttpInline{Name: "b"}}})
	if !strings.Contains(text, "a, b") || !strings.Contains(text, "magi-code mcp approve") || strings.Contains(text, "\x1b") {
		t.Error(text)
	}
}

// TestServeNothing: a peer that hangs up at once, or sends what is no message, ends the connection in order; the race detector looks
// on while the library starts.
func TestServeNothing(t *testing.T) {
	for _, in := range []string{"", "{}\n", `{"jsonrpc":"2.0","id":1,"method":"nothing"}` + "\n"} {
		for range 20 {
			if err := Serve(t.Context(), Options{In: strings.NewReader(in), Out: io.Discard}); err != nil {
				t.Errorf("%q: %v", in, err)
			}
		}
	}
}
