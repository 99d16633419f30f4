package cli

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"magi-code/internal/mcp/definition"
	"magi-code/internal/settings"
)

// The schemas in docs/schemas say what the parsers accept: here both judge the same documents, and know the same names.

// readSchema reads and resolves one schema of the project.
func readSchema(t *testing.T, path string) *jsonschema.Resolved {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return resolved
}

const (
	mcpSchema      = "docs/schemas/mcp.schema.json"
	settingsSchema = "docs/schemas/settings.schema.json"
)

// validate judges a document by a schema.
func validate(s *jsonschema.Resolved, doc string) error {
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		return err
	}
	return s.Validate(v)
}

// acceptServers is what magi-code says of a .mcp.json whose servers are all approved and whose variables are all set.
func acceptServers(t *testing.T, doc string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), definition.FileName)
	writeFile(t, path, doc)
	list, _, err := definition.LoadSource(path, definition.Project)
	for _, s := range list {
		_, e := s.Expand(func(name string) (string, bool) {
			if name == "BASE" {
				return "https://mcp.example.com", true
			}
			return "value", true
		})
		err = errors.Join(err, e)
	}
	return err
}

// acceptSettings is what magi-code says of a global settings.json.
func acceptSettings(t *testing.T, doc string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.json")
	writeFile(t, path, doc)
	_, _, err := settings.Load(path, filepath.Join(t.TempDir(), "none"))
	return err
}

// sameVerdict holds a schema to a parser.
func sameVerdict(t *testing.T, schema *jsonschema.Resolved, accept func(*testing.T, string) error, doc string, want bool) {
	t.Helper()
	if err := accept(t, doc); (err == nil) != want {
		t.Errorf("the parser says %v of %s", err, doc)
	}
	if err := validate(schema, doc); (err == nil) != want {
		t.Errorf("the schema says %v of %s", err, doc)
	}
}

// TestSchemaOfServers: docs/schemas/mcp.schema.json accepts what magi-code accepts in .mcp.json, and nothing else.
func TestSchemaOfServers(t *testing.T) {
	schema := readSchema(t, mcpSchema)
	good := []string{
		`{"command":"x"}`, `{"type":"stdio","command":"x","args":[],"env":{}}`, `{"command":"${A}","args":["a","$B","$$","${C:-}","$${D}"]}`,
		`{"command":"x","env":{"HOME":"${HOME}","a-b":""},"timeout":1}`, `{"command":"x","unknown":null,"enabled":null,"timeout":300}`,
		`{"type":"http","url":"https://mcp.example.com/mcp?q=1#f"}`, `{"type":"http","url":"http://127.0.0.1:80/","headers":{"X-Team":"a\tb"}}`,
		`{"type":"http","url":"http://[::1]:8080"}`, `{"type":"http","url":"http://localhost/${A}"}`, `{"type":"http","url":"${BASE}/mcp"}`,
		`{"type":"http","url":"https://x.example","oauth":{}}`, `{"type":"http","url":"https://[2001:db8::1]/","headers":{"Authorization":"Bearer ${T}"}}`,
		`{"type":"http","url":"https://x.example","headers":{"X-A":"b"},"oauth":{"client_id":"","scopes":["read:all"],"authorization_server":"https://y.example/x"}}`,
		`{"type":"http","url":"https://x.example","oauth":{"authorization_server":"","other":1}}`,
	}
	bad := []string{
		`{}`, `[]`, `null`, `{"command":null}`, `{"command":""}`, `{"command":" "}`, `{"command":"~/x"}`, `{"command":"${A"}`, `{"command":"${1}"}`,
		`{"command":"x","args":"y"}`, `{"command":"x","args":[1]}`, `{"command":"x","args":null}`, `{"command":"x","env":{"A":1}}`, `{"command":"x","env":{"":"1"}}`,
		`{"command":"x","env":{"A=B":"1"}}`, `{"command":"x","env":[]}`, `{"command":"x","Args":[]}`, `{"command":"x","url":"https://x.example"}`,
		`{"command":"x","headers":{}}`, `{"command":"x","oauth":{}}`, `{"command":"x","timeout":0}`, `{"command":"x","timeout":301}`, `{"command":"x","timeout":1.5}`,
		`{"command":"x","timeout":"30"}`, `{"type":"sse","url":"https://x.example"}`, `{"type":"Stdio","command":"x"}`, `{"type":null,"command":"x"}`,
		`{"url":"https://x.example"}`, `{"type":"http"}`, `{"type":"http","url":"https://x.example","command":"x"}`, `{"type":"http","url":"https://x.example","args":[]}`,
		`{"type":"http","url":"http://x.example"}`, `{"type":"http","url":"http://127.1/"}`, `{"type":"http","url":"http://127.0.0.256"}`, `{"type":"http","url":"https://u:p@x.example"}`,
		`{"type":"http","url":"ftp://x.example"}`, `{"type":"http","url":""}`, `{"type":"http","url":"https://x.example:0"}`, `{"type":"http","url":"https://x.example:"}`,
		`{"type":"http","url":"https://x.example/a b"}`, `{"type":"http","url":"https://x.example","headers":{"A B":"c"}}`, `{"type":"http","url":"https://x.example","headers":{"A":"b\nc"}}`,
		`{"type":"http","url":"https://x.example","headers":{"Content-Type":"c"}}`, `{"type":"http","url":"https://x.example","headers":{"host":"c"}}`,
		`{"type":"http","url":"https://x.example","oauth":null}`, `{"type":"http","url":"https://x.example","oauth":{"Scopes":[]}}`,
		`{"type":"http","url":"https://x.example","oauth":{"\u017fcopes":[]}}`, `{"type":"http","url":"https://x.example","oauth":{"client_id":" a"}}`,
		`{"type":"http","url":"https://x.example","oauth":{"scopes":["a b"]}}`, `{"type":"http","url":"https://x.example","oauth":{"scopes":"a"}}`,
		`{"type":"http","url":"https://x.example","oauth":{"authorization_server":"http://x.example"}}`,
		`{"type":"http","url":"https://x.example","headers":{"authorization":"x"},"oauth":{}}`, `{"type":"http","url":"https://x.example","headers":{"Proxy-Authorization":"x"},"oauth":{}}`,
	}
	for _, entry := range good {
		sameVerdict(t, schema, acceptServers, `{"mcpServers":{"a":`+entry+`}}`, true)
	}
	for _, entry := range bad {
		sameVerdict(t, schema, acceptServers, `{"mcpServers":{"a":`+entry+`}}`, false)
	}
	for name, want := range map[string]bool{
		"a": true, "_a": true, "A-b_c9": true, "-": true, strings.Repeat("n", 56): true,
		"": false, "a_": false, "a__b": false, "__a": false, "ä": false, "a b": false, strings.Repeat("n", 57): false,
	} {
		sameVerdict(t, schema, acceptServers, `{"mcpServers":{`+strconv.Quote(name)+`:{"command":"x"}}}`, want)
	}
	for doc, want := range map[string]bool{
		`{}`: true, `{"servers":{},"other":1}`: true, `{"mcpServers":{}}`: true,
		`[]`: false, `{"mcpservers":{}}`: false, `{"mcpServers":[]}`: false, `{"mcpServers":null}`: false,
	} {
		sameVerdict(t, schema, acceptServers, doc, want)
	}
}

// TestSchemaOfSettings: docs/schemas/settings.schema.json accepts what magi-code accepts in settings.json, and nothing else.
func TestSchemaOfSettings(t *testing.T) {
	schema := readSchema(t, settingsSchema)
	root := strconv.Quote(t.TempDir())
	for _, doc := range []string{
		`{}`, `{"provider":"x","model":"y","max_turns":1}`, `{"other":null,"max_turns":10000}`, `{"permissions":{"allow":["a"],"ask":[],"deny":["*"],"more":1}}`,
		`{"capabilities":{"mcp_result_bytes":16777216,"tools":{"disabled":["a"],"code_mode":{"disabled":["b"]}}}}`,
		`{"capabilities":{"mcp_approvals":{"/x/.mcp.json":{"a":false,"b":{"version":1,"digest":"` + strings.Repeat("0a", 32) + `"}}}}}`,
		`{"workspace":{"extra_roots":[` + root + `]}}`, `{"endpoints":{"e":{"base_url":"https://x.example/v1","api_key_env":"A_B","model":"m"}}}`,
		`{"endpoints":{"e":{"base_url":"http://localhost:11434/v1"},"f":{"base_url":"http://127.0.0.2?a=b"},"g":{"base_url":"http://[::1]/"}}}`,
		`{"hooks":[]}`, `{"hooks":[{"event":"after_tool","tools":["a"],"command":["c","d"],"timeout_ms":60000,"on_failure":"block"}]}`,
	} {
		sameVerdict(t, schema, acceptSettings, doc, true)
	}
	for _, doc := range []string{
		`[]`, `null`, `{"provider":""}`, `{"provider":" "}`, `{"model":1}`, `{"Model":"x"}`, `{"max_turns":0}`, `{"max_turns":10001}`, `{"max_turns":1.5}`, `{"max_turns":"9"}`,
		`{"permissions":[]}`, `{"permissions":{"deny":"bash"}}`, `{"permissions":{"Deny":[]}}`, `{"permissions":{"deny":[""]}}`, `{"permissions":{"ask":[1]}}`, `{"permissions":{"allow":null}}`,
		`{"capabilities":{"mcp_approvals":[]}}`, `{"capabilities":{"mcp_result_bytes":0}}`, `{"capabilities":{"mcp_result_bytes":16777217}}`,
		`{"capabilities":{"tools":{"Disabled":[]}}}`, `{"capabilities":{"tools":[]}}`, `{"capabilities":{"tools":{"code_mode":{"di\u017fabled":[]}}}}`, `{"capabilities":{"tools":{"code_mode":true}}}`,
		`{"workspace":{"extra_roots":["notes"]}}`, `{"workspace":{"extra_roots":[""]}}`, `{"wor\u212aspace":{}}`, `{"endpoints":[]}`, `{"endpoints":{"e":{}}}`, `{"endpoints":{"":{"base_url":"https://x.example"}}}`,
		`{"endpoints":{"e":{"base_url":"http://x.example"}}}`, `{"endpoints":{"e":{"base_url":"https://a@x.example"}}}`, `{"endpoints":{"e":{"base_url":"https://x.example","api_key_env":"sk-1"}}}`,
		`{"endpoints":{"e":{"base_url":"https://x.example","Model":"x"}}}`, `{"hooks":{}}`, `{"hooks":[{"event":"before_tool"}]}`, `{"hooks":[{"command":["x"]}]}`,
		`{"hooks":[{"event":"never","command":["x"]}]}`, `{"hooks":[{"event":"before_tool","command":[]}]}`, `{"hooks":[{"event":"before_tool","command":"x"}]}`,
		`{"hooks":[{"event":"before_tool","command":["x"],"timeout_ms":60001}]}`, `{"hooks":[{"event":"before_tool","command":["x"],"on_failure":"stop"}]}`,
		`{"hooks":[{"event":"before_tool","command":["x"],"Tools":[]}]}`,
	} {
		sameVerdict(t, schema, acceptSettings, doc, false)
	}
}

// TestSchemaKeys: the schemas and the parsers know the same names.
func TestSchemaKeys(t *testing.T) {
	for path, known := range map[string][]string{
		mcpSchema:      append(namesIn(t, "../mcp/definition/parse.go"), append(namesIn(t, "../mcp/definition/fields.go"), "mcpServers")...),
		settingsSchema: namesIn(t, "../settings/reader.go"),
	} {
		inSchema := map[string]bool{}
		properties(readSchema(t, path).Schema(), inSchema)
		if len(inSchema) < 8 || len(known) < 8 {
			t.Errorf("%s: names are not found any more: %v, %v", path, inSchema, known)
		}
		slices.Sort(known)
		for _, name := range slices.Compact(known) {
			if !inSchema[name] {
				t.Errorf("%s lacks %s, which the parser knows", path, name)
			}
			delete(inSchema, name)
		}
		if len(inSchema) > 0 {
			t.Errorf("%s has %v, which the parser does not know", path, slices.Sorted(maps.Keys(inSchema)))
		}
	}
}

// properties collects the names of the properties of a schema.
func properties(s *jsonschema.Schema, into map[string]bool) {
	if s == nil {
		return
	}
	for name, p := range s.Properties {
		into[name] = true
		properties(p, into)
	}
	for _, d := range s.Defs {
		properties(d, into)
	}
	properties(s.AdditionalProperties, into)
	properties(s.Items, into)
	delete(into, "version") // those of an approval are read by its own package
	delete(into, "digest")
}

// namesIn finds the names that a parser knows: the first texts of []field{{...}} and the elements of []string{...} given to a
// function called unknown or returned by one called knownFields.
func namesIn(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	text := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, _ := strconv.Unquote(lit.Value)
			names = append(names, name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if a, ok := n.Type.(*ast.ArrayType); ok && isIdent(a.Elt, "field") {
				for _, e := range n.Elts {
					text(e.(*ast.CompositeLit).Elts[0])
				}
			}
		case *ast.FuncDecl:
			if n.Name.Name == "knownFields" {
				ast.Inspect(n, func(n ast.Node) bool { e, _ := n.(ast.Expr); text(e); return true })
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "unknown" {
				if list, ok := n.Args[len(n.Args)-1].(*ast.CompositeLit); ok {
					for _, e := range list.Elts {
						text(e)
					}
				}
			}
		}
		return true
	})
	return names
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
