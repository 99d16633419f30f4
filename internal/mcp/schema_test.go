package mcp

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// R-N2, W5, B39: what stands under "arguments", for every shape of schema that was seen.
func TestWrapSchema(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"missing", ``, `{"type":"object","properties":{}}`},
		{"null", `null`, `{"type":"object","properties":{}}`},
		{"true", `true`, `{"type":"object","properties":{}}`},
		{"false", `false`, `{"type":"object","properties":{}}`},
		{"a string", `"object"`, `{"type":"object","properties":{}}`},
		{"an array", `[]`, `{"type":"object","properties":{}}`},
		{"empty", `{}`, `{"type":"object","properties":{}}`},
		{"usual", `{"type":"object","properties":{"path":{"type":"string","description":"where"}},"required":["path"],"additionalProperties":false}`,
			`{"type":"object","properties":{"path":{"type":"string","description":"where"}},"required":["path"],"additionalProperties":false}`},
		{"white space goes, numbers stay", ` { "type" : "object", "properties": {"n": {"type":"number","default": 1.50e3,"maximum":123456789012345678901} } } `,
			`{"type":"object","properties":{"n":{"type":"number","default":1.50e3,"maximum":123456789012345678901}}}`},
		{"no type", `{"properties":{"a":{}}}`, `{"properties":{"a":{}},"type":"object"}`},
		{"type list", `{"type":["object","null"]}`, `{"type":"object","properties":{}}`},
		{"upper case type", `{"type":"OBJECT","properties":{"a":{"type":"String"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{"type of something else", `{"type":"string","enum":["a"],"description":"d"}`, `{"description":"d","type":"object","properties":{}}`},
		{"top-level oneOf", `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object","properties":{}}`},
		{"$schema and $id go", `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://x/y","type":"object"}`, `{"type":"object","properties":{}}`},

		{"$defs", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/properties/arguments/$defs/A"}},"$defs":{"A":{"type":"string"}}}`},
		{"definitions", `{"type":"object","properties":{"a":{"$ref":"#/definitions/A%20b~1c"}},"definitions":{"A b/c":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/properties/arguments/definitions/A%20b~1c"}},"definitions":{"A b/c":{"type":"string"}}}`},
		{"into properties", `{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/arguments/properties/a"}}}`},
		{"recursion", `{"type":"object","properties":{"child":{"$ref":"#"}}}`, `{"type":"object","properties":{"child":{"$ref":"#/properties/arguments"}}}`},
		{"$recursiveRef", `{"type":"object","properties":{"child":{"$recursiveRef":"#"}}}`, `{"type":"object","properties":{"child":{"$ref":"#/properties/arguments"}}}`},
		{"root reference", `{"$ref":"#/definitions/In","definitions":{"In":{"type":"object"}}}`,
			`{"$ref":"#/properties/arguments/definitions/In","definitions":{"In":{"type":"object"}},"type":"object","properties":{}}`},
		{"anchor", `{"type":"object","properties":{"a":{"$ref":"#x"},"b":{"$ref":"#y"}},"$defs":{"X":{"$anchor":"x","type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#x"},"b":{}},"$defs":{"X":{"$anchor":"x","type":"string"}}}`},
		{"remote", `{"type":"object","properties":{"a":{"$ref":"https://evil/x.json#/a"},"b":{"$ref":"other.json"},"c":{"$ref":"file:///etc/passwd","description":"d"}}}`,
			`{"type":"object","properties":{"a":{},"b":{},"c":{"description":"d"}}}`},
		{"absolute to itself", `{"$id":"https://x/y.json","type":"object","properties":{"a":{"$ref":"https://x/y.json#/$defs/A"},"b":{"$ref":"y.json"}},"$defs":{"A":{}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/properties/arguments/$defs/A"},"b":{"$ref":"#/properties/arguments"}},"$defs":{"A":{}}}`},
		{"nested $id", `{"type":"object","$defs":{"R":{"$id":"https://x/r","properties":{"a":{"$ref":"#/$defs/I"}},"$defs":{"I":{"type":"string"}}}}}`,
			`{"type":"object","$defs":{"R":{"properties":{"a":{"$ref":"#/properties/arguments/$defs/R/$defs/I"}},"$defs":{"I":{"type":"string"}}}},"properties":{}}`},
		{"old anchor", `{"type":"object","properties":{"a":{"$ref":"#old"}},"definitions":{"A":{"$id":"#old","type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#old"}},"definitions":{"A":{"type":"string","$anchor":"old"}}}`},
		{"leads nowhere", `{"type":"object","properties":{"a":{"$ref":"#/$defs/Gone"},"b":{"$ref":7}}}`, `{"type":"object","properties":{"a":{},"b":{}}}`},
		{"leads to itself", `{"type":"object","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"},"C":{"$ref":"#/$defs/C"}}}`,
			`{"type":"object","$defs":{"A":{"$ref":"#/properties/arguments/$defs/B"},"B":{},"C":{}},"properties":{}}`},
		{"data is data", `{"type":"object","properties":{"a":{"enum":[{"$ref":"#/x"}],"const":{"$ref":"#/x"},"default":{"$ref":"http://x"},"examples":[{"$ref":"#/x"}]}}}`,
			`{"type":"object","properties":{"a":{"enum":[{"$ref":"#/x"}],"const":{"$ref":"#/x"},"default":{"$ref":"http://x"},"examples":[{"$ref":"#/x"}]}}}`},
		{"a property called $ref, $id, items, required", `{"type":"object","properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"items":{"type":"string"},"required":{"type":"boolean"}}}`,
			`{"type":"object","properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"items":{"type":"string"},"required":{"type":"boolean"}}}`},
		{"reference below an unknown keyword", `{"type":"object","x-more":{"a":{"$ref":"#/$defs/A"},"b":[{"$ref":"http://x"}]},"$defs":{"A":{}}}`,
			`{"type":"object","x-more":{"a":{"$ref":"#/properties/arguments/$defs/A"},"b":[{}]},"$defs":{"A":{}},"properties":{}}`},

		{"boolean schemas", `{"type":"object","properties":{"a":true,"b":false,"c":{"items":true}},"additionalProperties":true}`,
			`{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{"items":{}}},"additionalProperties":true}`},
		{"no schemas", `{"type":"object","properties":{"a":null,"b":"string","c":3,"d":["x"]},"additionalProperties":"no"}`,
			`{"type":"object","properties":{"a":{},"b":{},"c":{},"d":{}}}`},
		{"tuple", `{"type":"object","properties":{"p":{"type":"array","items":[{"type":"number"},{"type":"string"}],"additionalItems":false}}}`,
			`{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":{"not":{}}}}}`},
		{"reference into a tuple", `{"type":"object","properties":{"p":{"items":[{"type":"number"}]},"q":{"$ref":"#/properties/p/items/0"}}}`,
			`{"type":"object","properties":{"p":{"prefixItems":[{"type":"number"}]},"q":{"$ref":"#/properties/arguments/properties/p/prefixItems/0"}}}`},
		{"array without items", `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"]},"c":{"type":"array","prefixItems":[{}]}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"type":["array","null"],"items":{}},"c":{"type":"array","prefixItems":[{}],"items":{}}}}`},
		{"null and empty enum", `{"type":"object","properties":{"a":{"enum":null},"b":{"enum":[]},"c":{"enum":["x",null]}}}`,
			`{"type":"object","properties":{"a":{},"b":{},"c":{"enum":["x",null]}}}`},
		{"null required", `{"type":"object","required":null,"properties":{"a":{"required":true}}}`, `{"type":"object","properties":{"a":{}}}`},
		{"required but not described", `{"type":"object","properties":{"a":{}},"required":["a","b","b",3]}`, `{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]}`},
		{"required without properties", `{"type":"object","required":["a"]}`, `{"type":"object","required":["a"],"properties":{"a":{}}}`},
		{"branches may require what stands elsewhere", `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]}]}`, `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]}]}`},
		{"properties as PHP writes none", `{"type":"object","properties":[],"required":[]}`, `{"type":"object","properties":{}}`},
		{"draft-4 bounds", `{"type":"object","properties":{"a":{"minimum":0,"exclusiveMinimum":true},"b":{"maximum":9,"exclusiveMaximum":false},"c":{"exclusiveMinimum":1}}}`,
			`{"type":"object","properties":{"a":{"exclusiveMinimum":0},"b":{"maximum":9},"c":{"exclusiveMinimum":1}}}`},
		{"wrong values", `{"type":"object","properties":{"a":{"type":"any","title":3,"minLength":-1,"maxItems":"4","multipleOf":0,"uniqueItems":"yes","pattern":null,"allOf":[],"oneOf":{},"not":null,"format":"uuid"}}}`,
			`{"type":"object","properties":{"a":{"format":"uuid"}}}`},
		{"hidden characters", `{"type":"object","properties":{"a":{"description":"see\u200b this\u202e","title":"\u001b[31mred"}},"description":"plain ä"}`,
			`{"type":"object","properties":{"a":{"description":"see this","title":"red"}},"description":"plain ä"}`},
		{"types of other languages", `{"type":"dict","properties":{"a":{"type":"int"},"b":{"type":["float","bool","str","FLOAT",3]},"c":{"type":"list"},"d":{"type":[]},"e":{"type":null}}}`,
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["number","boolean","string"]},"c":{"type":"array","items":{}},"d":{},"e":{}}}`},
		{"odd anchor", `{"type":"object","properties":{"a":{"$anchor":"x y"},"b":{"$anchor":"v1.x"}}}`, `{"type":"object","properties":{"a":{},"b":{"$anchor":"v1.x"}}}`},
		{"odd patterns stay", `{"type":"object","properties":{"a":{"pattern":"^(?!x)(?<n>.)\\k<n>$"}}}`, `{"type":"object","properties":{"a":{"pattern":"^(?!x)(?<n>.)\\k<n>$"}}}`},
		{"property names of all kinds stay", `{"type":"object","properties":{"$filter":{},"a b":{},"ä":{},"` + strings.Repeat("n", 70) + `":{}}}`,
			`{"type":"object","properties":{"$filter":{},"a b":{},"ä":{},"` + strings.Repeat("n", 70) + `":{}}}`},
		{"dependencies", `{"type":"object","dependencies":{"a":["b"],"c":{"$ref":"#/$defs/D"},"e":3},"dependentRequired":{"a":["b"]},"$defs":{"D":{}}}`,
			`{"type":"object","dependencies":{"a":["b"],"c":{"$ref":"#/properties/arguments/$defs/D"},"e":{}},"dependentRequired":{"a":["b"]},"$defs":{"D":{}},"properties":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := wrapSchema(jsontext.Value(c.in))
			if err != nil {
				t.Fatal(err)
			}
			inner := strings.TrimSuffix(strings.TrimPrefix(string(got), schemaHead), schemaTail)
			if inner != c.want {
				t.Errorf("got  %s\nwant %s", inner, c.want)
			}
			checkWrapped(t, got)
		})
	}
}

func TestWrapSchemaBounds(t *testing.T) {
	big := `{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`
	deep := strings.Repeat(`{"not":`, maxSchemaDepth) + `{}` + strings.Repeat(`}`, maxSchemaDepth)
	for _, c := range []struct{ in, want string }{{big, "bytes"}, {deep, "nested"}, {`{"type":"object"`, "broken"}, {`{"a"`, "broken"}} {
		if _, err := wrapSchema(jsontext.Value(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s: %v", c.in, err)
		}
	}
	if _, err := wrapSchema(jsontext.Value(deep[len(`{"not":`) : len(deep)-1])); err != nil {
		t.Errorf("at the limit: %v", err)
	}
}

// S13: no schema within the bounds is slow. Each of these was quadratic in a straightforward reading.
func TestWrapSchemaIsLinear(t *testing.T) {
	var chain, wide, required strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&chain, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
		fmt.Fprintf(&wide, `"d%d":{"$ref":"#/$defs/d3999"},`, i)
		fmt.Fprintf(&required, `"r%d",`, i)
	}
	for _, in := range []string{
		`{"$defs":{` + chain.String() + `"d4000":{}}}`,
		`{"$defs":{` + wide.String() + `"x":{}}}`,
		`{"required":[` + strings.TrimSuffix(required.String(), ",") + `]}`,
	} {
		got, err := wrapSchema(jsontext.Value(in))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < len(in) {
			t.Errorf("%d bytes of %d", len(got), len(in))
		}
	}
}

// checkWrapped checks what holds for every result: it is valid, has the wrapper's shape, and all its references resolve.
func checkWrapped(t *testing.T, wrapped jsontext.Value) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(wrapped, &doc, jsontext.AllowDuplicateNames(true)); err != nil {
		t.Fatalf("%s: %v", wrapped, err)
	}
	args, ok := doc["properties"].(map[string]any)["arguments"].(map[string]any)
	if !ok || args["type"] != "object" || len(doc) != 4 || doc["additionalProperties"] != false {
		t.Fatalf("shape of %s", wrapped)
	}
	// The walk of the check is its own and knows schemas a little: what stands in enum, const, default, examples is data.
	var walk func(v any, asSchema bool)
	walk = func(v any, asSchema bool) {
		switch v := v.(type) {
		case map[string]any:
			for name, child := range v {
				if asSchema {
					switch name {
					case "enum", "const", "default", "example", "examples":
						continue
					case "$ref":
						if s, ok := child.(string); ok && !resolves(doc, s) {
							t.Errorf("%q does not resolve in %s", s, wrapped)
						}
						continue
					case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
						if m, ok := child.(map[string]any); ok {
							for _, c := range m {
								walk(c, true)
							}
							continue
						}
					}
				}
				walk(child, asSchema)
			}
		case []any:
			for _, c := range v {
				walk(c, asSchema)
			}
		}
	}
	walk(args, true)
}

// resolves reports whether a reference leads to a value of the document; plain anchors are taken on trust.
func resolves(doc any, ref string) bool {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && rest[0] != '/' {
		return ok
	}
	at := doc
	for i, step := range strings.Split(rest, "/") {
		if i == 0 {
			continue
		}
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[step]; !ok {
				return false
			}
		case []any:
			var n int
			if _, err := fmt.Sscanf(step, "%d", &n); err != nil || n < 0 || n >= len(v) {
				return false
			}
			at = v[n]
		default:
			return false
		}
	}
	return true
}

func FuzzWrapSchema(f *testing.F) {
	for _, s := range []string{
		``, `null`, `{}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#"}}}`,
		`{"$id":"x","items":[{"$ref":"#/items/0"}],"additionalItems":true}`, `{"required":["a","b"],"properties":[]}`,
		`{"properties":{"\ud800":{"enum":["\ud800"]}}}`, `{"$ref":"#/properties/~0~1%zz"}`, `{"x":{"$ref":"#/x"}}`, `{"additionalProperties":{"$ref":"#/additionalProperties"}}`,
		`{"allOf":[{"$ref":"#/allOf/1"},{"$ref":"#/allOf/0"}]}`, `{"not":{"$id":"http://a/b","$defs":{"c":{"$ref":"b#/$defs/c"}}}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := wrapSchema(jsontext.Value(in))
		if err != nil {
			return
		}
		if jsontext.Value(in).IsValid() { // names unique, as every message that gets here
			checkWrapped(t, got)
			inner := jsontext.Value(strings.TrimSuffix(strings.TrimPrefix(string(got), schemaHead), schemaTail))
			if !inner.IsValid() {
				t.Fatalf("%q became invalid: %s", in, inner)
			}
		}
	})
}

func BenchmarkWrapSchema(b *testing.B) {
	in := jsontext.Value(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"path":{"type":"string","description":"File to read"},` +
		`"edits":{"type":"array","items":{"$ref":"#/definitions/Edit"}},"dryRun":{"type":"boolean","default":false}},"required":["path","edits"],` +
		`"definitions":{"Edit":{"type":"object","properties":{"oldText":{"type":"string"},"newText":{"type":"string"}},"required":["oldText","newText"]}},"additionalProperties":false}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := wrapSchema(in); err != nil {
			b.Fatal(err)
		}
	}
}
