// Package jsonrpc holds JSON-RPC 2.0 messages with ids kept to the digit, strict bounded decoding,
// and Conn: calls over one framed duplex stream.
package jsonrpc

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// ID is a request id as raw JSON (an integer or a string), given back exactly as it came. Empty: none.
type ID = jsontext.Value

// Request is a call or, with an empty ID, a notification.
type Request struct {
	ID     ID
	Method string
	Params jsontext.Value // nil: absent
}

// Response answers a request; exactly one of Result and Error is set.
type Response struct {
	ID     ID
	Result jsontext.Value
	Error  *Error
}

// Error is the error of a response: the server's own words, untrusted.
type Error struct {
	Code    int64
	Message string
	Data    jsontext.Value
}

// Error codes of JSON-RPC and MCP.
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
)

// Error returns the code and the message, which is not sanitized: whoever shows it does that.
func (e *Error) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// Message is one incoming message: Request (a server's request or notification) or Response is set.
type Message struct {
	Request  *Request
	Response *Response
}

// Handler gets every request and notification that the peer sends, in order, and must not block; it returns the
// reply to send, or nil. The transport delivers the reply its own way.
type Handler func(Request) *Response
