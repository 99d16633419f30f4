package mcp

import (
	"context"

	"magi-code/internal/mcp/jsonrpc"
)

// transport is one life of the way to a server: a stdio child, or a Streamable HTTP endpoint. The seam is the
// exchange, not the pipe: an HTTP failure is the failure of that very call.
type transport interface {
	// Call sends a request and waits for its response. An error for which nothing left the process satisfies
	// jsonrpc.NotSent.
	Call(ctx context.Context, r jsonrpc.Request) (jsonrpc.Response, error)
	// Notify sends a notification.
	Notify(ctx context.Context, r jsonrpc.Request) error
	// Negotiated tells the version agreed in initialize, before any later message.
	Negotiated(version string)
	// Done is closed when the connection has ended; Err then says why.
	Done() <-chan struct{}
	Err() error
	// Close ends the connection within bounded time and waits for everything that it started.
	Close(ctx context.Context) error
}
