package openai

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
)

type chunk struct {
	Error   jsontext.Value `json:"error"`
	Choices []struct {
		Delta        chatDelta `json:"delta"`
		FinishReason string    `json:"finish_reason"`
	} `json:"choices"`
	Usage chatUsage `json:"usage"`
}

type chatUsage struct {
	Prompt     provider.Count `json:"prompt_tokens"`
	Completion provider.Count `json:"completion_tokens"`
	Details    struct {
		Cached  provider.Count `json:"cached_tokens"`
		Written provider.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Cost jsontext.Value `json:"cost"` // OpenRouter: the credits charged, each a US dollar
}

// maxCost is a price of one answer that nobody asks, in US dollars.
const maxCost = 1e6

// dollars is the price of the answer, 0 where the service tells none or nonsense.
func (u chatUsage) dollars() float64 {
	usd, err := strconv.ParseFloat(string(u.Cost), 64)
	if err != nil || !(usd > 0 && usd < maxCost) {
		return 0
	}
	return usd
}

type chatDelta struct {
	Content          jsontext.Value `json:"content"` // a string, null, or a list of parts
	ReasoningContent string         `json:"reasoning_content"`
	Reasoning        jsontext.Value `json:"reasoning"` // a string where it is text
	Refusal          string         `json:"refusal"`
	ToolCalls        []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string         `json:"name"`
			Arguments jsontext.Value `json:"arguments"` // a piece of text, or the whole object
		} `json:"function"`
	} `json:"tool_calls"`
}

type chatOpenCall struct {
	index     int
	id, name  string
	arguments strings.Builder
}

// chatCollector makes our events of theirs.
type chatCollector struct {
	emit   func(provider.Event) bool
	origin string
	turn   int // messages so far, to make ids of calls where the server gives none
	left   bool

	text, thought strings.Builder
	older         bool // reasoning came in the field "reasoning"
	calls         []*chatOpenCall
	finish        string
	refused       bool
	usage         chatUsage
}

func (c *chatCollector) send(e provider.Event) {
	if !c.left && !c.emit(e) {
		c.left = true
	}
}

func (c *chatCollector) take(data []byte) error {
	var e chunk
	if err := provider.Decode(data, &e); err != nil {
		return err
	}
	if e.Error != nil && e.Error.Kind() != 'n' {
		return provider.StreamFailure(data)
	}
	if e.Usage.Prompt > 0 || e.Usage.Completion > 0 {
		c.usage = e.Usage
	}
	if len(e.Choices) == 0 {
		return nil
	}
	choice := e.Choices[0]
	if choice.FinishReason != "" {
		c.finish = choice.FinishReason
	}
	d := choice.Delta
	reasoning := plainText(d.Reasoning)
	if d.ReasoningContent != "" {
		reasoning = ""
	}
	c.older = c.older || reasoning != ""
	c.think(d.ReasoningContent + reasoning)
	c.say(plainText(d.Content))
	if d.Refusal != "" {
		c.refused = true
		c.say(d.Refusal)
	}
	for i, call := range d.ToolCalls {
		index := i
		if call.Index != nil {
			index = *call.Index
		}
		o := c.call(index, call.ID)
		o.name += call.Function.Name
		o.arguments.WriteString(argumentText(call.Function.Arguments))
	}
	return nil
}

func (c *chatCollector) think(s string) {
	if s != "" {
		c.thought.WriteString(s)
		c.send(provider.Event{Kind: provider.ThinkingDelta, Text: s})
	}
}

func (c *chatCollector) say(s string) {
	if s != "" {
		c.text.WriteString(s)
		c.send(provider.Event{Kind: provider.TextDelta, Text: s})
	}
}

// call finds the call that a piece belongs to. A new id means a new call even at an index that was used: some
// servers number every call 0.
func (c *chatCollector) call(index int, id string) *chatOpenCall {
	for i := len(c.calls) - 1; i >= 0; i-- {
		o := c.calls[i]
		if o.index == index && (id == "" || o.id == id || o.id == "") {
			if o.id == "" {
				o.id = id
			}
			return o
		}
	}
	o := &chatOpenCall{index: index, id: id}
	c.calls = append(c.calls, o)
	return o
}

// plainText is the text of a string, or of the text parts of a list.
func plainText(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		var s string
		if provider.Decode(v, &s) == nil {
			return s
		}
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		var out strings.Builder
		if provider.Decode(v, &parts) == nil {
			for _, p := range parts {
				out.WriteString(p.Text)
			}
		}
		return out.String()
	}
	return ""
}

func argumentText(v jsontext.Value) string {
	if v.Kind() == '{' {
		return string(v)
	}
	return plainText(v)
}

// end completes the answer. Without the end mark of the stream and without a reason to finish it is not complete.
func (c *chatCollector) end(marked bool) error {
	if c.finish == "" && (!marked || len(c.calls) == 0 && c.text.Len() == 0) {
		return provider.ErrBroken
	}
	if c.finish == "error" {
		return &provider.Failure{Code: "server_error"}
	}
	if c.thought.Len() > 0 {
		kept := keptThought{ReasoningContent: c.thought.String()}
		if c.older {
			kept = keptThought{Reasoning: c.thought.String()}
		}
		c.send(provider.Event{Kind: provider.BlockDone, Block: provider.Block{
			Kind: provider.Thinking, Text: c.thought.String(), Origin: c.origin, Opaque: opaque(kept)}})
	}
	if c.text.Len() > 0 {
		c.send(provider.Event{Kind: provider.BlockDone, Block: provider.Block{Kind: provider.Text, Text: c.text.String()}})
	}
	for i, o := range c.calls {
		if o.id == "" {
			o.id = fmt.Sprintf("call_%d_%d", c.turn, i)
		}
		c.send(provider.Event{Kind: provider.BlockDone, Block: provider.Block{
			Kind: provider.ToolCall, CallID: o.id, Name: o.name, Input: provider.Input(o.arguments.String())}})
	}
	stop := provider.EndTurn
	switch {
	case c.finish == "length":
		stop = provider.MaxTokens
	case c.finish == "content_filter", c.refused:
		stop = provider.Refusal
	case len(c.calls) > 0:
		stop = provider.ToolUse
	}
	cached, written := c.usage.Details.Cached.Int(), c.usage.Details.Written.Int()
	c.send(provider.Event{Kind: provider.Done, Stop: stop, Usage: provider.Usage{
		Input: max(c.usage.Prompt.Int()-cached-written, 0), CacheRead: cached, CacheWrite: written, Output: c.usage.Completion.Int(), Cost: c.usage.dollars(),
	}})
	return nil
}
