// Package session keeps the history of a conversation on disk: append-only JSONL, one event a line,
// safe against a crash in the middle of a write and against two processes.
//
// A file is $MC_HOME/sessions/<id>.jsonl. Every Append is one write of one line, so that the death of the process loses
// no line that was acknowledged and tears at most the last one, which Open cuts off. Death of the machine can lose the
// last seconds: the file is synced at messages, at most every ten seconds, because a sync can hold a run up for long on a
// busy disk. While a session is open its file is locked.
package session

import (
	"errors"
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
	IsError bool              `json:"isError,omitzero"`
	Usage   *provider.Usage   `json:"usage,omitempty"`
	Model   string            `json:"model,omitempty"`
	Version int               `json:"version,omitzero"` // header only
	ID      string            `json:"id,omitempty"`     // header only
	Dir     string            `json:"dir,omitempty"`    // header only
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

// line is an entry as it stands in a file. Count, the number of messages up to and with this line, comes first, so that
// a list learns the length of a session from its last line alone.
type line struct {
	Count int `json:"n"`
	Entry
}

const (
	// formatVersion is in the header. It changes only when older programs could not read the lines any more; new kinds and
	// fields do not change it.
	formatVersion = 1
	// maxLineBytes bounds one line: larger entries are cut to fit, longer lines are left out when reading. It is the
	// size of the largest message that a server can send.
	maxLineBytes = 16 << 20
	// maxFileBytes bounds what Open reads into memory: far beyond what any model's context takes.
	maxFileBytes = 512 << 20
	// maxScanned is the number of files, newest first, that List and Latest look into, so that both stay quick in a folder
	// of many years.
	maxScanned = 5000
	// syncEvery is the shortest time between two syncs; it is also how much a dying machine may take along.
	syncEvery = 10 * time.Second
)

var (
	// ErrNotFound is wrapped when no stored session has the given id or prefix.
	ErrNotFound = errors.New("no such session")
	// ErrInUse is wrapped when another process, or another conversation of this one, holds the session.
	ErrInUse = errors.New("the session is in use")
)
