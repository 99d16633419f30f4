package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"magi-code/internal/agent"
	"magi-code/internal/provider"
	"magi-code/internal/untrusted"
)

// shownResult is how many bytes of a result the text form of run shows on stderr.
const shownResult = 200

// textEvents prints the answer to stdout as it streams, and what the agent does to stderr.
func (a *app) textEvents() func(agent.Event) {
	open := false // the last thing on stdout is an unfinished line
	endLine := func() {
		if open {
			fmt.Fprintln(a.out)
			open = false
		}
	}
	return func(e agent.Event) {
		who := ""
		if len(e.Path) > 0 {
			who = "[" + untrusted.Line(strings.Join(e.Path, "/")) + "] "
		}
		switch e.Kind {
		case agent.EventText:
			if len(e.Path) > 0 {
				return
			}
			text := untrusted.Text(e.Text)
			fmt.Fprint(a.out, text)
			if text != "" {
				open = !strings.HasSuffix(text, "\n")
			}
		case agent.EventAnswer:
			if len(e.Path) == 0 {
				endLine()
			}
		case agent.EventRetry:
			endLine()
			a.say("%sretry: %s", who, untrusted.Line(e.Text))
		case agent.EventCall:
			endLine()
			a.say("%scall: %s: %s", who, callName(e.Call), untrusted.Line(e.Call.Intent))
		case agent.EventResult:
			mark := "done"
			if e.IsError {
				mark = "failed"
			}
			a.say("%s%s: %s in %d ms: %s", who, mark, callName(e.Call), e.Took.Milliseconds(), untrusted.Head(untrusted.Line(e.Text), shownResult))
		case agent.EventNotice:
			endLine()
			a.say("%snote: %s", who, untrusted.Line(e.Text))
		case agent.EventSubagent:
			a.say("%ssubagent: %s", who, untrusted.Line(e.Text))
		case agent.EventTurnEnd:
			endLine()
		}
	}
}

// callName is the raw server and tool of a call, or the built-in's name.
func callName(c *agent.CallInfo) string {
	if c.Server != "" {
		return untrusted.Line(c.Server + " / " + c.Remote)
	}
	return untrusted.Line(c.Tool)
}

// eventLine is one line of run --json; docs/json-events.md describes it.
type eventLine struct {
	Type         agent.EventKind  `json:"type"`
	Time         time.Time        `json:"time"`
	Session      string           `json:"session,omitempty"`
	Path         []string         `json:"path,omitempty"`
	Text         string           `json:"text,omitempty"`
	Call         *callLine        `json:"call,omitempty"`
	IsError      bool             `json:"isError,omitempty"`
	Milliseconds *int64           `json:"milliseconds,omitempty"`
	Diff         string           `json:"diff,omitempty"`
	Usage        *provider.Usage  `json:"usage,omitempty"`
	Stop         agent.StopReason `json:"stop,omitempty"`
	Hint         string           `json:"hint,omitempty"`
}

type callLine struct {
	ID     string          `json:"id"`
	Under  string          `json:"under,omitempty"`
	Tool   string          `json:"tool"`
	Server string          `json:"server,omitempty"`
	Remote string          `json:"remote,omitempty"`
	Intent string          `json:"intent,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
}

// jsonEvents prints every event as one line, that of a turn's start with the session's id. A consumer that prints its texts to a terminal has to clean them like any
// text of a model.
func (a *app) jsonEvents(session string) func(agent.Event) {
	enc := newEncoder(a.out)
	return func(e agent.Event) {
		l := eventLine{Type: e.Kind, Time: e.Time, Path: e.Path, Text: e.Text, IsError: e.IsError, Diff: e.Diff, Stop: e.Stop, Hint: e.Hint}
		if e.Kind == agent.EventTurnStart && len(e.Path) == 0 {
			l.Session = session
		}
		if c := e.Call; c != nil {
			l.Call = &callLine{c.ID, c.Under, c.Tool, c.Server, c.Remote, c.Intent, json.RawMessage(c.Input)}
			if !json.Valid(c.Input) {
				l.Call.Input, _ = json.Marshal(string(c.Input)) // a string always encodes
			}
		}
		if e.Kind == agent.EventResult {
			ms := e.Took.Milliseconds()
			l.Milliseconds = &ms
		}
		if e.Kind == agent.EventUsage || e.Kind == agent.EventTurnEnd {
			l.Usage = &e.Usage
		}
		_ = enc.Encode(l) // output remembers that it failed, and that is told once, at the end
	}
}
