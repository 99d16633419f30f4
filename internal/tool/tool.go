// Package tool says what the agent can call: a Tool is a struct with a Run func; a Set is the
// ordered, immutable collection that one run offers to a model.
package tool

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
)

// Origin says who provides a tool; it decides the shape of its call input.
type Origin string

const (
	// Builtin is one of our own: input is an object with "intent" beside the tool's own fields.
	Builtin Origin = "builtin"
	// MCP comes from a server: input is exactly {"intent": string, "arguments": object}.
	MCP Origin = "mcp"
	// Client was registered by an editor: input is as it declared, no intent.
	Client Origin = "client"
)

// Tool is one thing that can be called. It is a value: copies are independent, and nobody changes
// the Schema bytes in place. Run may be called concurrently.
type Tool struct {
	Name        string         // as advertised to the model, unique within a Set
	Description string         // as advertised
	Schema      jsontext.Value // JSON Schema of the whole call input, as advertised (intent and wrapper included)
	Origin      Origin
	Server      string // MCP: the server's name
	Remote      string // MCP: the tool's own name on its server
	ReadOnly    bool   // built-ins only: it changes nothing; never taken from a server's annotations
	// Run executes a call that has passed Parse and the gate. An error means that the call could not be
	// made or answered; a tool that ran and failed returns a Result with IsError.
	Run func(ctx context.Context, call Call) (Result, error)
}

// Call is one validated call.
type Call struct {
	ID        string         // the provider's id for it
	Name      string         // the tool's advertised name
	Input     jsontext.Value // the whole call as the model wrote it: what history and hooks see
	Intent    string         // why the tool is needed; empty for client tools
	Arguments jsontext.Value // what Run works with: built-ins: Input without intent; MCP: the inner arguments; client: Input
}
