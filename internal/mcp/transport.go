package mcp

import (
	"context"

	"magi-code/internal/mcp/definition"
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

// link is a transport with what diagnostics want to know of it; every field is set.
type link struct {
	transport
	ended   <-chan struct{}                   // closed as soon as no further call is possible: with Done, or before it
	stderr  func() string                     // the tail of stderr, raw
	skipped func() (count int, sample string) // lines that were no messages, the first of them raw
	dropped func() int                        // replies that the transport had no room for
}

// bare is a link about which a transport tells nothing more.
func bare(t transport) link {
	return link{
		transport: t, ended: t.Done(),
		stderr: func() string { return "" }, skipped: func() (int, string) { return 0, "" }, dropped: func() int { return 0 },
	}
}

// dialer opens the transport of a launch. What the server sends by itself goes to h.
type dialer func(ctx context.Context, l definition.Launch, h jsonrpc.Handler) (link, error)
