package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"

	"magi-code/internal/untrusted"
)

// fence is an open fenced code block at top level. Its complete lines are settled one by one, so that a long
// program streams at the cost of its newest line.
type fence struct {
	char   byte
	count  int
	indent int
	h      *highlighter
}

// openFence enters a code block whose first line is complete, and moves from behind that line.
func (s *Stream) openFence(n ast.Node, text string, complete int) bool {
	if _, ok := n.(*ast.FencedCodeBlock); !ok {
		return false
	}
	end := strings.IndexByte(text, '\n')
	if end < 0 || end >= complete {
		return false
	}
	line := text[:end]
	body := strings.TrimLeft(line, " ")
	f := &fence{indent: len(line) - len(body)}
	if body == "" || (body[0] != '`' && body[0] != '~') {
		return false
	}
	f.char = body[0]
	info := strings.TrimLeft(body, body[:1])
	f.count = len(body) - len(info)
	lang, _, _ := strings.Cut(strings.TrimSpace(info), " ")
	f.h = s.r.highlighter(lang)
	if head := s.r.codeHead(lang, s.width); head != "" {
		s.add([]string{head})
		s.glue = true
	} else if len(s.buf) > 0 && !s.glue {
		s.buf = append(s.buf, "")
	}
	s.n = len(s.buf)
	s.fence, s.from = f, s.from+end+1
	return true
}

// stepFence settles the complete lines of an open code block and reports whether it was closed.
func (s *Stream) stepFence(complete string) bool {
	for {
		line, rest, ok := strings.Cut(complete, "\n")
		if !ok {
			break
		}
		s.from += len(line) + 1
		complete = rest
		if s.fence.closes(line) {
			s.fence, s.glue = nil, false
			s.n = len(s.buf)
			return true
		}
		s.buf = append(s.buf, s.r.codeLine(s.fence.h, s.fence.body(line), s.width)...)
		s.n = len(s.buf)
	}
	last := complete + untrusted.Text(s.raw)
	if last != "" && !s.fence.closes(last) {
		h := *s.fence.h // the line is not finished: its state must not stay
		s.buf = append(s.buf, s.r.codeLine(&h, s.fence.body(last), s.width)...)
	}
	return false
}

// closes reports whether a line ends the block.
func (f *fence) closes(line string) bool {
	body := strings.TrimLeft(line, " ")
	if len(line)-len(body) > 3 {
		return false
	}
	rest := strings.TrimLeft(body, string(f.char))
	return len(body)-len(rest) >= f.count && strings.TrimSpace(rest) == ""
}

// body takes the fence's own indentation off a line.
func (f *fence) body(line string) string {
	for range f.indent {
		if !strings.HasPrefix(line, " ") {
			break
		}
		line = line[1:]
	}
	return line
}
