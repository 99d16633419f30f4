package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"magi-code/internal/provider"
)

// TestRepair: whatever a history lacks, a request made of it is one that providers accept.
func TestRepair(t *testing.T) {
	call := func(id string) provider.Block { return provider.Block{Kind: provider.ToolCall, CallID: id, Name: "x"} }
	result := func(id string) provider.Block { return provider.Block{Kind: provider.ToolResult, CallID: id} }
	text := func(s string) provider.Block { return provider.Block{Kind: provider.Text, Text: s} }
	user := func(b ...provider.Block) provider.Message { return provider.Message{Role: provider.User, Blocks: b} }
	model := func(b ...provider.Block) provider.Message {
		return provider.Message{Role: provider.Assistant, Blocks: b}
	}
	list := func(m ...provider.Message) []provider.Message { return m }
	whole := list(user(text("a")), model(text("t"), call("1"), call("2")), user(result("1"), result("2")), model(text("b")))
	for name, c := range map[string]struct{ in, want []provider.Message }{
		"nothing":           {nil, nil},
		"whole":             {whole, whole},
		"open at the end":   {whole[:2], list(whole[0], whole[1], user(interruptedResult("1"), interruptedResult("2")))},
		"one missing":       {list(whole[0], whole[1], user(result("2"), text("c"))), list(whole[0], whole[1], user(result("2"), interruptedResult("1"), text("c")))},
		"never answered":    {list(whole[0], whole[1], model(text("b"))), list(whole[0], whole[1], user(interruptedResult("1"), interruptedResult("2")), model(text("b")))},
		"orphan":            {list(user(text("a"), result("9")), model(text("b"))), list(user(text("a")), model(text("b")))},
		"twice":             {list(whole[0], whole[1], user(result("1"), result("1"), result("2"))), whole[:3]},
		"neighbours":        {list(user(text("a")), user(text("b")), model(text("c")), model(text("d"))), list(user(text("a"), text("b")), model(text("c"), text("d")))},
		"hollow":            {list(user(text("a")), model(text(""))), list(user(text("a")))},
		"model first":       {list(model(text("x"), call("1")), user(result("1"), text("a"))), list(user(text("a")))},
		"result after text": {list(whole[0], whole[1], user(text("c"), result("1"), result("2"))), list(whole[0], whole[1], user(result("1"), result("2"), text("c")))},
	} {
		got := repair(c.in)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(got, repair(got)); diff != "" {
			t.Errorf("%s: not stable: %s", name, diff)
		}
	}
}
