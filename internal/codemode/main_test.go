package codemode

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(memoryEnv) != "" {
		os.Exit(attackMemory())
	}
	goleak.VerifyTestMain(m)
}

// world is a host with a few tools over a small file system.
func world() Host {
	files := map[string]string{
		"a.txt": "alpha\nbeta\ngamma\n", "b.txt": "beta\ndelta\n", "c.json": `{"n":3,"list":[1,2,3]}`, "empty.txt": "",
	}
	tool := func(name, description string) ToolInfo {
		return ToolInfo{Name: name, Description: description, Schema: jsontext.Value(`{"type":"object"}`)}
	}
	text := func(s string) Outcome {
		quoted, _ := json.Marshal(s)
		return Outcome{Success: true, Content: quoted}
	}
	tries := 0
	return Host{
		Tools: []ToolInfo{
			tool("add", "Adds two numbers."), tool("flaky", "Fails twice, then works."), tool("list_files", "Lists the files of the project."),
			tool("mcp__orders__list", "Lists the orders of a customer."), tool("mcp__people__find", "Finds a person by number."),
			tool("read", "Reads a file of the project."),
		},
		Call: func(_ context.Context, name string, input jsontext.Value) Outcome {
			var in struct {
				Intent    string  `json:"intent"`
				Path      string  `json:"path"`
				A, B      float64 `json:",omitzero"`
				Arguments struct {
					ID int `json:"id"`
				} `json:"arguments"`
			}
			if err := json.Unmarshal(input, &in, json.MatchCaseInsensitiveNames(true)); err != nil {
				return Outcome{Error: "input: " + err.Error()}
			}
			if in.Intent == "" {
				return Outcome{Error: "intent is missing"}
			}
			switch name {
			case "add":
				return Outcome{Success: true, Content: jsontext.Value(fmt.Sprint(in.A + in.B))}
			case "big":
				return text(strings.Repeat("x", 1<<20-2))
			case "flaky":
				if tries++; tries < 3 {
					return Outcome{Error: "try again"}
				}
				return text("worked")
			case "list_files":
				return text("a.txt\nb.txt\nc.json\nempty.txt")
			case "read":
				if content, ok := files[in.Path]; ok {
					return text(content)
				}
				return Outcome{Error: "no such file: " + in.Path}
			case "mcp__orders__list":
				return Outcome{Success: true, Content: jsontext.Value(`[{"order":1,"person":7,"sum":10.5},{"order":2,"person":8,"sum":4},{"order":3,"person":7,"sum":1}]`)}
			case "mcp__people__find":
				names := map[int]string{7: "Ada", 8: "Bo"}
				if names[in.Arguments.ID] == "" {
					return Outcome{Error: "nobody"}
				}
				return Outcome{Success: true, Content: jsontext.Value(fmt.Sprintf(`{"id":%d,"name":%q}`, in.Arguments.ID, names[in.Arguments.ID]))}
			}
			return Outcome{Error: "there is no tool named " + name}
		},
	}
}

// run runs a source with small limits of time, so that a test of a limit is short.
func run(t *testing.T, source string, l Limits) (value, console string, err error) {
	t.Helper()
	if l.Time == 0 {
		l.Time = 3 * time.Second
	}
	var r Runner
	v, console, err := r.Run(t.Context(), source, world(), l)
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return string(v), console, err
}

func TestBasics(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"return 1 + 1", "2"},
		{"", "null"},
		{"return", "null"},
		{"return null", "null"},
		{"return 'x' // a comment at the end", `"x"`},
		{"return {a: [1, undefined, NaN], b: undefined}", `{"a":[1,null,null]}`},
		{"return tools.call('add', {intent: 'sum', a: 1, b: 2})", `{"success":true,"content":3}`},
		{"return tools.call('add', {a: 1})", `{"success":false,"error":"intent is missing"}`},
		{"return tools.call('read', {intent: 'x', path: 'empty.txt'})", `{"success":true,"content":""}`},
		{"return '\\ud800'", `"` + "\uFFFD" + `"`},
		{"return '\\u2028 \\u0000 é 😀'", "\"\u2028 \\u0000 é 😀\""},
		{"return JSON.parse('{\"__proto__\": 1}')", `{"__proto__":1}`},
	} {
		if got, _, err := run(t, c.source, Limits{}); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.source, got, err, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"\n\nnope.x", "line 3: ReferenceError: 'nope' is not defined"},
		{"let a = 1\nlet b = ;", "line 2: SyntaxError: unexpected token in expression: ';'"},
		{"throw new Error('my own')", "line 1: Error: my own"},
		{"throw 'text'", "text"},
		{"throw {a: 1}", "[object Object]"},
		{"throw null", "null"},
		{"\nconst x = await tools.list()", "no await"},
		{"return (async () => 1)()", "returned a promise"},
		{"return () => 1", "what the script returned is not JSON data (function)"},
		{"return Symbol()", "(symbol)"},
		{"return 1n", "BigInt"},
		{"const a = {}\na.a = a\nreturn a", "circular"},
		{"\ntools.call(7)", "line 2: TypeError: the name of the tool must be a string"},
		{"\n\ntools.callAll('x')", "line 3: TypeError: callAll takes an array"},
		{"tools.callAll([1])", "callAll takes an array of {name, input}"},
		{"tools.describe('raed')", "there is no tool of this name"},
		{"function f() {\n  g()\n}\nfunction g() {\n  throw new RangeError('deep')\n}\nf()", "line 5: RangeError: deep"},
	} {
		_, _, err := run(t, c.source, Limits{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.source, err, c.want)
		}
	}
}
