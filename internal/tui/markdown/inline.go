package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"magi-code/internal/untrusted"
)

// inline collects the spans of a node's inline children under the marks of its surroundings.
func (r *Renderer) inline(n ast.Node, m Mark, depth int) []span {
	var out []span
	if depth > maxDepth {
		return out
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		out = append(out, r.inlineNode(c, m, depth)...)
	}
	return out
}

func (r *Renderer) inlineNode(c ast.Node, m Mark, depth int) []span {
	switch c := c.(type) {
	case *ast.Text:
		s := r.plain(c.Segment.Value(r.src), c.IsRaw())
		switch {
		case c.HardLineBreak():
			s += "\n"
		case c.SoftLineBreak():
			s += " "
		}
		return []span{{m, s}}
	case *ast.String:
		return []span{{m, r.plain(c.Value, c.IsRaw() || c.IsCode())}}
	case *ast.CodeSpan:
		return r.inline(c, m|Code, depth+1)
	case *ast.Emphasis:
		if c.Level >= 2 {
			return r.inline(c, m|Bold, depth+1)
		}
		return r.inline(c, m|Italic, depth+1)
	case *east.Strikethrough:
		return r.inline(c, m|Strike, depth+1)
	case *ast.Link:
		return r.link(r.inline(c, m|Link, depth+1), c.Destination, m)
	case *ast.Image:
		return r.link(r.inline(c, m|Italic, depth+1), c.Destination, m)
	case *ast.AutoLink:
		return []span{{m | Link, r.plain(c.Label(r.src), true)}}
	case *ast.RawHTML:
		return []span{{m | Dim, r.plain(c.Segments.Value(r.src), true)}}
	case *east.TaskCheckBox:
		if c.IsChecked {
			return []span{{m, "☑ "}}
		}
		return []span{{m, "☐ "}}
	default:
		return r.inline(c, m, depth+1)
	}
}

// link shows where a link leads unless its text already says so: what a person reads and what they open
// must not differ.
func (r *Renderer) link(label []span, dest []byte, m Mark) []span {
	url := r.plain(dest, false)
	var b strings.Builder
	for _, s := range label {
		b.WriteString(s.text)
	}
	if url == "" || b.String() == url || "mailto:"+b.String() == url {
		return label
	}
	return append(label, span{m | Dim, " (" + url + ")"})
}

// plain decodes escapes and entities of a source text and makes the result safe.
func (r *Renderer) plain(b []byte, raw bool) string {
	if !raw {
		b = util.UnescapePunctuations(b)
		b = util.ResolveNumericReferences(b)
		b = util.ResolveEntityNames(b)
	}
	return untrusted.Line(string(b))
}
