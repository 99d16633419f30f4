package session

import (
	"slices"
	"strings"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

// interrupted is the result of a call that has none.
const interrupted = "interrupted: the program ended before this call had a result; it may have taken effect"

// Messages rebuilds the conversation from entries, so that every provider accepts it: the first message is the
// user's, roles alternate, every tool call is answered once in the message after it, and nothing is empty. A call
// without a result in the conversation gets the one that was recorded for it, or else one that says that it was
// interrupted; orphaned and repeated results are dropped.
func Messages(entries []Entry) []provider.Message {
	recorded := make(map[string]provider.Block)
	seen := make(map[string]int)
	r := repair{recorded: recorded}
	for _, e := range entries {
		if e.Kind == Result && e.Under == "" && e.CallID != "" {
			seen[e.CallID]++
			recorded[e.CallID] = result(e.CallID, e.Text, e.IsError)
			if seen[e.CallID] > 1 { // some services count from zero in each answer: it could be of another call
				delete(recorded, e.CallID)
			}
		}
	}
	for _, e := range entries {
		if e.Kind != Message || e.Message == nil {
			continue
		}
		switch e.Message.Role {
		case provider.User:
			r.user(*e.Message)
		case provider.Assistant:
			r.assistant(*e.Message)
		}
	}
	r.answer()
	return r.out
}

// repair builds a history. What users said since the last answer of the model is gathered until the next one, because
// results have to come first and may be spread over several messages.
type repair struct {
	out      []provider.Message
	recorded map[string]provider.Block

	calls   []string // of the last assistant message, in order, not yet answered in out
	results map[string]provider.Block
	said    []provider.Block
}

func (r *repair) user(m provider.Message) {
	for _, b := range m.Blocks {
		switch {
		case b.Kind == provider.ToolResult:
			if _, twice := r.results[b.CallID]; !twice && b.CallID != "" {
				if r.results == nil {
					r.results = make(map[string]provider.Block)
				}
				r.results[b.CallID] = b
			}
		case b.Kind == provider.Text && strings.TrimSpace(b.Text) != "",
			b.Kind == provider.Image && len(b.Data) > 0:
			r.said = append(r.said, b)
		}
	}
}

func (r *repair) assistant(m provider.Message) {
	var blocks []provider.Block
	keep, calls := 0, []string(nil)
	for _, b := range m.Blocks {
		switch {
		case b.Kind == provider.Thinking:
			blocks = append(blocks, b)
			continue // kept only when something follows: services refuse a thought that leads to nothing
		case b.Kind == provider.Text && strings.TrimSpace(b.Text) != "":
		case b.Kind == provider.ToolCall && b.CallID != "" && b.Name != "" && !slices.Contains(calls, b.CallID):
			calls = append(calls, b.CallID)
		default:
			continue
		}
		blocks = append(blocks, b)
		keep = len(blocks)
	}
	blocks = blocks[:keep]
	if len(blocks) == 0 {
		return
	}
	r.answer()
	last := len(r.out) - 1
	if last < 0 {
		return // nobody asked
	}
	if r.out[last].Role == provider.Assistant {
		r.out[last].Blocks = append(r.out[last].Blocks, blocks...)
	} else {
		r.out = append(r.out, provider.Message{Role: provider.Assistant, Blocks: blocks})
	}
	r.calls = calls
}

// answer closes the user's side: results in the order of the calls, then what was said.
func (r *repair) answer() {
	var blocks []provider.Block
	for _, id := range r.calls {
		b, ok := r.results[id]
		if !ok {
			b, ok = r.recorded[id]
		}
		if !ok {
			b = result(id, interrupted, true)
		}
		blocks = append(blocks, b)
	}
	blocks = append(blocks, r.said...)
	if len(blocks) > 0 {
		r.out = append(r.out, provider.Message{Role: provider.User, Blocks: blocks})
	}
	r.calls, r.results, r.said = nil, nil, nil
}

func result(id, text string, failed bool) provider.Block {
	return provider.Block{
		Kind: provider.ToolResult, CallID: id, IsError: failed,
		Content: []tool.Content{{Kind: tool.Text, Text: text}},
	}
}
