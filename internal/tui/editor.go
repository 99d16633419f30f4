package tui

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

const (
	chipBase  = unicode.MaxRune + 1 // runes from here on stand for pasted texts: no decoder yields them
	chipLines = 6                   // a paste of more lines, or
	chipRunes = 800                 // of more characters, is shown as a chip
	maxUndo   = 200                 // states kept for Ctrl-_
)

// editor is the prompt being written: text, cursor, pasted chips, undo. It is a plain value holder: every method
// changes it at once and does no I/O.
type editor struct {
	text  []rune
	at    int      // cursor, an index into text
	chips []string // texts of chips, by rune - chipBase
	kill  []rune   // what Ctrl-K, Ctrl-U, Ctrl-W cut last
	undos []snapshot
	typed bool // the last change was typing: it joins the undo state before it
	goal  int  // column that Up and Down keep; -1: that of the cursor

	version int // counts changes
	layout  layout
}

type snapshot struct {
	text []rune
	at   int
}

// String returns the text as it is sent: chips in full.
func (e *editor) String() string { return e.expand(e.text) }

func (e *editor) expand(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		if r >= chipBase {
			b.WriteString(e.chips[r-chipBase])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// blank reports whether there is nothing but white space.
func (e *editor) blank() bool {
	return !slices.ContainsFunc(e.text, func(r rune) bool { return !unicode.IsSpace(r) })
}

func (e *editor) empty() bool { return len(e.text) == 0 }

// changed is called before every change.
func (e *editor) changed(typing bool) {
	if !typing || !e.typed {
		e.undos = append(e.undos, snapshot{slices.Clone(e.text), e.at})
		if len(e.undos) > maxUndo {
			e.undos = e.undos[1:]
		}
	}
	e.typed, e.goal = typing, -1
	e.version++
}

func (e *editor) undo() {
	if n := len(e.undos); n > 0 {
		s := e.undos[n-1]
		e.undos = e.undos[:n-1]
		e.text, e.at, e.typed, e.goal = s.text, s.at, false, -1
		e.version++
	}
}

// set replaces everything; long texts become chips unless they are to be edited.
func (e *editor) set(s string) {
	e.changed(false)
	e.text = e.runes(s)
	e.at = len(e.text)
}

// runes takes a text in, without what cannot be edited.
func (e *editor) runes(s string) []rune {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return []rune(strings.ToValidUTF8(s, "\ufffd"))
}

func (e *editor) insert(s string) {
	rs := e.runes(s)
	if len(rs) == 0 {
		return
	}
	space := len(rs) == 1 && unicode.IsSpace(rs[0])
	e.changed(!space)
	e.put(rs)
}

func (e *editor) put(rs []rune) {
	e.text = slices.Insert(e.text, e.at, rs...)
	e.at += len(rs)
}

// paste inserts a text, as a chip when it is long.
func (e *editor) paste(s string) {
	rs := e.runes(s)
	if len(rs) <= chipRunes && strings.Count(s, "\n") < chipLines {
		e.changed(false)
		e.put(rs)
		return
	}
	e.changed(false)
	e.put([]rune{e.chip(string(rs))})
}

func (e *editor) chip(s string) rune {
	e.chips = append(e.chips, s)
	return rune(chipBase + len(e.chips) - 1)
}

// chipLabel is what a chip looks like.
func (e *editor) chipLabel(r rune) string {
	s := e.chips[r-chipBase]
	lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
	if lines == 1 {
		return fmt.Sprintf("[pasted %s]", bytesText(len(s)))
	}
	return fmt.Sprintf("[pasted %d lines, %s]", lines, bytesText(len(s)))
}

// line returns the bounds of the logical line that holds position p.
func (e *editor) line(p int) (start, end int) {
	start, end = p, p
	for start > 0 && e.text[start-1] != '\n' {
		start--
	}
	for end < len(e.text) && e.text[end] != '\n' {
		end++
	}
	return start, end
}

// clusters returns where the grapheme clusters of text[from:to] begin, and to.
func (e *editor) clusters(from, to int) []int {
	out := []int{from}
	for p := from; p < to; {
		p += e.clusterLen(p, to)
		out = append(out, p)
	}
	return out
}

// clusterLen is the number of runes of the cluster at p.
func (e *editor) clusterLen(p, to int) int {
	r := e.text[p]
	if r >= chipBase || r == '\n' || p+1 >= to || (r < 0x300 && e.text[p+1] < 0x300) {
		return 1
	}
	end := p + 1
	for end < to && end-p < 32 && e.text[end] < chipBase && e.text[end] != '\n' {
		end++
	}
	cluster, _ := ansi.FirstGraphemeCluster(string(e.text[p:end]), ansi.GraphemeWidth)
	return max(1, len([]rune(cluster)))
}

func (e *editor) left() {
	e.typed, e.goal = false, -1
	if e.at == 0 {
		return
	}
	start, _ := e.line(e.at)
	if start == e.at {
		e.at--
		return
	}
	cl := e.clusters(start, e.at)
	e.at = cl[len(cl)-2]
}

func (e *editor) right() {
	e.typed, e.goal = false, -1
	if e.at < len(e.text) {
		_, end := e.line(e.at)
		e.at += e.clusterLen(e.at, max(end, e.at+1))
	}
}

func (e *editor) wordLeft() {
	e.typed, e.goal = false, -1
	for e.at > 0 && !isWord(e.text[e.at-1]) {
		e.at--
	}
	for e.at > 0 && isWord(e.text[e.at-1]) {
		e.at--
	}
}

func (e *editor) wordRight() {
	e.typed, e.goal = false, -1
	for e.at < len(e.text) && !isWord(e.text[e.at]) {
		e.at++
	}
	for e.at < len(e.text) && isWord(e.text[e.at]) {
		e.at++
	}
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func (e *editor) home() {
	e.typed, e.goal = false, -1
	e.at, _ = e.line(e.at)
}

func (e *editor) end() {
	e.typed, e.goal = false, -1
	_, e.at = e.line(e.at)
}

// remove deletes text[from:to] and keeps it for yank when killed is true.
func (e *editor) remove(from, to int, killed bool) {
	if from >= to {
		return
	}
	e.changed(false)
	if killed {
		e.kill = slices.Clone(e.text[from:to])
	}
	e.text = slices.Delete(e.text, from, to)
	e.at = from
}

func (e *editor) backspace() {
	if to := e.at; to > 0 {
		e.left()
		e.remove(e.at, to, false)
	}
}

func (e *editor) del() {
	if e.at < len(e.text) {
		_, end := e.line(e.at)
		e.remove(e.at, e.at+e.clusterLen(e.at, max(end, e.at+1)), false)
	}
}

func (e *editor) killWordLeft() {
	to := e.at
	e.wordLeft()
	e.remove(e.at, to, true)
}

func (e *editor) killWordRight() {
	from := e.at
	e.wordRight()
	e.remove(from, e.at, true)
}

func (e *editor) killToEnd() {
	_, end := e.line(e.at)
	if end == e.at && end < len(e.text) {
		end++
	}
	e.remove(e.at, end, true)
}

func (e *editor) killToStart() {
	start, _ := e.line(e.at)
	e.remove(start, e.at, true)
}

func (e *editor) yank() {
	if len(e.kill) > 0 {
		e.changed(false)
		e.put(e.kill)
	}
}

// take empties the editor and returns what it held.
func (e *editor) take() draft {
	d := draft{text: e.text, chips: slices.Clone(e.chips)}
	*e = editor{version: e.version + 1, kill: e.kill, goal: -1}
	return d
}

// restore puts a draft back, before what has been typed since.
func (e *editor) restore(d draft) {
	rest := e.take()
	e.text, e.chips = slices.Clone(d.text), slices.Clone(d.chips)
	e.at = len(e.text)
	if !rest.blank() {
		e.put([]rune("\n"))
		for _, r := range rest.text {
			if r >= chipBase {
				r = e.chip(rest.chips[r-chipBase])
			}
			e.put([]rune{r})
		}
	}
	e.version++
}

// draft is a prompt that is not being edited: queued, or in the history.
type draft struct {
	text  []rune
	chips []string
}

func draftOf(s string) draft { return draft{text: (&editor{}).runes(s)} }

// String is the text as it is sent.
func (d draft) String() string { return (&editor{chips: d.chips}).expand(d.text) }

func (d draft) blank() bool { return (&editor{text: d.text}).blank() }

// label is the draft in one line, chips as such.
func (d draft) label() string {
	e := &editor{chips: d.chips}
	var b strings.Builder
	for _, r := range d.text {
		if r >= chipBase {
			b.WriteString(e.chipLabel(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
