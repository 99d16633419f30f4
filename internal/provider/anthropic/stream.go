package anthropic

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
)

type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	ContentBlock content        `json:"content_block"`
	Delta        delta          `json:"delta"`
	Usage        usage          `json:"usage"`
	Error        jsontext.Value `json:"error"`
}

type content struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	Thinking  string         `json:"thinking"`
	Signature string         `json:"signature"`
	Data      string         `json:"data"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
}

type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	PartialJSON string `json:"partial_json"`
	StopReason  string `json:"stop_reason"`
}

type usage struct {
	Input      provider.Count `json:"input_tokens"`
	CacheRead  provider.Count `json:"cache_read_input_tokens"`
	CacheWrite provider.Count `json:"cache_creation_input_tokens"`
	Output     provider.Count `json:"output_tokens"`
}

// open is a block that is being streamed.
type open struct {
	content
	text, thought, input strings.Builder
}

// collector makes our events of theirs.
type collector struct {
	emit  func(provider.Event) bool
	open  map[int]*open
	usage usage
	stop  string
	calls bool
	left  bool
}

func (c *collector) send(e provider.Event) {
	if !c.left && !c.emit(e) {
		c.left = true
	}
}

// take handles one event and reports whether the answer is complete.
func (c *collector) take(data []byte) (done bool, err error) {
	var e event
	if err := provider.Decode(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "error":
		return false, provider.StreamFailure(data)
	case "message_start":
		c.count(e.Message.Usage)
	case "content_block_start":
		c.start(e.Index, e.ContentBlock)
	case "content_block_delta":
		c.grow(e.Index, e.Delta)
	case "content_block_stop":
		c.close(e.Index)
	case "message_delta":
		c.count(e.Usage)
		if e.Delta.StopReason != "" {
			c.stop = e.Delta.StopReason
		}
	case "message_stop":
		return true, c.end()
	}
	return false, nil
}

// count keeps the latest number of each kind; they grow during an answer, and later events may leave some out.
func (c *collector) count(u usage) {
	c.usage.Input = max(c.usage.Input, u.Input)
	c.usage.CacheRead = max(c.usage.CacheRead, u.CacheRead)
	c.usage.CacheWrite = max(c.usage.CacheWrite, u.CacheWrite)
	c.usage.Output = max(c.usage.Output, u.Output)
}

func (c *collector) start(index int, b content) {
	if c.open == nil {
		c.open = map[int]*open{}
	}
	c.open[index] = &open{content: b}
	if b.Text != "" || b.Thinking != "" {
		c.grow(index, delta{Text: b.Text, Thinking: b.Thinking})
	}
}

func (c *collector) grow(index int, d delta) {
	o := c.open[index]
	if o == nil {
		return
	}
	o.input.WriteString(d.PartialJSON)
	if d.Signature != "" {
		o.Signature = d.Signature
	}
	if d.Text != "" {
		o.text.WriteString(d.Text)
		c.send(provider.Event{Kind: provider.TextDelta, Text: d.Text})
	}
	if d.Thinking != "" {
		o.thought.WriteString(d.Thinking)
		c.send(provider.Event{Kind: provider.ThinkingDelta, Text: d.Thinking})
	}
}

func (c *collector) close(index int) {
	o := c.open[index]
	if o == nil {
		return
	}
	delete(c.open, index)
	var b provider.Block
	switch o.Type {
	case "text":
		if o.text.Len() == 0 {
			return
		}
		b = provider.Block{Kind: provider.Text, Text: o.text.String()}
	case "tool_use":
		c.calls = true
		input := o.input.String()
		if input == "" {
			input = string(o.Input)
		}
		b = provider.Block{Kind: provider.ToolCall, CallID: o.ID, Name: o.Name, Input: provider.Input(input)}
	case "thinking":
		if o.Signature == "" && o.thought.Len() == 0 {
			return
		}
		b = provider.Block{Kind: provider.Thinking, Text: o.thought.String(), Origin: Name}
		if o.Signature != "" { // the service takes no thought back without it
			b.Opaque = opaque(thought{"thinking", b.Text, o.Signature})
		}
	case "redacted_thinking":
		b = provider.Block{Kind: provider.Thinking, Origin: Name, Opaque: opaque(hiddenThought{"redacted_thinking", o.Data})}
	default:
		return // a kind that we did not ask for
	}
	c.send(provider.Event{Kind: provider.BlockDone, Block: b})
}

type thought struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type hiddenThought struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

func opaque(t any) jsontext.Value {
	v, err := provider.Encode(t)
	if err != nil {
		return nil
	}
	return v
}

// end completes the answer; without a reason to stop it is not complete.
func (c *collector) end() error {
	if c.stop == "" {
		return provider.ErrBroken
	}
	if c.stop == "model_context_window_exceeded" {
		return &provider.Failure{Code: c.stop}
	}
	for _, i := range slices.Sorted(maps.Keys(c.open)) {
		c.close(i)
	}
	stop := provider.EndTurn
	switch c.stop {
	case "tool_use":
		stop = provider.ToolUse
	case "max_tokens":
		stop = provider.MaxTokens
	case "refusal":
		stop = provider.Refusal
	default:
		if c.calls {
			stop = provider.ToolUse
		}
	}
	c.send(provider.Event{Kind: provider.Done, Stop: stop, Usage: provider.Usage{
		Input: c.usage.Input.Int(), CacheRead: c.usage.CacheRead.Int(), CacheWrite: c.usage.CacheWrite.Int(), Output: c.usage.Output.Int(),
	}})
	return nil
}
