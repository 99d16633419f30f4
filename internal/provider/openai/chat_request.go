package openai

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

type chatRequest struct {
	Model         string         `json:"model"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options,omitzero"`
	MaxTokens     int            `json:"max_tokens,omitzero"`
	Messages      []*chatMessage `json:"messages"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	Parameters  jsontext.Value `json:"parameters"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          any        `json:"content"` // string, []chatPart with images, or null beside calls
	ReasoningContent string     `json:"reasoning_content,omitzero"`
	Reasoning        string     `json:"reasoning,omitzero"`
	ToolCalls        []chatCall `json:"tool_calls,omitzero"`
	ToolCallID       string     `json:"tool_call_id,omitzero"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitzero"`
	ImageURL *chatLink `json:"image_url,omitzero"`
}

type chatLink struct {
	URL string `json:"url"`
}

// keptThought says in which of the two fields in use a server sent its reasoning, and what.
type keptThought struct {
	ReasoningContent string `json:"reasoning_content,omitzero"`
	Reasoning        string `json:"reasoning,omitzero"`
}

func encodeChat(r provider.Request, origin string, usage bool, kept *provider.EncodedTools) ([]byte, error) {
	tools, err := kept.Get(r, func() (jsontext.Value, error) {
		list := make([]chatTool, len(r.Tools))
		for i, t := range r.Tools {
			list[i] = chatTool{Type: "function", Function: chatFunction{Name: t.Name, Description: t.Description, Parameters: provider.Schema(t.Schema)}}
		}
		return encodeList(list)
	})
	if err != nil {
		return nil, err
	}
	out := chatRequest{Model: r.Model, Stream: true, MaxTokens: max(r.MaxTokens, 0)}
	if usage {
		out.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if !provider.Blank(r.System) {
		out.Messages = append(out.Messages, &chatMessage{Role: "system", Content: r.System})
	}
	prompt := lastPrompt(r.Messages)
	for i, m := range r.Messages {
		if m.Role == provider.Assistant {
			if msg := chatAnswered(m, origin, i > prompt); msg != nil {
				out.Messages = append(out.Messages, msg)
			}
		} else {
			out.Messages = append(out.Messages, chatAsked(m)...)
		}
	}
	if out.Messages == nil {
		out.Messages = []*chatMessage{}
	}
	body, err := provider.Encode(out)
	if err != nil {
		return nil, err
	}
	return provider.WithTools(body, tools), nil
}

// lastPrompt is the index of the last message that a person wrote. Reasoning goes back only after it: servers that
// want it back want it within a turn, and some refuse older.
func lastPrompt(messages []provider.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		for _, b := range messages[i].Blocks {
			if messages[i].Role == provider.User && b.Kind == provider.Text {
				return i
			}
		}
	}
	return -1
}

func chatAnswered(m provider.Message, origin string, thinking bool) *chatMessage {
	out := &chatMessage{Role: "assistant"}
	var text []string
	for _, b := range m.Blocks {
		switch b.Kind {
		case provider.Text:
			if !provider.Blank(b.Text) {
				text = append(text, b.Text)
			}
		case provider.Thinking:
			var k keptThought
			if thinking && b.Origin == origin && len(b.Opaque) > 0 && json.Unmarshal(b.Opaque, &k) == nil {
				out.ReasoningContent += k.ReasoningContent
				out.Reasoning += k.Reasoning
			}
		case provider.ToolCall:
			c := chatCall{ID: provider.CallID(b.CallID), Type: "function"}
			c.Function.Name, c.Function.Arguments = b.Name, string(provider.InputObject(b.Input))
			out.ToolCalls = append(out.ToolCalls, c)
		}
	}
	if len(text) > 0 {
		out.Content = strings.Join(text, "\n\n")
	}
	if len(text) == 0 && len(out.ToolCalls) == 0 {
		return nil
	}
	return out
}

// chatAsked makes one message per tool result, then one of the rest. Images of results go there as well: a tool
// message holds only text.
func chatAsked(m provider.Message) []*chatMessage {
	var out []*chatMessage
	var parts []chatPart
	images := false
	image := func(mime string, data []byte) {
		if !provider.TakesImage(mime, len(data), maxImage) {
			parts = append(parts, chatPart{Type: "text", Text: provider.Placeholder("image", mime, len(data))})
			return
		}
		images = true
		parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatLink{provider.DataURL(mime, data)}})
	}
	for _, b := range m.Blocks {
		switch b.Kind {
		case provider.Text:
			if !provider.Blank(b.Text) {
				parts = append(parts, chatPart{Type: "text", Text: b.Text})
			}
		case provider.Image:
			image(b.MIME, b.Data)
		case provider.ToolResult:
			out = append(out, &chatMessage{Role: "tool", ToolCallID: provider.CallID(b.CallID), Content: resultText(b)})
			for _, c := range b.Content {
				if c.Kind == tool.Image {
					parts = append(parts, chatPart{Type: "text", Text: "Image from the result of call " + provider.CallID(b.CallID) + ":"})
					image(c.MIME, c.Data)
				}
			}
		}
	}
	if len(parts) == 0 {
		return out
	}
	rest := &chatMessage{Role: "user", Content: parts}
	if !images { // plain text is what every server understands
		var text []string
		for _, p := range parts {
			text = append(text, p.Text)
		}
		rest.Content = strings.Join(text, "\n\n")
	}
	return append(out, rest)
}

// resultText is the text of a tool result. Images are sent beside it; the API has no mark for failed calls, so the
// text says it.
func resultText(b provider.Block) string {
	var text []string
	for _, c := range b.Content {
		switch {
		case c.Kind == tool.Image:
			text = append(text, "[image "+c.MIME+"]")
		case !provider.Blank(c.Text):
			text = append(text, c.Text)
		}
	}
	out := strings.Join(text, "\n")
	if out == "" {
		out = provider.NoOutput
	}
	if b.IsError {
		out = "The call failed: " + out
	}
	return out
}
