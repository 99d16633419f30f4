package openai

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

type responsesRequest struct {
	Model           string   `json:"model"`
	Stream          bool     `json:"stream"`
	Store           bool     `json:"store"` // false: the service keeps nothing
	Instructions    string   `json:"instructions,omitzero"`
	Input           []any    `json:"input"` // *item, or jsontext.Value for what the service wants back unchanged
	Include         []string `json:"include,omitzero"`
	MaxOutputTokens int      `json:"max_output_tokens,omitzero"`
	PromptCacheKey  string   `json:"prompt_cache_key,omitzero"`
}

type function struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	Parameters  jsontext.Value `json:"parameters"`
	Strict      bool           `json:"strict"` // false: schemas of MCP servers are not in the strict subset
}

type item struct {
	Type      string        `json:"type"`
	Role      provider.Role `json:"role,omitzero"`
	Phase     string        `json:"phase,omitzero"`
	Content   []*part       `json:"content,omitzero"`
	CallID    string        `json:"call_id,omitzero"`
	Name      string        `json:"name,omitzero"`
	Arguments *string       `json:"arguments,omitzero"`
	Output    any           `json:"output,omitzero"` // string, or []*part when there are images
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitzero"`
	ImageURL string `json:"image_url,omitzero"`
	Detail   string `json:"detail,omitzero"`
}

// kept is what a text block keeps for the service: models label answers in their course and final ones, and do
// better when they see the labels again.
type kept struct {
	Phase string `json:"phase"`
}

func encodeResponses(r provider.Request, sealed bool, kept *provider.EncodedTools) ([]byte, error) {
	tools, err := kept.Get(r, func() (jsontext.Value, error) {
		list := make([]function, len(r.Tools))
		for i, t := range r.Tools {
			list[i] = function{Type: "function", Name: t.Name, Description: t.Description, Parameters: provider.Schema(t.Schema)}
		}
		return encodeList(list)
	})
	if err != nil {
		return nil, err
	}
	out := responsesRequest{
		Model: r.Model, Stream: true, MaxOutputTokens: max(r.MaxTokens, 0), PromptCacheKey: cacheKey(r.CacheKey),
		Input: []any{},
	}
	if !provider.Blank(r.System) {
		out.Instructions = r.System
	}
	if sealed {
		out.Include = []string{"reasoning.encrypted_content"}
	}
	for _, m := range r.Messages {
		if m.Role == provider.Assistant {
			out.Input = append(out.Input, answered(m)...)
		} else {
			out.Input = append(out.Input, asked(m)...)
		}
	}
	body, err := provider.Encode(out)
	if err != nil {
		return nil, err
	}
	return provider.WithTools(body, tools), nil
}

// encodeList writes a tool list; an empty one is left out of the request.
func encodeList[T any](list []T) (jsontext.Value, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return provider.Encode(list)
}

// asked makes the items of a user message: results of calls first, then one message of the rest.
func asked(m provider.Message) []any {
	var results []any
	said := &item{Type: "message", Role: provider.User}
	for _, b := range m.Blocks {
		switch b.Kind {
		case provider.ToolResult:
			results = append(results, &item{Type: "function_call_output", CallID: provider.CallID(b.CallID), Output: output(b)})
		case provider.Text:
			if !provider.Blank(b.Text) {
				said.Content = append(said.Content, &part{Type: "input_text", Text: b.Text})
			}
		case provider.Image:
			said.Content = append(said.Content, inputImage(b.MIME, b.Data))
		}
	}
	if len(said.Content) > 0 {
		results = append(results, said)
	}
	return results
}

func inputImage(mime string, data []byte) *part {
	if !provider.TakesImage(mime, len(data), maxImage) {
		return &part{Type: "input_text", Text: provider.Placeholder("image", mime, len(data))}
	}
	return &part{Type: "input_image", ImageURL: provider.DataURL(mime, data), Detail: "auto"}
}

// output is a plain text unless there are images, which only the longer form can hold. The API has no mark for
// failed calls, so the text says it.
func output(b provider.Block) any {
	text := resultText(b)
	parts := []*part{{Type: "input_text", Text: text}}
	for _, c := range b.Content {
		if c.Kind == tool.Image {
			parts = append(parts, inputImage(c.MIME, c.Data))
		}
	}
	if len(parts) == 1 {
		return text
	}
	return parts
}

// answered makes the items of an assistant message in their order. Reasoning that nothing follows is left out: the
// service refuses it.
func answered(m provider.Message) []any {
	var out []any
	complete := 0
	for _, b := range m.Blocks {
		switch b.Kind {
		case provider.Thinking:
			if b.Origin == Name && b.Opaque.Kind() == '{' {
				out = append(out, b.Opaque)
			}
		case provider.Text:
			if provider.Blank(b.Text) {
				continue
			}
			said := &item{Type: "message", Role: provider.Assistant, Content: []*part{{Type: "output_text", Text: b.Text}}}
			var k kept
			if b.Origin == Name && len(b.Opaque) > 0 && json.Unmarshal(b.Opaque, &k) == nil {
				said.Phase = k.Phase
			}
			out = append(out, said)
			complete = len(out)
		case provider.ToolCall:
			arguments := string(provider.InputObject(b.Input))
			out = append(out, &item{Type: "function_call", CallID: provider.CallID(b.CallID), Name: b.Name, Arguments: &arguments})
			complete = len(out)
		}
	}
	return out[:complete]
}
