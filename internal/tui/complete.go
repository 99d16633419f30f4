package tui

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"magi-code/internal/untrusted"
)

const completionRows = 8 // candidates shown at once

// completion is the list under the prompt for / and @.
type completion struct {
	open    bool
	slash   bool
	from    int // where the completed word begins in the editor
	list    []candidate
	at      int
	version int // of the editor's text that it belongs to
}

type candidate struct{ text, about string }

// complete looks at the word before the cursor after every change.
func (m *model) complete() {
	c, e := &m.comp, &m.ed
	if c.version == e.version {
		return
	}
	c.version = e.version
	start := e.at
	for start > 0 && !unicode.IsSpace(e.text[start-1]) && e.text[start-1] < chipBase {
		start--
	}
	word := string(e.text[start:e.at])
	switch {
	case start == 0 && strings.HasPrefix(word, "/") && !strings.Contains(word[1:], "/"):
		c.show(commandCandidates(word), start, true)
	case strings.HasPrefix(word, "@") && m.o.Files != nil:
		if c.slash {
			c.open = false
		}
		c.slash, c.from = false, start
		version, files, ctx := e.version, m.o.Files, m.ctx
		m.rt.do(func() tea.Msg { return filesMsg{version, files(ctx, word[1:])} })
	default:
		c.open = false
	}
}

func (c *completion) show(list []candidate, from int, slash bool) {
	c.open, c.list, c.from, c.slash, c.at = len(list) > 0, list, from, slash, 0
}

func (m *model) onFiles(f filesMsg) {
	if f.version != m.ed.version || m.comp.slash {
		return
	}
	var list []candidate
	for _, p := range f.files {
		list = append(list, candidate{text: "@" + p})
	}
	m.comp.show(list, m.comp.from, false)
}

// accept puts the chosen candidate into the editor.
func (m *model) accept() {
	c, e := &m.comp, &m.ed
	text := untrusted.Line(c.list[c.at].text)
	e.changed(false)
	rest := e.text[e.at:]
	e.text = append(append(append([]rune(nil), e.text[:c.from]...), []rune(text)...), rest...)
	e.at = c.from + len([]rune(text))
	if !strings.HasSuffix(text, "/") && (len(rest) == 0 || !unicode.IsSpace(rest[0])) {
		e.put([]rune(" "))
	}
	c.open, c.version = false, e.version
	if strings.HasSuffix(text, "/") {
		c.version = -1 // a folder: go on inside
		m.complete()
	}
}

// completionKey handles a key while the list is open; false leaves it to the editor.
func (m *model) completionKey(k string) bool {
	c := &m.comp
	switch k {
	case "up", "ctrl+p":
		c.at = (c.at + len(c.list) - 1) % len(c.list)
	case "down", "ctrl+n":
		c.at = (c.at + 1) % len(c.list)
	case "tab":
		m.accept()
	case "enter":
		if c.slash && string(m.ed.text) == c.list[c.at].text {
			c.open = false
			return false // typed in full: run it
		}
		slash := c.slash
		m.accept()
		return !slash // a chosen command runs at once
	case "esc":
		c.open = false
	default:
		return false
	}
	return true
}

// completionView draws the list.
func (m *model) completionView(w, room int) []string {
	c, st := &m.comp, m.st
	n := min(len(c.list), completionRows, room)
	if n <= 0 {
		return nil
	}
	first := max(0, min(c.at-n/2, len(c.list)-n))
	width := 0
	for _, x := range c.list[first : first+n] {
		width = max(width, visibleWidth(untrusted.Line(x.text)))
	}
	width = min(width, w-6)
	var out []string
	for i := first; i < first+n; i++ {
		x := c.list[i]
		text := pad(line(x.text, width), width)
		mark := "  "
		if i == c.at {
			mark, text = st.accent.Render("▸ "), st.selected.Render(text)
		}
		out = append(out, fit("  "+mark+text+"  "+st.dim.Render(x.about), w))
	}
	return out
}
