package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/permission"
	"magi-code/internal/session"
)

// Messages that goroutines of Run send to the model. gen tells which conversation they belong to: what an abandoned
// one still says is ignored.
type (
	statusMsg  mcp.Status
	startedMsg struct {
		servers Servers
		err     error
	}
	convMsg struct {
		gen  int
		conv Conversation
		err  error
	}
	eventMsg struct {
		agent.Event
		gen int
	}
	turnMsg struct {
		gen  int
		turn agent.Turn
		err  error
	}
	askMsg struct {
		gen   int
		id    int
		q     permission.Question
		reply chan<- permission.Answer
	}
	askGoneMsg struct{ id int } // nobody waits for the answer any more
	filesMsg   struct {
		version int
		files   []string
	}
	shellMsg struct {
		card   *entry
		output string
		failed bool
		err    error
		took   time.Duration
	}
	editedMsg struct {
		text string
		err  error
	}
	modelMsg struct {
		name string
		err  error
	}
	historyMsg []string
	changesMsg []mcp.Change
	tickMsg    time.Time

	sessionsMsg struct {
		list []session.Info
		err  error
	}
	modelsMsg struct {
		list []string
		err  error
	}
	rulesMsg struct {
		list []Rule
		err  error
	}
	toolsMsg struct {
		list []ToolRow
		err  error
	}
	excludedMsg struct{ err error }
	entriesMsg  struct {
		list     []approval.Entry
		warnings []string
		err      error
		oauth    map[string]string
		changes  []mcp.Change
		live     []mcp.Status
		note     string // what the action before it did
		bad      bool
	}
	reviewMsg struct {
		key  string
		view approval.View
		err  error
	}
)

// runtime is what the model may start; Run implements it.
type runtime struct {
	do      func(func() tea.Msg) // runs work in a goroutine that Run waits for, and sends its message
	started func(Servers)        // what must be closed at the end, known before the model hears of it
	opened  func(Conversation)
	drawn   func() // waits for the first frame
	relay   *relay
}
