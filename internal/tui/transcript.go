package tui

import (
	"strings"
)

const (
	margin  = 2   // columns left of everything in the transcript
	maxText = 116 // columns of text: longer lines are hard to read, however wide the window is
)

// item is one thing in the transcript. lines may use what it keeps between calls; entry asks only when something
// changed.
type item interface {
	lines(width int, d *drawing) []string
}

// drawing is what an item needs to draw itself.
type drawing struct {
	st   *styles
	md   *mdRenderer
	tick int // moves spinners
	now  func() int64
}

// entry is an item with its rendering, kept per width and theme.
type entry struct {
	item
	gap    int // empty lines before it
	width  int
	theme  int
	stale  bool
	cached []string
}

// transcript is the list of entries and what part of it is seen. The height of the whole is never computed: the
// position is an entry and a line of it, or the end.
type transcript struct {
	entries []*entry
	d       *drawing
	theme   int // counts changes of the looks
	width   int
	height  int
	follow  bool // the end is seen, and stays seen
	top     int  // first entry seen, when not following
	off     int  // lines of it that are above the screen, its gap included
	news    bool // something was added below what is seen
}

func (t *transcript) add(it item, gap int) *entry {
	if len(t.entries) == 0 {
		gap = 0
	}
	e := &entry{item: it, gap: gap, stale: true}
	t.entries = append(t.entries, e)
	t.news = t.news || !t.follow
	return e
}

func (t *transcript) clear() {
	t.entries, t.top, t.off, t.follow, t.news = nil, 0, 0, true, false
}

// touch says that an entry looks different now.
func (t *transcript) touch(e *entry) {
	if e != nil {
		e.stale = true
		t.news = t.news || !t.follow
	}
}

// touchQuiet is touch for what moves by itself and is no news.
func (t *transcript) touchQuiet(i int) {
	if i < len(t.entries) {
		t.entries[i].stale = true
	}
}

// touchEntry is touchQuiet for an entry.
func (t *transcript) touchEntry(e *entry) { e.stale = true }

// reveal scrolls so far that entry i is seen.
func (t *transcript) reveal(i int) {
	t.anchor()
	if t.follow {
		return
	}
	if i < t.top || (i == t.top && t.off > 0) {
		t.top, t.off = i, 0
		t.catchUp()
		return
	}
	used := -t.off
	for j := t.top; j <= i; j++ {
		used += t.heightOf(j)
	}
	if over := used - t.height; over > 0 {
		t.scroll(min(over, used-t.heightOf(i)))
	}
}

// lines returns an entry's lines without its gap.
func (t *transcript) lines(e *entry) []string {
	w := min(max(t.width-2*margin, 8), maxText)
	if e.stale || e.width != w || e.theme != t.theme {
		e.cached = e.item.lines(w, t.d)
		e.width, e.theme, e.stale = w, t.theme, false
	}
	return e.cached
}

func (t *transcript) heightOf(i int) int {
	n := len(t.lines(t.entries[i]))
	if n == 0 {
		return 0
	}
	return n + t.entries[i].gap
}

// anchor leaves the follow mode at what is seen now.
func (t *transcript) anchor() {
	if !t.follow {
		return
	}
	left := t.height
	for i := len(t.entries) - 1; i >= 0; i-- {
		left -= t.heightOf(i)
		if left <= 0 {
			t.top, t.off, t.follow = i, -left, false
			return
		}
	}
	t.top, t.off = 0, 0 // everything fits: there is nothing to scroll
}

// scroll moves what is seen by n lines, down when positive.
func (t *transcript) scroll(n int) {
	if n < 0 {
		t.anchor()
	}
	if t.follow || len(t.entries) == 0 {
		return
	}
	t.off += n
	for t.off < 0 && t.top > 0 {
		t.top--
		t.off += t.heightOf(t.top)
	}
	t.off = max(t.off, 0)
	for t.top < len(t.entries)-1 && t.off >= t.heightOf(t.top) {
		t.off -= t.heightOf(t.top)
		t.top++
	}
	t.catchUp()
}

// catchUp follows again once the end is on the screen.
func (t *transcript) catchUp() {
	left := t.height + t.off
	for i := t.top; i < len(t.entries); i++ {
		if left -= t.heightOf(i); left < 0 {
			return
		}
	}
	t.follow, t.news = true, false
}

func (t *transcript) toTop()    { t.top, t.off, t.follow = 0, 0, false; t.catchUp() }
func (t *transcript) toBottom() { t.follow, t.news = true, false }

// view returns exactly height lines.
func (t *transcript) view(height int) []string {
	t.height = height
	out := make([]string, 0, height)
	if t.follow {
		first, skip := t.fromEnd(height)
		return t.collect(out, first, skip, height)
	}
	if t.top >= len(t.entries) {
		t.top, t.off = 0, 0
	}
	return t.collect(out, t.top, t.off, height)
}

// fromEnd finds where a screen begins that shows the end.
func (t *transcript) fromEnd(height int) (first, skip int) {
	left := height
	for i := len(t.entries) - 1; i >= 0; i-- {
		left -= t.heightOf(i)
		if left <= 0 {
			return i, -left
		}
	}
	return 0, 0
}

func (t *transcript) collect(out []string, first, skip, height int) []string {
	indent := strings.Repeat(" ", margin)
	for i := first; i < len(t.entries) && len(out) < height; i++ {
		lines, gap := t.lines(t.entries[i]), t.entries[i].gap
		if len(lines) == 0 {
			continue
		}
		for j := skip; j < gap+len(lines) && len(out) < height; j++ {
			if j < gap {
				out = append(out, "")
				continue
			}
			out = append(out, indent+lines[j-gap])
		}
		skip = 0
	}
	for len(out) < height {
		out = append(out, "")
	}
	return out
}
