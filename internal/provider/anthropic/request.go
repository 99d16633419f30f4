package anthropic

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	System    []*block  `json:"system,omitzero"`
	Messages  []message `json:"messages"`
}

type definition struct {
	Name         string         `json:"name"`
	Description  string         `json:"description,omitzero"`
	InputSchema  jsontext.Value `json:"input_schema"`
	CacheControl *cache         `json:"cache_control,omitzero"`
}

type message struct {
	Role    provider.Role `json:"role"`
	Content []any         `json:"content"` // *block, or jsontext.Value for what the service wants back unchanged
}

type block struct {
	Type         string         `json:"type"`
	Text         string         `json:"text,omitzero"`
	Source       *source        `json:"source,omitzero"`
	ID           string         `json:"id,omitzero"`
	Name         string         `json:"name,omitzero"`
	Input        jsontext.Value `json:"input,omitzero"`
	ToolUseID    string         `json:"tool_use_id,omitzero"`
	Content      []*block       `json:"content,omitzero"`
	IsError      bool           `json:"is_error,omitzero"`
	CacheControl *cache         `json:"cache_control,omitzero"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // base64
}

type cache struct {
	Type string `json:"type"`
}

// cachedMessages is how many of the latest user messages end in a cache mark: the last, so that this request is
// remembered, and the one before, where the previous request was. With system and tools that makes the four marks
// that the service allows.
const cachedMessages = 2

// encodeTools writes the tool list of a request. The last tool gets a cache mark.
func encodeTools(r provider.Request) (jsontext.Value, error) {
	if len(r.Tools) == 0 {
		return nil, nil
	}
	list := make([]definition, len(r.Tools))
	for i, t := range r.Tools {
		list[i] = definition{Name: t.Name, Description: t.Description, InputSchema: provider.Schema(t.Schema)}
	}
	list[len(list)-1].CacheControl = &cache{Type: "ephemeral"}
	return provider.Encode(list)
}

// encode writes the body of a request. Nothing of r is changed: marks are made on blocks of our own.
func encode(r provider.Request, kept *provider.EncodedTools) ([]byte, error) {
	tools, err := kept.Get(r, func() (jsontext.Value, error) { return encodeTools(r) })
	if err != nil {
		return nil, err
	}
	out := request{Model: r.Model, MaxTokens: r.MaxTokens, Stream: true, Messages: []message{}}
	if out.MaxTokens <= 0 {
		out.MaxTokens = DefaultMaxTokens
	}
	mark := &cache{Type: "ephemeral"}
	if !provider.Blank(r.System) {
		out.System = []*block{{Type: "text", Text: r.System, CacheControl: mark}}
	}
	for i, m := range r.Messages {
		content := convert(m)
		if m.Role == provider.Assistant && i == len(r.Messages)-1 {
			content = trimEnd(content)
		}
		if len(content) > 0 {
			out.Messages = append(out.Messages, message{Role: m.Role, Content: content})
		}
	}
	marked := 0
	for i := len(out.Messages) - 1; i >= 0 && marked < cachedMessages; i-- {
		m := out.Messages[i]
		if last, ok := m.Content[len(m.Content)-1].(*block); ok && m.Role == provider.User {
			last.CacheControl = mark
			marked++
		}
	}
	body, err := provider.Encode(out)
	if err != nil {
		return nil, err
	}
	return provider.WithTools(body, tools), nil
}

// convert leaves out what the service refuses (blank text, thoughts of other services) and puts tool results first,
// where it wants them.
func convert(m provider.Message) []any {
	var results, rest []any
	for _, b := range m.Blocks {
		switch b.Kind {
		case provider.Text:
			if !provider.Blank(b.Text) {
				rest = append(rest, &block{Type: "text", Text: b.Text})
			}
		case provider.Thinking:
			if b.Origin == Name && b.Opaque.Kind() == '{' && m.Role == provider.Assistant {
				rest = append(rest, b.Opaque)
			}
		case provider.Image:
			rest = append(rest, picture(b.MIME, b.Data))
		case provider.ToolCall:
			rest = append(rest, &block{Type: "tool_use", ID: provider.CallID(b.CallID), Name: b.Name, Input: provider.InputObject(b.Input)})
		case provider.ToolResult:
			results = append(results, &block{Type: "tool_result", ToolUseID: provider.CallID(b.CallID), Content: parts(b.Content), IsError: b.IsError})
		}
	}
	return append(results, rest...)
}

func picture(mime string, data []byte) *block {
	if !provider.TakesImage(mime, len(data), maxImage) {
		return &block{Type: "text", Text: provider.Placeholder("image", mime, len(data))}
	}
	return &block{Type: "image", Source: &source{Type: "base64", MediaType: mime, Data: data}}
}

func parts(content []tool.Content) []*block {
	var out []*block
	for _, c := range content {
		switch {
		case c.Kind == tool.Image:
			out = append(out, picture(c.MIME, c.Data))
		case !provider.Blank(c.Text):
			out = append(out, &block{Type: "text", Text: c.Text})
		}
	}
	if len(out) == 0 {
		out = []*block{{Type: "text", Text: provider.NoOutput}}
	}
	return out
}

// trimEnd cuts white space at the end of an answer that the model is to continue; the service refuses it.
func trimEnd(content []any) []any {
	if len(content) == 0 {
		return content
	}
	if last, ok := content[len(content)-1].(*block); ok && last.Type == "text" {
		last.Text = strings.TrimRight(last.Text, " \t\r\n")
	}
	return content
}
