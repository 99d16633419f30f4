// Package tui is Mission Control: the full-screen terminal interface. Run owns every goroutine that it starts,
// restores the terminal before it waits for anything, and returns what the caller has to print.
package tui

import (
	"context"
	"io"
	"os"
	"time"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
)

// Options are the parts that Mission Control is made of. Funcs are called from goroutines that Run owns, never from
// the one that draws, and must end when their ctx does. A nil func takes its feature away.
type Options struct {
	In, Out *os.File // the terminal
	Environ []string // NO_COLOR, TERM, COLORTERM and the like; also what the terminal library asks for
	Version string   // ours
	Dir     string   // working folder, for display
	Home    string   // the user's home folder, to show ~; may be empty
	Model   string   // the model that a new conversation will have, for display; empty: none is configured
	Prompt  string   // queued from the start; "" for none
	Resume  string   // id of the session to open at start; "" for a new one
	Servers []string // names of the approved servers, shown as "starting" in the first frame
	Waiting int      // definitions that are not approved: the first screen points to /mcp

	// Start starts the approved servers and returns when each is ready or has failed. onStatus hears every change and
	// never blocks. An error means that nothing could be started at all (a broken .mcp.json, an unusable key).
	Start func(ctx context.Context, onStatus func(mcp.Status)) (Servers, error)

	// NewConversation opens a new conversation, or a stored one (resume: its id). emit is for its events, in order;
	// it may block. ask puts a permission question to the user and returns when it is answered or ctx ends.
	NewConversation func(ctx context.Context, emit func(agent.Event), ask permission.Asker, resume string) (Conversation, error)

	// /mcp
	Entries func(ctx context.Context) ([]approval.Entry, []string, error) // definitions with states, warnings; both may come beside an error
	Review  func(ctx context.Context, d definition.Server) (approval.View, error)
	Approve func(ctx context.Context, v approval.View) error
	Revoke  func(ctx context.Context, source, name string) error
	OAuth   func(ctx context.Context, d definition.Server) string // "authenticated", "expired", ...; "" for servers without oauth
	Changes func() []mcp.Change                                   // how tools changed since the last approved run, and in this one

	Sessions    func(ctx context.Context) ([]session.Info, error)                               // /sessions: those of this folder, newest first
	Models      func(ctx context.Context) ([]string, error)                                     // /model: "provider/model"
	Permissions func(ctx context.Context) ([]Rule, error)                                       // /permissions
	Tools       func(ctx context.Context) ([]ToolRow, error)                                    // /tools
	Exclude     func(ctx context.Context, tool string, list ExclusionList, excluded bool) error // /tools: patches the global settings; from the next turn on

	Files func(ctx context.Context, query string) []string                                    // @: paths under the folder that match, best first
	Shell func(ctx context.Context, command string) (output string, failed bool, err error)   // !: the same way as the bash tool
	Edit  func(ctx context.Context, text string, in io.Reader, out io.Writer) (string, error) // Ctrl-G: the user's editor; the terminal is theirs meanwhile
	Hint  func(err error) string                                                              // the cure of an error, when the error itself knows none

	HistoryFile string                                     // prompt history (0600); "" keeps none
	Report      func(text string) (path string, err error) // writes a crash report, scrubbed of secrets
	Now         func() time.Time                           // nil: time.Now
	ColorDepth  string                                     // "" detects; "none", "16", "256", "true" for tests
}

// Servers is what Start returns: the methods of a *mcp.Manager.
type Servers struct {
	Status   func() []mcp.Status
	Failures func() []*mcp.Error
	Close    func(ctx context.Context) error
}

// Conversation is what NewConversation returns: the methods of an *agent.Conversation, and what it was opened with.
type Conversation struct {
	ID       string          // session id, to be resumed by; "" when nothing is kept
	Model    string          // for display
	Entries  []session.Entry // the history of a resumed one
	Send     func(ctx context.Context, prompt []provider.Block) (agent.Turn, error)
	SetModel func(ctx context.Context, model string) error
	Close    func(ctx context.Context) error
}

// Rule is one line of /permissions.
type Rule struct {
	Pattern  string
	Decision permission.Decision
	From     string // where it is written: "settings.json", "--allow", "your answer"
}

// ToolRow is one line of /tools.
type ToolRow struct {
	Name, Server string // Server is empty for built-ins
	Description  string // untrusted
	Direct       bool   // offered to the model
	CodeMode     bool   // offered to scripts
}

// ExclusionList names one of the two independent lists. Its zero value is the direct one.
type ExclusionList int

const (
	// DirectList is capabilities.tools.disabled.
	DirectList ExclusionList = iota
	// CodeModeList is capabilities.tools.code_mode.disabled.
	CodeModeList
)

// Exit is what the caller prints once the terminal is restored, and the exit code that it means.
type Exit struct {
	Code       int          // 0, or 1 when something failed
	Failures   []*mcp.Error // servers that did not start; the queue was left unrun
	Err        error        // Start failed as a whole
	Prompts    []string     // what was typed and not run, oldest first: print it back
	Unfinished []string     // what did not end within its bound at shutdown, a sentence each
	Report     string       // path of the crash report
	Crashed    bool         // something of ours panicked
	Session    string       // id to resume by; "" when there is nothing to resume
}
