package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/agent"
	"magi-code/internal/tui/markdown"
	"magi-code/internal/untrusted"
)

// callState is where a call stands. Its zero value is asked for, not decided.
type callState int

const (
	callWaiting callState = iota
	callAsking
	callRunning
	callDone
	callFailed
	callStopped
)

const (
	foldedRows   = 3        // lines of a result shown folded
	foldedDiff   = 14       // lines of a diff shown folded
	expandedRows = 2000     // lines of a result shown at most
	maxArgs      = 32 << 10 // bytes of arguments looked at
)

// cardItem is one tool call.
type cardItem struct {
	call     agent.CallInfo
	path     []string
	state    callState
	result   string
	hint     string
	diff     string
	took     time.Duration
	started  time.Time
	expanded bool
	focused  bool
	nested   int // depth under other calls
}

func (c *cardItem) lines(w int, d *drawing) []string {
	in := strings.Repeat("  ", min(c.nested, 6))
	w -= len(in)
	out := []string{c.head(w, d)}
	body := w - 2
	if intent := strings.TrimSpace(c.call.Intent); intent != "" {
		rows := d.md.Plain(markdown.Dim|markdown.Italic, untrusted.Head(intent, 2<<10), body)
		if !c.expanded && len(rows) > 1 {
			rows = []string{fit(rows[0], body-1) + d.st.dim.Render("…")}
		}
		out = append(out, indent(rows, "  ")...)
	}
	out = append(out, indent(c.args(body, d), "  ")...)
	out = append(out, c.outcome(body, d)...)
	if c.hint != "" {
		out = append(out, hang(d.md.Plain(0, c.hint, body-2), "  "+d.st.accent.Render("→")+" ")...)
	}
	return indent(out, in)
}

func indent(rows []string, by string) []string {
	if by == "" {
		return rows
	}
	for i := range rows {
		if rows[i] != "" {
			rows[i] = by + rows[i]
		}
	}
	return rows
}

// head is the line that names the tool, its state and its time.
func (c *cardItem) head(w int, d *drawing) string {
	mark := c.mark(d)
	name := d.st.bold.Render(line(c.call.Tool, w))
	if c.call.Server != "" {
		name = d.st.accent.Render(line(c.call.Server, w/2)) + d.st.dim.Render(" › ") + d.st.bold.Render(line(c.call.Remote, w/2))
	}
	if len(c.path) > 0 {
		name = d.st.dim.Render(line(strings.Join(c.path, "/"), w/3)+" ") + name
	}
	if c.focused {
		name = d.st.invert.Render(" " + ansi.Strip(name) + " ")
	}
	right := ""
	switch c.state {
	case callWaiting:
		right = d.st.dim.Render("waiting")
	case callAsking:
		right = d.st.warn.Render("asks you")
	case callRunning:
		right = d.st.dim.Render("running " + elapsed(time.Duration(d.now()-c.started.UnixNano())))
	case callStopped:
		right = d.st.dim.Render("stopped")
	default:
		if c.took > 0 {
			right = d.st.dim.Render(duration(c.took))
		}
	}
	return sides(mark+" "+name, right, w)
}

func (c *cardItem) mark(d *drawing) string {
	switch c.state {
	case callAsking:
		return d.st.warn.Render("?")
	case callRunning:
		return d.st.accent.Render(spinner(d.tick))
	case callDone:
		return d.st.ok.Render("✓")
	case callFailed:
		return d.st.bad.Render("✗")
	case callStopped:
		return d.st.dim.Render("■")
	}
	return d.st.dim.Render("○")
}

// args are the arguments: in one line when folded, indented JSON when not.
func (c *cardItem) args(w int, d *drawing) []string {
	raw := arguments(c.call, maxArgs)
	if raw == "" {
		return nil
	}
	if c.expanded {
		return d.md.CodeLines("json", pretty(raw), w)
	}
	if s := mainArgument(c.call.Tool, raw); s != "" && c.call.Server == "" {
		return []string{d.st.code.Render(line(s, w))}
	}
	return []string{d.st.code.Render(line(compact(raw), w))}
}

// outcome is the diff or the result.
func (c *cardItem) outcome(w int, d *drawing) []string {
	if c.diff != "" && c.state != callFailed {
		return c.folded(diffLines(c.diff, w-2, d), foldedDiff, d)
	}
	if strings.TrimSpace(c.result) == "" {
		return nil
	}
	m := markdown.Dim
	if c.state == callFailed {
		m = markdown.Removed
	}
	text := c.result
	if !c.expanded {
		text = untrusted.Head(text, 16<<10)
	}
	return c.folded(d.md.Plain(m, strings.TrimRight(text, "\n"), w-2), foldedRows, d)
}

// folded shows the first lines of rows, or nearly all of them when the card is open.
func (c *cardItem) folded(rows []string, n int, d *drawing) []string {
	limit := n
	if c.expanded {
		limit = expandedRows
	}
	more := len(rows) - limit
	if more == 1 {
		more, limit = 0, limit+1
	}
	if more > 0 {
		rows = rows[:limit:limit]
	}
	out := hang(rows, "  "+d.st.faint.Render("└")+" ")
	if more > 0 {
		key := ""
		if !c.expanded {
			key = " · ctrl+o"
		}
		out = append(out, "    "+d.st.dim.Render(fmt.Sprintf("… %s%s", plural(more, "more line"), key)))
	}
	return out
}

// arguments is the part of a call's input that the tool gets, as text.
func arguments(c agent.CallInfo, limit int) string {
	if len(c.Input) == 0 {
		return ""
	}
	in := c.Input
	if len(in) > limit {
		return untrusted.Head(string(in), limit)
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(in, &members); err != nil {
		return string(in)
	}
	if a, ok := members["arguments"]; ok && c.Server != "" {
		return string(a)
	}
	if _, ok := members["intent"]; ok && c.Server == "" {
		delete(members, "intent")
		if len(members) == 0 {
			return ""
		}
		if b, err := json.Marshal(members, json.Deterministic(true)); err == nil {
			return string(b)
		}
	}
	return string(in)
}

// mainArgument is what a person looks for in a call of a built-in tool.
func mainArgument(tool, raw string) string {
	var m map[string]any
	if json.Unmarshal([]byte(raw), &m) != nil {
		return ""
	}
	str := func(k string) string { s, _ := m[k].(string); return s }
	switch tool {
	case "bash":
		if s := str("command"); s != "" {
			return "$ " + s
		}
	case "grep", "find":
		if p := str("pattern"); p != "" {
			return strings.TrimSpace(p + "  " + str("path"))
		}
	case "read", "write", "edit", "list_files":
		return str("path")
	}
	return ""
}

func compact(raw string) string {
	v := jsontext.Value(raw)
	if v.Compact() != nil {
		return raw
	}
	return string(v)
}

func pretty(raw string) string {
	v := jsontext.Value(raw)
	if v.Indent(jsontext.WithIndent("  ")) != nil {
		return raw
	}
	return string(v)
}

// spinner is the sign of work at a tick.
func spinner(tick int) string {
	frames := []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	return frames[tick%len(frames)]
}

// visibleWidth is the columns that a painted text takes.
func visibleWidth(s string) int { return ansi.StringWidth(s) }

// diffLines paints a unified diff.
func diffLines(diff string, w int, d *drawing) []string {
	var out []string
	for row := range strings.SplitSeq(strings.TrimRight(untrusted.Text(diff), "\n"), "\n") {
		st := markdown.Dim
		switch {
		case strings.HasPrefix(row, "+++"), strings.HasPrefix(row, "---"):
			st = markdown.Bold
		case strings.HasPrefix(row, "+"):
			st = markdown.Added
		case strings.HasPrefix(row, "-"):
			st = markdown.Removed
		}
		out = append(out, d.md.Code(st, row, w)...)
		if len(out) > expandedRows+1 {
			break
		}
	}
	return out
}

// intentOf is the intent of a stored call.
func intentOf(input jsontext.Value) string {
	var in struct {
		Intent string `json:"intent"`
	}
	if len(input) > maxArgs || json.Unmarshal(input, &in) != nil {
		return ""
	}
	return in.Intent
}
