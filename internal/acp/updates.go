package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"magi-code/internal/agent"
	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

// emit turns the run's events into updates, in order.
func (e *editorSession) emit(ev agent.Event) {
	main := len(ev.Path) == 0
	switch ev.Kind {
	case agent.EventText:
		if main {
			e.update(sdk.UpdateAgentMessageText(ev.Text))
		}
	case agent.EventThinking:
		if main {
			e.update(sdk.UpdateAgentThoughtText(ev.Text))
		}
	case agent.EventRetry:
		e.update(sdk.UpdateAgentThoughtText("The model is asked again, and its answer starts anew: " + ev.Text + "\n"))
	case agent.EventNotice:
		e.update(sdk.UpdateAgentThoughtText("Note: " + ev.Text + "\n"))
	case agent.EventCall:
		e.mu.Lock()
		turn := e.turn
		e.mu.Unlock()
		e.update(e.started(ev.Call, func(path string) (string, error) { return e.readText(turn, path) }))
	case agent.EventAsk:
		e.mu.Lock()
		e.asked = sdk.ToolCallId(ev.Call.ID)
		e.mu.Unlock()
	case agent.EventRunning:
		e.update(sdk.UpdateToolCall(sdk.ToolCallId(ev.Call.ID), sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	case agent.EventResult:
		e.update(ended(ev.Call.ID, ev.Text, ev.IsError))
	case agent.EventSubagent:
		e.task(strings.Join(ev.Path, "/"), ev.Text)
	}
}

// started is the update that announces a call, with its place and, for edits, what would change. read gives what a
// file holds now; it is nil for calls of long ago.
func (e *editorSession) started(c *agent.CallInfo, read func(path string) (string, error)) sdk.SessionUpdate {
	opts := []sdk.ToolCallStartOpt{
		sdk.WithStartKind(kindOf(c)), sdk.WithStartStatus(sdk.ToolCallStatusPending), sdk.WithStartRawInput(rawInput([]byte(c.Input))),
	}
	if path := e.pathOf(c); path != "" {
		opts = append(opts, sdk.WithStartLocations([]sdk.ToolCallLocation{{Path: path}}))
		if d, ok := e.diff(c, path, read); ok {
			opts = append(opts, sdk.WithStartContent([]sdk.ToolCallContent{d}))
		}
	}
	return sdk.StartToolCall(sdk.ToolCallId(c.ID), title(c), opts...)
}

func title(c *agent.CallInfo) string {
	name := c.Tool
	if c.Server != "" {
		name = c.Server + " / " + c.Remote
	}
	if c.Intent == "" {
		return name
	}
	return name + ": " + c.Intent
}

func kindOf(c *agent.CallInfo) sdk.ToolKind {
	if c.Server != "" {
		return sdk.ToolKindOther
	}
	switch c.Tool {
	case "read", "list_files":
		return sdk.ToolKindRead
	case "find", "grep":
		return sdk.ToolKindSearch
	case "write", "edit":
		return sdk.ToolKindEdit
	case "bash", "code_mode":
		return sdk.ToolKindExecute
	case "subagents":
		return sdk.ToolKindThink
	}
	return sdk.ToolKindOther
}

// fileInput are the fields of built-in file tools.
type fileInput struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
	Old     *string `json:"old"`
	New     *string `json:"new"`
}

func (e *editorSession) pathOf(c *agent.CallInfo) string {
	var in fileInput
	if c.Server != "" || !slices.Contains([]string{"read", "write", "edit", "list_files", "grep", "find"}, c.Tool) || json.Unmarshal(c.Input, &in) != nil || in.Path == "" {
		return ""
	}
	if filepath.IsAbs(in.Path) {
		return in.Path
	}
	return filepath.Join(e.dir, in.Path)
}

// diff is what an edit or a write would change. The old text of a write is the editor's buffer, where it can be had.
func (e *editorSession) diff(c *agent.CallInfo, path string, read func(string) (string, error)) (sdk.ToolCallContent, bool) {
	var in fileInput
	if json.Unmarshal(c.Input, &in) != nil {
		return sdk.ToolCallContent{}, false
	}
	switch {
	case c.Tool == "edit" && in.Old != nil && in.New != nil:
		return sdk.ToolDiffContent(path, *in.New, *in.Old), true
	case c.Tool == "write" && in.Content != nil:
		if e.readText != nil && read != nil {
			if old, err := read(path); err == nil {
				return sdk.ToolDiffContent(path, *in.Content, old), true
			}
		}
		return sdk.ToolDiffContent(path, *in.Content), true
	}
	return sdk.ToolCallContent{}, false
}

func ended(id, text string, failed bool) sdk.SessionUpdate {
	status := sdk.ToolCallStatusCompleted
	if failed {
		status = sdk.ToolCallStatusFailed
	}
	return sdk.UpdateToolCall(sdk.ToolCallId(id), sdk.WithUpdateStatus(status), sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))}))
}

// rawInput is a call's input as the editor gets it: JSON as it is, anything else as a string.
func rawInput(b []byte) any {
	if json.Valid(b) {
		return json.RawMessage(bytes.Clone(b))
	}
	return string(b)
}

// task shows the tasks of subagents as the session's plan.
func (e *editorSession) task(name, state string) {
	status := sdk.PlanEntryStatusInProgress
	if state == "done" || strings.HasPrefix(state, "failed") {
		status = sdk.PlanEntryStatusCompleted
	}
	e.mu.Lock()
	i := slices.IndexFunc(e.plan, func(p sdk.PlanEntry) bool { return strings.HasPrefix(p.Content, name+": ") })
	entry := sdk.PlanEntry{Content: name + ": " + state, Priority: sdk.PlanEntryPriorityMedium, Status: status}
	if i < 0 {
		e.plan = append(e.plan, entry)
	} else {
		e.plan[i] = entry
	}
	plan := slices.Clone(e.plan)
	e.mu.Unlock()
	e.update(sdk.UpdatePlan(plan...))
}

// replay sends a stored history as updates.
func (e *editorSession) replay(ctx context.Context, entries []session.Entry) {
	for _, m := range session.Messages(entries) {
		for _, b := range m.Blocks {
			if ctx.Err() != nil {
				return
			}
			switch b.Kind {
			case provider.Text:
				if m.Role == provider.User {
					e.update(sdk.UpdateUserMessageText(b.Text))
				} else {
					e.update(sdk.UpdateAgentMessageText(b.Text))
				}
			case provider.Thinking:
				if b.Text != "" {
					e.update(sdk.UpdateAgentThoughtText(b.Text))
				}
			case provider.ToolCall:
				e.update(e.started(&agent.CallInfo{ID: b.CallID, Tool: b.Name, Input: b.Input, Intent: intentOf(b.Input)}, nil))
			case provider.ToolResult:
				e.update(ended(b.CallID, tool.Result{Content: b.Content}.Plain(), b.IsError))
			}
		}
	}
}

func intentOf(input []byte) string {
	var in struct {
		Intent string `json:"intent"`
	}
	if json.Unmarshal(input, &in) != nil {
		return ""
	}
	return in.Intent
}
