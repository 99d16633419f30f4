package tui

import (
	"image/color"

	"charm.land/lipgloss/v2"

	"magi-code/internal/tui/markdown"
)

// background is what is known of the terminal's colours. Its zero value is unknown: middle tones that can be
// read on both.
type background int

const (
	unknownBackground background = iota
	darkBackground
	lightBackground
)

// styles are the looks of one theme. Text itself has no colour: it keeps the terminal's own.
type styles struct {
	accent, ok, warn, bad, dim, faint, code, bold, you, selected, invert lipgloss.Style
	marks                                                                map[markdown.Mark]lipgloss.Style
	str, num, typ, comment                                               color.Color
}

// tones are one colour for each background.
type tones struct{ unknown, dark, light string }

func (t tones) pick(b background) color.Color {
	switch b {
	case darkBackground:
		return lipgloss.Color(t.dark)
	case lightBackground:
		return lipgloss.Color(t.light)
	}
	return lipgloss.Color(t.unknown)
}

func newStyles(b background) *styles {
	fg := func(t tones) lipgloss.Style { return lipgloss.NewStyle().Foreground(t.pick(b)) }
	s := &styles{
		accent: fg(tones{"#7d6ce8", "#a99bff", "#5a3fd0"}),
		ok:     fg(tones{"#4c9f62", "#86cf93", "#2a7a40"}),
		warn:   fg(tones{"#b08422", "#e3b968", "#8a6100"}),
		bad:    fg(tones{"#d9534f", "#f2857f", "#b3261e"}),
		dim:    fg(tones{"#7d7d88", "#92929e", "#686873"}),
		faint:  fg(tones{"#85858f", "#565662", "#bdbdc7"}),
		code:   fg(tones{"#3f8fba", "#93cbe9", "#1d6790"}),
		bold:   lipgloss.NewStyle().Bold(true),
		invert: lipgloss.NewStyle().Reverse(true),
		marks:  map[markdown.Mark]lipgloss.Style{},

		str:     tones{"#4c9f62", "#a5d6a0", "#2a7a40"}.pick(b),
		num:     tones{"#b08422", "#e8c07d", "#8a6100"}.pick(b),
		typ:     tones{"#3f8fba", "#93cbe9", "#1d6790"}.pick(b),
		comment: tones{"#7d7d88", "#7e7e8a", "#767681"}.pick(b),
	}
	s.you = s.accent.Bold(true)
	s.selected = s.accent.Bold(true)
	return s
}

// paint is the markdown renderer's Paint.
func (s *styles) paint(m markdown.Mark, text string) string {
	st, ok := s.marks[m]
	if !ok {
		st = s.mark(m)
		s.marks[m] = st
	}
	return st.Render(text)
}

func (s *styles) mark(m markdown.Mark) lipgloss.Style {
	st := lipgloss.NewStyle().Bold(m&markdown.Bold != 0).Italic(m&(markdown.Italic|markdown.Comment) != 0).
		Strikethrough(m&markdown.Strike != 0).Underline(m&markdown.Link != 0)
	switch {
	case m&markdown.Keyword != 0, m&markdown.Heading != 0, m&markdown.Quote != 0:
		st = st.Foreground(s.accent.GetForeground())
	case m&markdown.String != 0:
		st = st.Foreground(s.str)
	case m&markdown.Number != 0:
		st = st.Foreground(s.num)
	case m&markdown.Type != 0:
		st = st.Foreground(s.typ)
	case m&markdown.Comment != 0:
		st = st.Foreground(s.comment)
	case m&markdown.Code != 0:
		st = st.Foreground(s.code.GetForeground())
	case m&markdown.Added != 0:
		st = st.Foreground(s.ok.GetForeground())
	case m&markdown.Removed != 0:
		st = st.Foreground(s.bad.GetForeground())
	case m&markdown.Dim != 0:
		st = st.Foreground(s.dim.GetForeground())
	}
	return st
}
