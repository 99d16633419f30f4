package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// The extension, documented in docs/editors.md: tools that the client registers in _meta of session/new, under metaKey, and
// that are called through the request callMethod.
const (
	metaKey    = "magi-code"
	callMethod = "_magi-code/tool_call"
)

// Bounds of what a client may register.
const (
	maxClientTools       = 128
	maxClientDescription = 16 << 10 // bytes
	maxClientSchema      = 256 << 10
	defaultClientTimeout = time.Minute
	maxClientTimeout     = 10 * time.Minute
)

var (
	clientToolName     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	clientPropertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

// clientTool is one registration.
type clientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	TimeoutMs   *int64          `json:"timeoutMs"`
	timeout     time.Duration
}

// parseClientTools validates the whole list before any of it counts.
func parseClientTools(meta map[string]any, reserved []string) ([]clientTool, error) {
	ours, ok := meta[metaKey]
	if !ok {
		return nil, nil
	}
	b, err := json.Marshal(ours)
	if err != nil {
		return nil, invalid("_meta." + metaKey + " cannot be read")
	}
	var m struct {
		Tools []clientTool `json:"tools"`
	}
	if json.Unmarshal(b, &m) != nil {
		return nil, invalid("_meta." + metaKey + ".tools must be a list of {name, description, inputSchema, timeoutMs}")
	}
	if len(m.Tools) > maxClientTools {
		return nil, invalid(fmt.Sprintf("more than %d client tools", maxClientTools))
	}
	seen := map[string]bool{}
	for i := range m.Tools {
		if err := m.Tools[i].check(seen, reserved); err != nil {
			return nil, invalid(fmt.Sprintf("client tool %d (%s): %s", i, untrusted.Head(untrusted.Visible(m.Tools[i].Name), maxShownName), err))
		}
	}
	return m.Tools, nil
}

func (c *clientTool) check(seen map[string]bool, reserved []string) error {
	switch {
	case !clientToolName.MatchString(c.Name):
		return fmt.Errorf("a name has 1 to 64 ASCII letters, digits, _ and -")
	case strings.HasPrefix(c.Name, "mcp__"):
		return fmt.Errorf("names with mcp__ belong to MCP servers")
	case slices.Contains(reserved, c.Name):
		return fmt.Errorf("the name is that of a built-in tool")
	case seen[c.Name]:
		return fmt.Errorf("the name occurs twice")
	case strings.TrimSpace(c.Description) == "" || len(c.Description) > maxClientDescription:
		return fmt.Errorf("a description has 1 to %d bytes", maxClientDescription)
	}
	seen[c.Name] = true
	schema, err := checkSchema(c.InputSchema)
	if err != nil {
		return err
	}
	c.InputSchema = schema
	c.timeout = defaultClientTimeout
	if c.TimeoutMs != nil {
		c.timeout = time.Duration(*c.TimeoutMs) * time.Millisecond
		if *c.TimeoutMs < 1 || *c.TimeoutMs > maxClientTimeout.Milliseconds() {
			return fmt.Errorf("timeoutMs is 1 to %d", maxClientTimeout.Milliseconds())
		}
	}
	return nil
}

// callable makes tools of the registrations.
func (e *editorSession) callable(list []clientTool) []tool.Tool {
	var out []tool.Tool
	for _, c := range list {
		out = append(out, tool.Tool{
			Name: c.Name, Description: c.Description, Schema: jsontext.Value(c.InputSchema), Origin: tool.Client,
			Run: func(ctx context.Context, call tool.Call) (tool.Result, error) { return e.callClient(ctx, c, call) },
		})
	}
	return out
}

// clientCall is the request to the client.
type clientCall struct {
	SessionID  sdk.SessionId   `json:"sessionId"`
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name"`
	Input      json.RawMessage `json:"input"`
}

// clientResult is its answer: MCP-like content, or just text.
type clientResult struct {
	Text    string `json:"text"`
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Data     string `json:"data"`
		MimeType string `json:"mimeType"`
	} `json:"content"`
	IsError bool `json:"isError"`
}

func (e *editorSession) callClient(ctx context.Context, c clientTool, call tool.Call) (tool.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("client tool %q did not answer within %s (timeoutMs)", c.Name, c.timeout))
	defer cancel()
	raw, err := e.server.conn.CallExtension(ctx, callMethod, clientCall{e.id, call.ID, c.Name, json.RawMessage(call.Arguments)})
	if err != nil {
		if ctx.Err() != nil {
			return tool.Result{}, context.Cause(ctx)
		}
		return tool.Result{}, fmt.Errorf("client tool %q: %s", c.Name, editorWords(err))
	}
	var r clientResult
	if json.Unmarshal(raw, &r) != nil {
		return tool.Result{}, fmt.Errorf("client tool %q answered something else than {content, text, isError}", c.Name)
	}
	out := tool.Result{IsError: r.IsError}
	if r.Text != "" {
		out.Content = append(out.Content, tool.Content{Kind: tool.Text, Text: r.Text})
	}
	for _, p := range r.Content {
		switch p.Type {
		case "text":
			out.Content = append(out.Content, tool.Content{Kind: tool.Text, Text: p.Text})
		case "image":
			data, err := base64.StdEncoding.DecodeString(p.Data)
			if err != nil {
				return tool.Result{}, fmt.Errorf("client tool %q answered an image that is not valid base64", c.Name)
			}
			out.Content = append(out.Content, tool.Content{Kind: tool.Image, MIME: p.MimeType, Data: data})
		default:
			out.Content = append(out.Content, tool.Content{Kind: tool.Unknown, Text: "[" + untrusted.Head(untrusted.Line(p.Type), maxShownName) + "]"})
		}
	}
	return out, nil
}
