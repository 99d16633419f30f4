// Package mcp is the heart: a Manager starts, refreshes and closes approved servers; a client speaks MCP on a
// transport; a Snapshot is the frozen catalogue of their tools.
package mcp

import (
	"context"
	"net/http"
	"time"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/secret"
	"magi-code/internal/tool"
)

// Phase is where a server failed. The set is closed.
type Phase string

const (
	PhaseConfig     Phase = "config"
	PhaseApproval   Phase = "approval"
	PhaseExpand     Phase = "expand"
	PhaseConnect    Phase = "connect"
	PhaseInitialize Phase = "initialize"
	PhaseList       Phase = "list"
	PhaseCall       Phase = "call"
	PhaseClose      Phase = "close"
)

// Error is a failure of one server: `server "x": phase: text`, sanitized, without secrets.
type Error struct {
	Server string
	Phase  Phase
	Text   string // one sentence, lower case
	Hint   string // the cure, one sentence; may be empty
	Stderr string // the tail of the server's stderr, sanitized and scrubbed; may be empty
	Cause  error
}

// Error returns the sentence without hint and stderr.
func (e *Error) Error() string { return `server "` + e.Server + `": ` + string(e.Phase) + ": " + e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// State is where a server stands. Its zero value is NotStarted.
type State int

const (
	NotStarted State = iota
	Starting         // Phase says how far
	Ready
	Failed // Err says why; the next call tries again
	Closed
)

// OmittedTool is a tool left out of the catalogue, and why.
type OmittedTool struct{ Name, Reason string }

// ToolInfo is a tool as its server describes it: untrusted, for display.
type ToolInfo struct{ Name, Title, Description string }

// Status is what is known of one server now. It is a value.
type Status struct {
	Name           string
	Type           string // stdio or http
	State          State
	Phase          Phase // while Starting
	Since          time.Time
	Took           time.Duration // start to ready
	ServerName     string        // serverInfo, untrusted
	ServerVersion  string
	Protocol       string
	Instructions   string // untrusted, bounded
	Tools          []ToolInfo
	Omitted        []OmittedTool
	Stale          bool // the last refresh failed; Tools are those before it
	Skipped        int  // stdout lines that were no messages
	SkippedSample  string
	DroppedReplies int
	Timeout        time.Duration
	Err            *Error
	Stderr         string // tail, sanitized, scrubbed, bounded
}

// Tokens is the silent OAuth source of one HTTP server: it never opens anything.
type Tokens interface {
	// Header returns the Authorization value to send, refreshing if needed; an error says which command to run.
	Header(ctx context.Context) (secret.String, error)
	// Rejected tells that the server refused this value with 401, so that Header must not give it again.
	Rejected(ctx context.Context, header secret.String)
}

// Options are the parts that a Manager is made of.
type Options struct {
	Servers []approval.Approved
	Lookup  func(string) (string, bool) // the environment, for expansion and PATH
	Dir     string                      // cwd of stdio children
	Version string                      // ours, for clientInfo
	Scrub   *secret.Scrubber            // learns the secrets of every launch
	// Tokens returns the source for an HTTP server with oauth; nil when login is not built in.
	Tokens func(a approval.Approved) Tokens
	// HTTP is the base round tripper; nil means one made with proxies from the environment and platform TLS.
	HTTP http.RoundTripper
	// OnStatus hears every change of a server's state, from several goroutines; it must not block. May be nil.
	OnStatus func(Status)
}

// Manager runs the approved servers. Its methods may be called concurrently.
type Manager struct{}

// Open starts all servers at once, waits until each is ready or has failed, and returns the manager. It returns an
// error only for a zero Approved; failures of servers are in Status.
func Open(ctx context.Context, o Options) (*Manager, error) { panic("to be built") }

// Probe starts one server through initialize and tools/list, returns its status, and closes it.
func Probe(ctx context.Context, o Options) (Status, error) { panic("to be built") }

// Status returns every server's status, sorted by name.
func (m *Manager) Status() []Status { panic("to be built") }

// Failures returns the errors of servers that are not ready.
func (m *Manager) Failures() []*Error { panic("to be built") }

// Change tells how a refresh changed a server's tools: advertised names.
type Change struct {
	Server                  string
	Added, Removed, Changed []string
}

// Prepare is called once before a user turn: it repeats tools/list for servers that announced a change (or are due
// for their one retry), and returns the catalogue and what changed since the previous Prepare of this caller's last snapshot.
func (m *Manager) Prepare(ctx context.Context) (Snapshot, []Change) { panic("to be built") }

// Snapshot is the frozen catalogue of all servers at one moment. The zero Snapshot is empty.
type Snapshot struct{ set tool.Set }

// Tools returns the tools of the snapshot; their Run goes through the manager to the live connection.
func (s Snapshot) Tools() tool.Set { return s.set }

// Close ends all servers at once, within ctx and the transports' own bounds, and waits for everything.
func (m *Manager) Close(ctx context.Context) error { panic("to be built") }
