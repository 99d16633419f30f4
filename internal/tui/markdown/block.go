package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"github.com/charmbracelet/x/ansi"

	"magi-code/internal/untrusted"
)

// block renders one block of the document that was parsed last.
func (r *Renderer) block(n ast.Node, width, depth int) []string {
	if depth > maxDepth {
		return r.wrap([]span{{Dim, "…"}}, width)
	}
	switch n := n.(type) {
	case *ast.Heading:
		return r.wrap(r.inline(n, Heading|Bold, depth), width)
	case *ast.Paragraph, *ast.TextBlock:
		return r.wrap(r.inline(n, 0, depth), width)
	case *ast.ThematicBreak:
		return []string{r.paint(Dim, strings.Repeat("─", min(max(width, minWidth), 40)))}
	case *ast.FencedCodeBlock:
		return r.codeBlock(string(n.Language(r.src)), n.Lines().Value(r.src), width)
	case *ast.CodeBlock:
		return r.codeBlock("", n.Lines().Value(r.src), width)
	case *ast.HTMLBlock:
		src := n.Lines().Value(r.src)
		if n.HasClosure() {
			src = append(src, n.ClosureLine.Value(r.src)...)
		}
		return r.Plain(Dim, strings.TrimRight(string(src), "\n"), width)
	case *ast.Blockquote:
		return prefix(r.children(n, width-2, depth, true), r.paint(Quote, "│")+" ", r.paint(Quote, "│")+" ")
	case *ast.List:
		return r.list(n, width, depth)
	case *east.Table:
		return r.table(n, width, depth)
	case *ast.LinkReferenceDefinition:
		return nil
	default:
		return r.children(n, width, depth, true)
	}
}

// children renders the blocks inside another one; loose puts an empty line between them.
func (r *Renderer) children(n ast.Node, width, depth int, loose bool) []string {
	var out []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		lines := r.block(c, width, depth+1)
		if len(out) > 0 && len(lines) > 0 && loose {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func (r *Renderer) list(n *ast.List, width, depth int) []string {
	var out []string
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		marker := "• "
		if n.IsOrdered() {
			marker = strconv.Itoa(number) + ". "
			number++
		}
		pad := len(marker)
		if !n.IsOrdered() {
			pad = 2
		}
		lines := r.children(c, width-pad, depth+1, !n.IsTight)
		if len(lines) == 0 {
			lines = []string{""}
		}
		if len(out) > 0 && !n.IsTight {
			out = append(out, "")
		}
		out = append(out, prefix(lines, r.paint(Dim, marker), strings.Repeat(" ", pad))...)
	}
	return out
}

func prefix(lines []string, first, rest string) []string {
	for i := range lines {
		switch {
		case i == 0:
			lines[i] = first + lines[i]
		case lines[i] != "" || strings.TrimSpace(rest) != "":
			lines[i] = rest + lines[i]
		}
	}
	return lines
}

// codeBlock renders code, its language stated above it when there is one.
func (r *Renderer) codeBlock(lang string, code []byte, width int) []string {
	var out []string
	if head := r.codeHead(lang, width); head != "" {
		out = append(out, head)
	}
	h := r.highlighter(lang)
	for line := range strings.SplitSeq(strings.TrimSuffix(untrusted.Text(string(code)), "\n"), "\n") {
		out = append(out, r.codeLine(h, line, width)...)
	}
	return out
}

func (r *Renderer) codeHead(lang string, width int) string {
	lang = ansi.Truncate(untrusted.Line(lang), min(20, max(width-len(codePad), minWidth)), "…")
	if strings.TrimSpace(lang) == "" {
		return ""
	}
	return codePad + r.paint(Dim, r.stripControls(lang))
}

func (r *Renderer) codeLine(h *highlighter, line string, width int) []string {
	lines := r.wrapHard(h.line(line), width-len(codePad))
	for i := range lines {
		if lines[i] != "" {
			lines[i] = codePad + lines[i]
		}
	}
	return lines
}

// stripControls passes a short text through the last gate.
func (r *Renderer) stripControls(s string) string {
	var b strings.Builder
	for _, c := range r.flatten([]span{{0, s}}) {
		b.WriteString(c.s)
	}
	return b.String()
}
