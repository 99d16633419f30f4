package acp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
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
	b, err := io.ReadAll(newFrames(r, func(line string) { out.WriteString(line) }, func(string) {}))
	if err != nil {
		t.Fatal(err)
	}
	return string(b), out.String()
}

func TestFrames(t *testing.T) {
	good := `{"jsonrpc":"2.0","id":1,"method":"x"}`
	long := strings.Repeat("y", maxFrame)
	big := `{"x":"` + long + `"}`
	tooLarge := func(id string) string { return failure(id, -32600, tooLargeText) }
	noMessage := func(id string) string { return failure(id, -32600, noMessageText) }
	for _, c := range []struct{ name, in, passed, replies string }{
		{"one", good + "\n", good + "\n", ""},
		{"CRLF, blanks, no end", "\r\n\n  " + good + "\r\n" + good, good + "\n" + good + "\n", ""},
		{"no JSON", "hello\n" + good + "\n", good + "\n", parseError},
		{"half", `{"a":` + "\n" + good + "\n", good + "\n", parseError},
		{"no object", "[]\n7\n\"x\"\nnull\n", "", strings.Repeat(parseError, 4)},
		{"a name twice", `{"id":1,"id":2}` + "\n" + good + "\n", good + "\n", parseError},
		{"too large", big + "\n" + good + "\n", good + "\n", tooLarge("null")},
		{"too large at the end", big, "", tooLarge("null")},
		{"too large a request", `{"jsonrpc":"2.0","id":"a","method":"x","params":["` + long + `"]}` + "\n" + good, good + "\n", tooLarge(`"a"`)},
		{"too large a request of an odd id", `{"id":[7],"method":"x","params":["` + long + `"]}`, "", tooLarge("null")},
		{"too large an answer", `{"jsonrpc":"2.0","id":7,"result":["` + long + `"]}` + "\n" + good, failure("7", -32603, largeReplyText) + good + "\n", ""},
		{"too large and no JSON", "}" + long, "", tooLarge("null")},
		{"odd method", `{"jsonrpc":"2.0","id":7,"method":7}`, "", noMessage("7")},
		{"odd version", `{"jsonrpc":2,"id":"a","method":"x"}`, "", noMessage(`"a"`)},
		{"odd method and id", `{"id":{},"method":{}}`, "", noMessage("null")},
		{"long id", `{"id":"` + strings.Repeat("i", maxID) + `","method":{}}`, "", noMessage("null")},
		{"nothing", `{}`, "", noMessage("null")},
		{"odd error", `{"jsonrpc":"2.0","id":7,"error":"x"}`, failure("7", -32603, brokenText), ""},
		{"error of an odd code", `{"jsonrpc":"2.0","id":7,"error":{"code":1.5,"message":"x"}}`, failure("7", -32603, brokenText), ""},
		{"error about nothing", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}` + "\n" + `{"error":7}`, "", ""},
		{"error", `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}` + "\n", ""},
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

// FuzzFrames: whatever comes in, only whole JSON objects go on, one a line, and each other line is answered once, but for errors about
// nothing.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{`{"error":1}`, `{"id":1,"method":2}`, "", "\n", "{}\n", "{}", "x\n{}\n[]\n", "{\"a\":1}\r\n\xff\n{"} {
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
			var m map[string]json.RawMessage
			_ = json.Unmarshal(line, &m)
			if _, fails := m["error"]; len(bytes.TrimSpace(line)) > 0 && (!fails || m["method"] != nil || givenBack(m["id"]) != "null") {
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
		{"list without items", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"type":"array"},"y":{"type":["array","null"]}}}}]`, ""},
		{"all that is usual", `[{"name":"a","description":"d","inputSchema":{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","additionalProperties":false,"required":["x"],"properties":{
			"x":{"type":["string","null"],"enum":["a",null],"minLength":0,"pattern":"^a","format":"date","default":{"type":7}},"n":{"type":"integer","minimum":-1.5,"exclusiveMaximum":9,"multipleOf":0.5},
			"l":{"type":"array","prefixItems":[{"$ref":"#/$defs/A~1%20b"}],"items":false,"uniqueItems":true},"type":{"const":{"$ref":7}},"c":{"anyOf":[{"$ref":"#/properties/l/prefixItems/0"},{"$ref":"#"}]}},
			"$defs":{"A/ b":{"title":"t"}}}}]`, ""},
		{"unknown type", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"type":"int"}}}}]`, "inputSchema at /properties/x/type: one of object, array"},
		{"type twice", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"type":["string","string"]}}}}]`, "at /properties/x/type"},
		{"type that is no text", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"type":[7]}}}}]`, "at /properties/x/type"},
		{"no schema in a property", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":null}}}]`, "at /properties/x: a schema is an object"},
		{"required is true", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"type":"string","required":true}}}}]`, "at /properties/x/required: a list of different names"},
		{"bounds of draft 4", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"minimum":0,"exclusiveMinimum":true}}}}]`, "exclusiveMinimum: a number"},
		{"tuple of draft 7", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"items":[{}]}}}}]`, "stand in prefixItems"},
		{"empty enum", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"enum":[]}}}}]`, "enum: a list of values"},
		{"half a length", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"maxLength":1.5}}}}]`, "maxLength: a whole number"},
		{"steps of zero", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"multipleOf":0}}}}]`, "multipleOf: a number above 0"},
		{"no cases", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"oneOf":[]}}}}]`, "oneOf: a list of schemas"},
		{"odd definitions", `[{"name":"a","description":"d","inputSchema":{"type":"object","$defs":[]}}]`, "$defs: an object of schemas"},
		{"reference to nothing", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}}}}]`, "at /properties/x/$ref: the reference leads nowhere"},
		{"reference elsewhere", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"$ref":"https://example.com/x"}}}}]`, "a reference into the schema itself"},
		{"deep", `[{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":` + strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100) + `}}}]`, "nested deeper than 64"},
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
	gif := func(mime string) sdk.ContentBlock {
		return sdk.ImageBlock(base64.StdEncoding.EncodeToString([]byte("GIF89a")), mime)
	}
	image := gif("image/png") // services look at the bytes
	blocks, err := promptBlocks([]sdk.ContentBlock{
		sdk.TextBlock("look"), image, sdk.ResourceLinkBlock("note", "file:///n.txt"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///m.txt", Text: "inside"}}),
	})
	if err != nil || len(blocks) != 4 {
		t.Fatalf("%v %v", blocks, err)
	}
	if blocks[1].Kind != provider.Image || string(blocks[1].Data) != "GIF89a" || blocks[1].MIME != "image/gif" || blocks[2].Text != "[note](file:///n.txt)" || !strings.Contains(blocks[3].Text, "inside") {
		t.Errorf("%+v", blocks)
	}
	for _, c := range []struct {
		problem string
		blocks  []sdk.ContentBlock
	}{
		{"empty", nil},
		{"empty", []sdk.ContentBlock{sdk.TextBlock(""), sdk.TextBlock(" \n")}},
		{"may hold", []sdk.ContentBlock{sdk.AudioBlock("aGk=", "audio/wav")}},
		{"base64", []sdk.ContentBlock{sdk.ImageBlock("%", "image/png")}},
		{"must be a PNG", []sdk.ContentBlock{sdk.ImageBlock("aGk=", "image/png")}},
		{"must be a PNG", []sdk.ContentBlock{sdk.ImageBlock("", "image/png")}},
		{"of at most 3700000 bytes", []sdk.ContentBlock{sdk.ImageBlock(base64.StdEncoding.EncodeToString([]byte("GIF89a"+strings.Repeat("x", 3_700_000))), "image/gif")}},
		{"20 images", slices.Repeat([]sdk.ContentBlock{image}, 21)},
	} {
		if _, err := promptBlocks(c.blocks); err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v", c.problem, err)
		}
	}
	if blocks, err := promptBlocks([]sdk.ContentBlock{sdk.TextBlock("a\x00b")}); err != nil || blocks[0].Text != "a\uFFFDb" { // which OpenAI refuses
		t.Errorf("%v %v", blocks, err)
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
