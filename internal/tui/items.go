package tui

import (
	"fmt"
	"strings"

	"magi-code/internal/provider"
	"magi-code/internal/tui/markdown"
	"magi-code/internal/untrusted"
)

// mdRenderer is the Markdown renderer of the theme.
type mdRenderer = markdown.Renderer

const (
	promptLines = 20 // lines of a prompt shown in the transcript
	thoughtRows = 3  // lines of a thought shown while it streams
)

// promptItem is what the user said.
type promptItem struct{ text string }

func (p *promptItem) lines(w int, d *drawing) []string {
	body := d.md.Plain(0, untrusted.Head(p.text, 64<<10), w-2)
	if more := len(body) - promptLines; more > 1 {
		body = append(body[:promptLines:promptLines], d.st.dim.Render(fmt.Sprintf("… %d more lines", more)))
	}
	for i := range body {
		mark := "  "
		if i == 0 {
			mark = d.st.you.Render("❯") + " "
		}
		body[i] = mark + d.st.bold.Render(body[i])
	}
	return body
}

// answerItem is an answer of the model, while it streams and after.
type answerItem struct {
	s     *markdown.Stream
	src   strings.Builder
	theme *mdRenderer
}

func (a *answerItem) append(s string) {
	a.src.WriteString(s)
	if a.s != nil {
		a.s.Append(s)
	}
}

// replace sets the complete text.
func (a *answerItem) replace(s string) {
	if a.src.String() != s {
		a.src.Reset()
		a.src.WriteString(s)
		a.s = nil
	}
}

func (a *answerItem) lines(w int, d *drawing) []string {
	if a.s == nil || a.theme != d.md {
		a.s, a.theme = markdown.NewStream(d.md), d.md
		a.s.Append(a.src.String())
	}
	return a.s.Lines(w)
}

// thoughtItem is what the model thinks: a short tail while it streams, one line after.
type thoughtItem struct {
	text     string
	done     bool
	expanded bool
}

func (t *thoughtItem) lines(w int, d *drawing) []string {
	text := untrusted.Text(t.text)
	if len(text) > 16<<10 && !t.expanded {
		text = text[len(text)-16<<10:]
	}
	all := d.md.Plain(markdown.Dim|markdown.Italic, strings.TrimSpace(strings.ToValidUTF8(text, "")), w-2)
	switch {
	case t.expanded:
	case t.done:
		first := ""
		if len(all) > 0 {
			first = all[0]
		}
		return []string{d.st.dim.Render("∴ ") + first}
	case len(all) > thoughtRows:
		all = all[len(all)-thoughtRows:]
	}
	for i := range all {
		mark := "  "
		if i == 0 {
			mark = d.st.dim.Render("∴ ")
		}
		all[i] = mark + all[i]
	}
	return all
}

// noticeKind is how loud a notice is.
type noticeKind int

const (
	quiet noticeKind = iota
	good
	warning
	failure
)

// noticeItem is a line of ours: what happened, and the cure.
type noticeItem struct {
	kind noticeKind
	text string
	hint string
	raw  string // foreign text under it: a stderr tail
}

func (n *noticeItem) lines(w int, d *drawing) []string {
	mark, st := "•", d.st.dim
	switch n.kind {
	case good:
		mark, st = "✓", d.st.ok
	case warning:
		mark, st = "!", d.st.warn
	case failure:
		mark, st = "✗", d.st.bad
	}
	paint := markdown.Mark(0)
	if n.kind == quiet {
		paint = markdown.Dim
	}
	out := hang(d.md.Plain(paint, n.text, w-2), st.Render(mark)+" ")
	if n.raw != "" {
		rows := d.md.Plain(markdown.Dim, tailText(n.raw), w-4)
		for _, r := range lastLines(rows, 8) {
			out = append(out, "  "+d.st.faint.Render("│")+" "+r)
		}
	}
	if n.hint != "" {
		out = append(out, hang(d.md.Plain(0, n.hint, w-4), "  "+d.st.accent.Render("→")+" ")...)
	}
	return out
}

// hang puts a mark before the first line and spaces before the others.
func hang(lines []string, mark string) []string {
	blank := strings.Repeat(" ", visibleWidth(mark))
	for i := range lines {
		if i == 0 {
			lines[i] = mark + lines[i]
		} else {
			lines[i] = blank + lines[i]
		}
	}
	return lines
}

// tailText is the end of a long foreign text.
func tailText(s string) string {
	if len(s) > 8<<10 {
		s = strings.ToValidUTF8(s[len(s)-8<<10:], "")
	}
	return strings.TrimRight(s, "\n")
}

func lastLines(rows []string, n int) []string {
	if len(rows) > n {
		return rows[len(rows)-n:]
	}
	return rows
}

// turnItem closes a turn: how it ended, what it took.
type turnItem struct{ text string }

func (t *turnItem) lines(w int, d *drawing) []string {
	return []string{d.st.dim.Render(fit(t.text, w))}
}

// usageText is tokens, and what they cost where the service told, in a few words.
func usageText(u provider.Usage) string {
	in := u.Input + u.CacheRead + u.CacheWrite
	if in == 0 && u.Output == 0 {
		return ""
	}
	s := "↑" + count(in) + " ↓" + count(u.Output)
	if u.CacheRead > 0 && in > 0 {
		s += fmt.Sprintf(" (%d%% cached)", 100*u.CacheRead/in)
	}
	switch {
	case u.Cost >= 0.01:
		s += fmt.Sprintf(" $%.2f", u.Cost)
	case u.Cost >= 0.0001:
		s += fmt.Sprintf(" $%.4f", u.Cost)
	}
	return s
}
