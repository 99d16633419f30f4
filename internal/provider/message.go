// Package provider is the neutral language between a run and a model: one Request, one stream of
// Events, the Provider interface, and the retry rules. Adapters live in its sub-packages.
package provider

import (
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/tool"
)

// Role is who speaks a message.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Kind is the kind of a block.
type Kind string

const (
	Text       Kind = "text"
	Thinking   Kind = "thinking"    // Text is the thought; Opaque is what the provider wants back unchanged
	Image      Kind = "image"       // MIME, Data
	ToolCall   Kind = "tool_call"   // CallID, Name, Input
	ToolResult Kind = "tool_result" // CallID, Content, IsError
)

// Block is one part of a message. Which fields count depends on Kind.
type Block struct {
	Kind    Kind           `json:"kind"`
	Text    string         `json:"text,omitempty"`
	Opaque  jsontext.Value `json:"opaque,omitempty"` // provider's own data (thinking signatures, reasoning items), kept and sent back as it came, to the provider named in Origin only
	Origin  string         `json:"origin,omitempty"` // name of the provider that made Opaque
	MIME    string         `json:"mime,omitempty"`
	Data    []byte         `json:"data,omitempty"`
	CallID  string         `json:"callId,omitempty"`
	Name    string         `json:"name,omitempty"`
	Input   jsontext.Value `json:"input,omitempty"` // as the model wrote it; may be invalid JSON only when the model wrote that, then it is a JSON string of it
	Content []tool.Content `json:"content,omitempty"`
	IsError bool           `json:"isError,omitempty"`
}

// Message is one turn of the conversation. Tool results stand in a User message.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Request is everything that a model needs for one answer. Adapters never change it or what it points to.
type Request struct {
	Model     string
	System    string
	Messages  []Message
	Tools     []tool.Tool // in advertised order
	MaxTokens int         // output; 0 lets the adapter choose
	CacheKey  string      // stable over a conversation whose tools and system prompt do not change
}

// Usage counts tokens of one answer, or their sum.
type Usage struct {
	Input      int `json:"input"` // without those read from or written to the cache
	CacheRead  int `json:"cacheRead,omitempty"`
	CacheWrite int `json:"cacheWrite,omitempty"`
	Output     int `json:"output"`

	Cost float64 `json:"cost,omitempty"` // US dollars, where the service tells; 0: not known
}

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Output + v.Output, u.Cost + v.Cost}
}

// EventKind is the kind of a stream event.
type EventKind string

const (
	TextDelta     EventKind = "text"
	ThinkingDelta EventKind = "thinking"
	BlockDone     EventKind = "block" // Block is complete; every block of the answer comes once as this, in order, text too
	Retrying      EventKind = "retry" // Text says why and how long; what this answer streamed so far is void
	Done          EventKind = "done"  // the last event: Stop and Usage
)

// Stop is why the model ended its answer.
type Stop string

const (
	EndTurn   Stop = "end_turn"
	ToolUse   Stop = "tool_use"
	MaxTokens Stop = "max_tokens"
	Refusal   Stop = "refusal"
)

// Event is one step of a streamed answer.
type Event struct {
	Kind  EventKind
	Text  string
	Block Block
	Stop  Stop
	Usage Usage
}
