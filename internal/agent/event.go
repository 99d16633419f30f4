// Package agent holds runs: a Conversation freezes its tools at turn start, asks the provider, dispatches calls through
// one gate, records, and emits one ordered stream of events.
package agent

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
)

// EventKind is the kind of an event.
type EventKind string

const (
	EventTurnStart EventKind = "turn_start" // Text: the prompt's text
	EventText      EventKind = "text"       // delta of the answer
	EventThinking  EventKind = "thinking"   // delta of a thought
	EventAnswer    EventKind = "answer"     // one complete text block of the answer (what the deltas add up to)
	EventRetry     EventKind = "retry"      // Text: why; deltas since the last answer, call or turn start are void
	EventCall      EventKind = "call"       // a call was asked for, not yet decided: Call; every call has this and a result
	EventAsk       EventKind = "ask"        // a person is being asked about Call
	EventRunning   EventKind = "running"    // Call runs
	EventResult    EventKind = "result"     // Call ended: Text, IsError, Took, Diff
	EventNotice    EventKind = "notice"     // Text: tool changes, warnings of hooks, left-out tools
	EventSubagent  EventKind = "subagent"   // state of a child: Path, Text ("started", "done", "failed: ...")
	EventUsage     EventKind = "usage"      // Usage of one answer
	EventTurnEnd   EventKind = "turn_end"   // last: Text: the final answer; Stop; Usage: the turn's total; Err: sentence when it failed
)

// CallInfo describes one tool call.
type CallInfo struct {
	ID     string         `json:"id"`
	Under  string         `json:"under,omitempty"` // id of the script or subagents call that made it
	Tool   string         `json:"tool"`
	Server string         `json:"server,omitempty"`
	Remote string         `json:"remote,omitempty"`
	Intent string         `json:"intent,omitempty"`
	Input  jsontext.Value `json:"input,omitempty"`
}

// Event is one step of a run. Text in it is as the model or a tool gave it, scrubbed of secrets, not sanitized for display.
type Event struct {
	Kind    EventKind
	Time    time.Time
	Path    []string // subagents, outermost first
	Text    string
	Call    *CallInfo
	IsError bool
	Took    time.Duration
	Diff    string
	Usage   provider.Usage
	Stop    StopReason
	Err     string // one sentence: why the turn failed
	Hint    string // the cure beside Err
}

// StopReason is why a turn ended.
type StopReason string

const (
	StopDone        StopReason = "done"
	StopInterrupted StopReason = "interrupted"
	StopMaxTurns    StopReason = "max_turns"
	StopMaxTokens   StopReason = "max_tokens"
	StopRefusal     StopReason = "refusal"
	StopFailed      StopReason = "failed"
)
