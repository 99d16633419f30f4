// Package session keeps the history of a conversation on disk: append-only JSONL, one event a line,
// safe against a crash in the middle of a write and against two processes.
package session

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
)

// EntryKind is the kind of a line.
type EntryKind string

const (
	Header  EntryKind = "session" // first line: version, id, folder, creation time
	Message EntryKind = "message" // one message as the provider saw it
	Call    EntryKind = "call"    // a tool call as dispatched: direct, or inner call of a script or subagent
	Result  EntryKind = "result"  // its result
	Note    EntryKind = "note"    // tool changes, interruptions, errors, model changes
	Usage   EntryKind = "usage"
)

// Entry is one line. Unknown kinds and fields of newer versions are kept out of the way when reading.
type Entry struct {
	Kind    EntryKind         `json:"kind"`
	Time    time.Time         `json:"time"`
	Message *provider.Message `json:"message,omitempty"`
	CallID  string            `json:"callId,omitempty"`
	Under   string            `json:"under,omitempty"` // call id of the script or subagent call that made this one
	Tool    string            `json:"tool,omitempty"`
	Input   jsontext.Value    `json:"input,omitempty"` // the whole call, intent included
	Text    string            `json:"text,omitempty"`
	IsError bool              `json:"isError,omitempty"`
	Usage   *provider.Usage   `json:"usage,omitempty"`
	Model   string            `json:"model,omitempty"`
	Version int               `json:"version,omitempty"` // header only
	ID      string            `json:"id,omitempty"`      // header only
	Dir     string            `json:"dir,omitempty"`     // header only
}

// Info describes a stored session for lists.
type Info struct {
	ID       string    `json:"id"`
	Dir      string    `json:"dir"`
	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
	Title    string    `json:"title"` // head of the first prompt, sanitized
	Messages int       `json:"messages"`
}

// Store is the folder of sessions ($MC_HOME/sessions).
type Store struct{ dir string }

// NewStore uses dir, which is made on the first write (0700; files 0600).
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Create starts a new session for a working folder. Nothing is written until the first Append.
func (s *Store) Create(dir string) (*Session, error) { panic("to be built") }

// Open opens a stored session for appending and holds it: a second process gets an error that says so.
// A torn last line is cut off. id may be a unique prefix.
func (s *Store) Open(ctx context.Context, id string) (*Session, error) { panic("to be built") }

// Latest returns the id of the newest session of a working folder; "" when there is none.
func (s *Store) Latest(dir string) (string, error) { panic("to be built") }

// List returns stored sessions, newest first; dir "" means of every folder. Unreadable files are left out.
func (s *Store) List(dir string) ([]Info, error) { panic("to be built") }

// Session is one open history. Its methods may be called concurrently.
type Session struct{}

// ID returns the session's id.
func (s *Session) ID() string { panic("to be built") }

// Append writes one entry as one line and returns after the write; Time is set when zero.
func (s *Session) Append(e Entry) error { panic("to be built") }

// Entries returns what the file held when it was opened.
func (s *Session) Entries() []Entry { panic("to be built") }

// Close releases the file.
func (s *Session) Close() error { panic("to be built") }

// Messages rebuilds the conversation from entries: orphaned tool calls get an interrupted result, orphaned
// results are dropped, so that every provider accepts it.
func Messages(entries []Entry) []provider.Message { panic("to be built") }
