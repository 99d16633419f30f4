package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"

	"magi-code/internal/untrusted"
)

// Stream renders a text that grows. Blocks that can no longer change are rendered once per width; only the
// last block is rendered again, and of a code block only its last line.
type Stream struct {
	r     *Renderer
	all   strings.Builder // complete lines, made safe; kept for another width
	raw   string          // the unfinished last line, as it came: an escape sequence may still be split
	cut   bool            // the text passed maxText
	width int
	from  int      // all[from:] is not settled
	buf   []string // painted lines; buf[:n] are settled
	n     int
	glue  bool // what follows belongs to the block before: no empty line between them
	fence *fence
	fresh bool // buf is what text and width give
}

// NewStream makes an empty stream.
func NewStream(r *Renderer) *Stream { return &Stream{r: r} }

// Append adds text.
func (s *Stream) Append(t string) {
	if s.cut || t == "" {
		return
	}
	s.fresh = false
	if room := maxText - s.all.Len() - len(s.raw); len(t) > room {
		t, s.cut = lineCut(t, max(room, 0)), true
	}
	if i := strings.LastIndexByte(t, '\n'); i >= 0 {
		s.all.WriteString(untrusted.Text(s.raw + t[:i+1]))
		s.raw, t = "", t[i+1:]
	}
	s.raw += t
	if len(s.raw) > maxBlock { // a line without end is given out in pieces
		s.all.WriteString(untrusted.Text(s.raw))
		s.raw = ""
	}
}

// Text returns everything that was appended, made safe.
func (s *Stream) Text() string { return s.all.String() + untrusted.Text(s.raw) }

// Lines returns the painted lines for a width. The slice is valid until the next call.
func (s *Stream) Lines(width int) []string {
	if s.fresh && s.width == width {
		return s.buf
	}
	if s.width != width {
		s.width, s.from, s.n, s.fence, s.glue = width, 0, 0, nil, false
	}
	s.buf = s.buf[:s.n]
	for s.step() {
	}
	if s.cut {
		s.add(s.r.wrap([]span{{Dim, cutNote}}, width))
	}
	s.fresh = true
	return s.buf
}

// step settles what it can of the next window and reports whether there is another one. The last step
// leaves the lines of the unsettled rest behind the settled ones.
func (s *Stream) step() bool {
	complete := s.all.String()[s.from:]
	if s.fence != nil {
		return s.stepFence(complete)
	}
	window := complete + untrusted.Text(s.raw)
	more := len(window) > maxWindow
	if more {
		window = lineCut(window, maxWindow)
	}
	blocks := s.r.document(window)
	if len(blocks) == 0 {
		s.from += min(len(window), len(complete))
		return more
	}
	sure := len(blocks) - 1 // index of the first block that may still change
	at := lineStart(window, blocks[sure].Pos())
	if at >= len(complete) && sure > 0 && !more {
		sure-- // the unfinished line may yet turn out to belong to the block before it
		at = lineStart(window, blocks[sure].Pos())
	}
	if at == 0 && (more || len(window) > maxBlock) {
		return s.force(lineCut(window, maxBlock), len(complete), more)
	}
	s.settle(blocks[:sure])
	s.from += min(at, len(complete)) // behind it is the unfinished line, which a \r may break
	if at <= len(complete) && s.openFence(blocks[sure], window[at:], len(complete)-at) {
		return true
	}
	if more {
		return true
	}
	n := s.n
	for _, b := range blocks[sure:] {
		s.add(s.r.block(b, s.width, 0))
	}
	s.n = n
	return false
}

// force settles a piece of a block that is too long to be rendered in every frame.
func (s *Stream) force(piece string, complete int, more bool) bool {
	piece = piece[:min(len(piece), complete)]
	if piece == "" {
		return false
	}
	for _, b := range s.r.document(piece) {
		s.settle([]ast.Node{b})
		s.glue = true
	}
	s.from += len(piece)
	return more || s.from < s.all.Len() || s.raw != ""
}

func (s *Stream) settle(blocks []ast.Node) {
	for _, b := range blocks {
		s.add(s.r.block(b, s.width, 0))
	}
	s.n = len(s.buf)
}

// add appends the lines of a block, an empty line before it.
func (s *Stream) add(lines []string) {
	if len(lines) == 0 {
		return
	}
	if len(s.buf) > 0 && !s.glue {
		s.buf = append(s.buf, "")
	}
	s.glue = false
	s.buf = append(s.buf, lines...)
}

func lineStart(s string, at int) int {
	at = min(max(at, 0), len(s))
	return strings.LastIndexByte(s[:at], '\n') + 1
}

// lineCut returns at most limit bytes of s, up to the end of a line where there is one.
func lineCut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if i := strings.LastIndexByte(s[:limit], '\n'); i > 0 {
		return s[:i+1]
	}
	for limit > 0 && s[limit]&0xc0 == 0x80 {
		limit--
	}
	return s[:limit]
}
