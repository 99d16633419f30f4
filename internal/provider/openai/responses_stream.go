package openai

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
)

type streamEvent struct {
	Type        string         `json:"type"`
	OutputIndex int            `json:"output_index"`
	Delta       jsontext.Value `json:"delta"` // a string in every event that is read
	Item        jsontext.Value `json:"item"`
	Response    response       `json:"response"`
}

type response struct {
	Status     string         `json:"status"`
	Error      jsontext.Value `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []jsontext.Value `json:"output"`
	Usage  struct {
		Input        provider.Count `json:"input_tokens"`
		Output       provider.Count `json:"output_tokens"`
		InputDetails struct {
			Cached  provider.Count `json:"cached_tokens"`
			Written provider.Count `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

type outputItem struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	Phase   string `json:"phase"`
	Content []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Arguments string         `json:"arguments"`
	Encrypted string         `json:"encrypted_content"`
	Summary   []summaryEntry `json:"summary"`
}

type summaryEntry struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// reasoning is a reasoning item as it goes back: without its status, which the service sends but does not take.
type reasoning struct {
	Type      string         `json:"type"`
	ID        string         `json:"id,omitzero"`
	Summary   []summaryEntry `json:"summary"`
	Encrypted string         `json:"encrypted_content"`
}

// collector makes our events of theirs.
type collector struct {
	emit     func(provider.Event) bool
	streamed map[int]bool // output items of which deltas were emitted
	items    int          // output items that are complete
	calls    bool
	refused  bool
	left     bool
}

func (c *collector) send(e provider.Event) {
	if !c.left && !c.emit(e) {
		c.left = true
	}
}

// take handles one event and reports whether the answer is complete.
func (c *collector) take(data []byte) (done bool, err error) {
	if strings.HasPrefix(string(data[:min(len(data), 6)]), "[DONE]") {
		return false, nil
	}
	var e streamEvent
	if err := provider.Decode(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "error":
		return false, provider.StreamFailure(data)
	case "response.output_text.delta", "response.refusal.delta":
		return false, c.delta(provider.TextDelta, e)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, c.delta(provider.ThinkingDelta, e)
	case "response.output_item.done":
		c.items++
		return false, c.item(e.OutputIndex, e.Item)
	case "response.failed":
		if e.Response.Error.Kind() == '{' {
			return false, provider.StreamFailure(e.Response.Error)
		}
		return false, &provider.Failure{Code: "server_error"}
	case "response.completed", "response.incomplete":
		return true, c.end(e.Response)
	}
	return false, nil
}

func (c *collector) delta(kind provider.EventKind, e streamEvent) error {
	var text string
	if err := provider.Decode(e.Delta, &text); err != nil || text == "" {
		return err
	}
	if c.streamed == nil {
		c.streamed = map[int]bool{}
	}
	c.streamed[e.OutputIndex] = true
	c.send(provider.Event{Kind: kind, Text: text})
	return nil
}

func (c *collector) item(index int, raw jsontext.Value) error {
	var it outputItem
	if err := provider.Decode(raw, &it); err != nil {
		return err
	}
	var b provider.Block
	delta := provider.TextDelta
	switch it.Type {
	case "message":
		b = provider.Block{Kind: provider.Text, Text: c.said(it)}
		if b.Text == "" {
			return nil
		}
		if it.Phase != "" {
			b.Origin, b.Opaque = Name, opaque(kept{it.Phase})
		}
	case "function_call":
		c.calls = true
		id := it.CallID
		if id == "" {
			id = it.ID
		}
		b = provider.Block{Kind: provider.ToolCall, CallID: id, Name: it.Name, Input: provider.Input(it.Arguments)}
	case "reasoning":
		delta = provider.ThinkingDelta
		b = thought(it)
		if b.Text == "" && b.Opaque == nil {
			return nil
		}
	default:
		return nil // a kind that we did not ask for
	}
	if b.Text != "" && !c.streamed[index] { // what was streamed is always what the block says
		c.send(provider.Event{Kind: delta, Text: b.Text})
	}
	c.send(provider.Event{Kind: provider.BlockDone, Block: b})
	return nil
}

func (c *collector) said(it outputItem) string {
	var text strings.Builder
	for _, p := range it.Content {
		text.WriteString(p.Text)
		if p.Refusal != "" {
			c.refused = true
			text.WriteString(p.Refusal)
		}
	}
	return text.String()
}

func thought(it outputItem) provider.Block {
	b := provider.Block{Kind: provider.Thinking, Origin: Name}
	var texts []string
	for _, s := range it.Summary {
		texts = append(texts, s.Text)
	}
	for _, p := range it.Content {
		if len(it.Summary) == 0 {
			texts = append(texts, p.Text)
		}
	}
	b.Text = strings.Join(texts, "\n\n")
	if it.Encrypted != "" { // without it nobody could read it again, because nothing is stored
		back := reasoning{Type: "reasoning", ID: it.ID, Summary: it.Summary, Encrypted: it.Encrypted}
		if back.Summary == nil {
			back.Summary = []summaryEntry{}
		}
		b.Opaque = opaque(back)
	}
	return b
}

func opaque(v any) jsontext.Value {
	b, err := provider.Encode(v)
	if err != nil {
		return nil
	}
	return b
}

// end completes the answer. Items that came only with the last event are taken from it.
func (c *collector) end(r response) error {
	for i := c.items; i < len(r.Output); i++ {
		if err := c.item(i, r.Output[i]); err != nil {
			return err
		}
	}
	stop := provider.EndTurn
	switch {
	case r.Incomplete.Reason == "max_output_tokens":
		stop = provider.MaxTokens
	case r.Incomplete.Reason == "content_filter", c.refused:
		stop = provider.Refusal
	case c.calls:
		stop = provider.ToolUse
	}
	u := r.Usage
	cached, written := u.InputDetails.Cached.Int(), u.InputDetails.Written.Int()
	c.send(provider.Event{Kind: provider.Done, Stop: stop, Usage: provider.Usage{
		Input: max(u.Input.Int()-cached-written, 0), CacheRead: cached, CacheWrite: written, Output: u.Output.Int(),
	}})
	return nil
}
