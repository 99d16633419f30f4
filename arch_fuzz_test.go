package main

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// parsers are the packages that read bytes of others, and the fuzz targets that they must have.
var parsers = map[string]string{
	"internal/acp":            "FuzzFrames FuzzClientTools",
	"internal/agent":          "FuzzProfile",
	"internal/builtin":        "FuzzArguments FuzzGlob",
	"internal/hook":           "FuzzHookOutput",
	"internal/jsondoc":        "FuzzParse",
	"internal/mcp":            "FuzzToolsList FuzzToolName FuzzWrapSchema FuzzResult",
	"internal/mcp/approval":   "FuzzRecord",
	"internal/mcp/definition": "FuzzLoad FuzzName FuzzExpand FuzzCheckURL",
	"internal/mcp/endpoint":   "FuzzParse FuzzChallenge",
	"internal/mcp/jsonrpc":    "FuzzDecode FuzzFrame",
	"internal/mcp/oauth":      "FuzzToken FuzzMetadata",
	"internal/permission":     "FuzzMatch",
	"internal/provider":       "FuzzFailure",
	"internal/secret":         "FuzzScrubber",
	"internal/session":        "FuzzEntries",
	"internal/settings":       "FuzzLoad FuzzPatch",
	"internal/sse":            "FuzzSSE",
	"internal/tool":           "FuzzParse",
	"internal/tui/markdown":   "FuzzRender",
	"internal/untrusted":      "FuzzText",
}

// TestFuzzTargets: every parser of untrusted bytes has its fuzz targets (R-Q2).
func TestFuzzTargets(t *testing.T) {
	has := map[string][]string{}
	for _, s := range tree(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() && strings.HasPrefix(f.Name.Name, "Fuzz") {
				has[path.Dir(s.path)] = append(has[path.Dir(s.path)], f.Name.Name)
			}
		}
	}
	for dir, names := range parsers {
		for _, name := range strings.Fields(names) {
			if !slices.Contains(has[dir], name) {
				t.Errorf("%s has no %s", dir, name)
			}
		}
	}
}
