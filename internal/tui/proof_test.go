package tui

import (
	"testing"

	"magi-code/internal/mcp"
)

// TestStaleListingIsShown: /mcp shows how many tools there are, and that they are those of before a refresh that failed. R-L2.
func TestStaleListingIsShown(t *testing.T) {
	x := ready(t, 120, 40)
	x.w.servers[1] = mcp.Status{Name: "github", State: mcp.Ready, Stale: true, Tools: []mcp.ToolInfo{{Name: "a"}, {Name: "b"}},
		Err: &mcp.Error{Server: "github", Phase: mcp.PhaseList, Text: "the listing repeats a cursor"}}
	x.say("/mcp")
	x.settle()
	x.seesNot("stale") // of the first server
	x.press("down")
	x.settle()
	x.sees("2 tools", "listing is stale", "the listing repeats a cursor")
}
