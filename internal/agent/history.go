package agent

import (
	"slices"
	"sync"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

// interruptedText is the result of a call that had no chance to end.
const interruptedText = "interrupted before it ended; what it did until then is unknown"

// history is what a model has seen. Messages in it are never changed, only followed by others.
type history struct {
	mu       sync.Mutex
	messages []provider.Message
}

func (h *history) add(m provider.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages = append(h.messages, m)
}

// copy returns the messages; blocks are shared, for nobody writes to them.
func (h *history) copy() []provider.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := slices.Clone(h.messages)
	for i := range out {
		out[i].Blocks = slices.Clone(out[i].Blocks)
	}
	return out
}

// repair returns the messages as every provider accepts them: each call has exactly one result, right after it; results
// without a call are dropped; neighbours of one role are one message; nothing is empty; a user speaks first.
// It does not change what it is given.
func repair(messages []provider.Message) []provider.Message {
	var out []provider.Message
	var open []string // calls of the last assistant message, not answered yet
	for _, m := range messages {
		if m.Role == provider.Assistant {
			out, open = settle(out, open), nil
			if len(out) == 0 {
				continue
			}
			m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), isHollow)
			for _, b := range m.Blocks {
				if b.Kind == provider.ToolCall {
					open = append(open, b.CallID)
				}
			}
			out = appendMessage(out, m)
			continue
		}
		var results, rest []provider.Block
		for _, b := range m.Blocks {
			switch {
			case b.Kind == provider.ToolResult:
				if i := slices.Index(open, b.CallID); i >= 0 {
					open = slices.Delete(open, i, i+1)
					results = append(results, b)
				}
			case !isHollow(b):
				rest = append(rest, b)
			}
		}
		for _, id := range open {
			results = append(results, interruptedResult(id))
		}
		open = nil
		out = appendMessage(out, provider.Message{Role: provider.User, Blocks: append(results, rest...)})
	}
	return settle(out, open)
}

// settle answers open calls as interrupted.
func settle(out []provider.Message, open []string) []provider.Message {
	if len(open) == 0 || len(out) == 0 {
		return out
	}
	m := provider.Message{Role: provider.User}
	for _, id := range open {
		m.Blocks = append(m.Blocks, interruptedResult(id))
	}
	return appendMessage(out, m)
}

// appendMessage adds m, joined to the last message when both have one role.
func appendMessage(out []provider.Message, m provider.Message) []provider.Message {
	if len(m.Blocks) == 0 {
		return out
	}
	if n := len(out); n > 0 && out[n-1].Role == m.Role {
		out[n-1].Blocks = append(slices.Clone(out[n-1].Blocks), m.Blocks...)
		return out
	}
	return append(out, m)
}

// isHollow reports whether a block says nothing, which some providers refuse.
func isHollow(b provider.Block) bool {
	switch b.Kind {
	case provider.Text:
		return b.Text == ""
	case provider.Thinking:
		return b.Text == "" && len(b.Opaque) == 0
	default:
		return false
	}
}

func interruptedResult(id string) provider.Block {
	return provider.Block{
		Kind: provider.ToolResult, CallID: id, IsError: true,
		Content: tool.ErrorResult(interruptedText).Content,
	}
}
