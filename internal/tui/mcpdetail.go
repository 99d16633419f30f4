package tui

import (
	"fmt"
	"strings"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/tui/markdown"
	"magi-code/internal/untrusted"
)

// details are the definition, and what the server does now.
func (s *serverScreen) details(m *model, w int) []string {
	st, md := m.st, m.d.md
	var out []string
	if s.note != "" {
		mark, text := st.ok.Render("✓ "), s.note
		if s.bad {
			mark = st.bad.Render("✗ ")
		}
		out = append(out, hang(md.Plain(0, text, w-2), mark)...)
		out = append(out, "")
	}
	if s.failed != "" {
		out = append(out, hang(md.Plain(0, s.failed, w-2), st.bad.Render("✗ "))...)
		out = append(out, "")
	}
	if s.at < len(s.entries) {
		e := s.entries[s.at]
		out = append(out, s.definition(m, e, w)...)
		s.end = len(out)
		out = append(out, s.live(m, e, w)...)
	}
	if len(s.warnings) > 0 {
		out = append(out, "", st.bold.Render("Ignored in the files"))
		for _, x := range s.warnings {
			out = append(out, hang(md.Plain(0, x, w-2), st.warn.Render("! "))...)
		}
	}
	return out
}

const detailLabel = 14 // columns of a label

func detail(d *drawing, label, value string, w int) []string {
	rows := d.md.Code(0, value, w-detailLabel)
	return hang(rows, d.st.dim.Render(pad(label, detailLabel)))
}

// definition is the redacted, unexpanded definition as it would be approved.
func (s *serverScreen) definition(m *model, e approval.Entry, w int) []string {
	st := m.st
	out := []string{st.bold.Render(line(e.Server.Name, w-20)) + "  " + s.stateText(m, e)}
	out = append(out, detail(m.d, "file", untrusted.Visible(e.Server.Source)+" ("+string(e.Server.Scope)+")", w)...)
	for _, l := range e.Server.Redacted() {
		out = append(out, definitionRow(m.d, l, w)...)
	}
	v, ok := s.views[entryKey(e)]
	switch {
	case !ok:
		out = append(out, detail(m.d, "fingerprint", "…", w)...)
	case v.err != nil:
		out = append(out, hang(m.d.md.Plain(markdown.Removed, errText(v.err), w-detailLabel), st.dim.Render(pad("fingerprint", detailLabel)))...)
	default:
		out = append(out, detail(m.d, "fingerprint", untrusted.Line(v.view.Fingerprint), w)...)
	}
	return out
}

// definitionRow shows a line as definition made it: hidden characters already stand as escapes in it.
func definitionRow(d *drawing, l definition.Line, w int) []string {
	out := detail(d, untrusted.Line(l.Label), untrusted.Line(l.Value), w)
	if l.Flag != "" {
		out = append(out, hang(d.md.Plain(0, l.Flag, w-detailLabel-2), strings.Repeat(" ", detailLabel)+d.st.warn.Render("! "))...)
	}
	return out
}

// live is what is known of the running server.
func (s *serverScreen) live(m *model, e approval.Entry, w int) []string {
	st := m.st
	out := []string{""}
	if a := s.oauth[entryKey(e)]; a != "" {
		out = append(out, detail(m.d, "login", untrusted.Line(a), w)...)
		if a != "authenticated" && a != "refreshable" {
			out = append(out, hang(m.d.md.Plain(0, "magi-code mcp login "+untrusted.Line(e.Server.Name), w-detailLabel-2), strings.Repeat(" ", detailLabel)+st.accent.Render("→ "))...)
		}
	}
	live, ok := m.start.get(e.Server.Name)
	if !ok {
		return append(out, st.dim.Render("not running in this session"))
	}
	out = append(out, detail(m.d, "state", liveState(live, m.d), w)...)
	if live.ServerName != "" || live.Protocol != "" {
		who := strings.TrimSpace(untrusted.Line(untrusted.Head(live.ServerName, 256)) + " " + untrusted.Line(untrusted.Head(live.ServerVersion, 64)))
		out = append(out, detail(m.d, "says it is", who+" · protocol "+untrusted.Line(live.Protocol), w)...)
	}
	if live.Skipped > 0 {
		out = append(out, detail(m.d, "noise", fmt.Sprintf("%s of output that were no messages, first: %s", plural(live.Skipped, "line"), line(live.SkippedSample, 80)), w)...)
	}
	if live.DroppedReplies > 0 {
		out = append(out, detail(m.d, "requests", fmt.Sprintf("%d of the server's went unanswered: more than 32 in a second", live.DroppedReplies), w)...)
	}
	if live.Err != nil {
		out = append(out, hang(m.d.md.Plain(markdown.Removed, string(live.Err.Phase)+": "+live.Err.Text, w-detailLabel), st.dim.Render(pad("last error", detailLabel)))...)
		if live.Err.Hint != "" {
			out = append(out, hang(m.d.md.Plain(0, live.Err.Hint, w-detailLabel-2), strings.Repeat(" ", detailLabel)+st.accent.Render("→ "))...)
		}
	}
	out = append(out, s.changeRows(m, e.Server.Name, w)...)
	out = append(out, toolRows(live, w, m.d)...)
	if tail := strings.TrimSpace(live.Stderr); tail != "" {
		out = append(out, "", st.bold.Render("Its stderr, the end"))
		out = append(out, indent(lastLines(m.d.md.Plain(markdown.Dim, tailText(tail), w-2), 40), "  ")...)
	}
	return out
}

func liveState(s mcp.Status, d *drawing) string {
	switch s.State {
	case mcp.Ready:
		t := "ready · " + plural(len(s.Tools), "tool")
		if s.Took > 0 {
			t += " · started in " + duration(s.Took)
		}
		if s.Stale {
			t += " · listing is stale: the last refresh failed"
		}
		return t
	case mcp.Failed:
		return "failed: the next call tries again"
	case mcp.Closed:
		return "closed"
	case mcp.Starting:
		return strings.TrimSpace("starting " + string(s.Phase))
	}
	return "not started"
}

// changeRows are tools that came, went or changed.
func (s *serverScreen) changeRows(m *model, name string, w int) []string {
	var out []string
	for _, c := range s.changes {
		if c.Server != name {
			continue
		}
		for _, g := range []struct {
			head  string
			names []string
		}{{"added", c.Added}, {"removed", c.Removed}, {"changed", c.Changed}} {
			if len(g.names) > 0 {
				out = append(out, detail(m.d, g.head, untrusted.Line(strings.Join(g.names, ", ")), w)...)
			}
		}
	}
	return out
}

// toolRows lists tools, and those left out with the reason.
func toolRows(s mcp.Status, w int, d *drawing) []string {
	var out []string
	if len(s.Tools) > 0 {
		out = append(out, "", d.st.bold.Render("Tools"))
	}
	width := 0
	for _, t := range s.Tools {
		width = max(width, min(visibleWidth(untrusted.Line(t.Name)), 32, w/2))
	}
	for _, t := range s.Tools {
		about := strings.Join(strings.Fields(untrusted.Line(untrusted.Head(t.Description, 1<<10))), " ")
		out = append(out, "  "+d.st.code.Render(pad(line(t.Name, width), width))+"  "+d.st.dim.Render(fit(about, w-width-4)))
	}
	if len(s.Omitted) > 0 {
		out = append(out, "", d.st.bold.Render("Left out"))
		for _, t := range s.Omitted {
			out = append(out, hang(d.md.Plain(0, untrusted.Line(untrusted.Head(t.Name, 128)+": "+t.Reason), w-4), "  "+d.st.warn.Render("! "))...)
		}
	}
	return out
}
