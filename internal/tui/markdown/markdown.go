// Package markdown renders Markdown for a terminal: whole texts, and texts that are still being streamed. Its
// input is untrusted; its output holds no control byte but those that the caller's Paint adds.
package markdown

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"magi-code/internal/untrusted"
)

// Mark says what a piece of text is; several may hold at once.
type Mark uint32

// The marks that a Paint is asked for.
const (
	Bold Mark = 1 << iota
	Italic
	Strike
	Code
	Link
	Heading
	Quote
	Dim
	Keyword
	String
	Number
	Comment
	Type
	Added
	Removed
)

// Paint styles a piece of one line. It must not change the width of the text.
type Paint func(m Mark, s string) string

const (
	maxDepth  = 24       // nested blocks beyond it are shown as plain text: a person reads no deeper
	maxBlock  = 16 << 10 // bytes of one block that are parsed together: keeps every frame of a stream short
	maxWindow = 64 << 10 // bytes parsed at once of a complete text
	maxText   = 4 << 20  // bytes of one text that are rendered at all; the rest is stated as left out
	minWidth  = 4        // columns left for text, however deep it is nested
	codePad   = "  "     // before each line of code
	cutNote   = "[the rest is too long to show]"
)

// Renderer renders with one Paint. It keeps caches and is for one goroutine.
type Renderer struct {
	paint  Paint
	parser parser.Parser
	blocks parser.Parser // without inline markup, for texts that are too dense with it
	langs  map[string]*language
	cells  []cell
	src    []byte
}

// New makes a renderer.
func New(p Paint) *Renderer {
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))
	blocks := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(util.Prioritized(parser.NewCodeSpanParser(), 100)))
	return &Renderer{paint: p, parser: md.Parser(), blocks: blocks, langs: map[string]*language{}}
}

// Render returns a complete text as painted lines of at most width columns (wider only where a single
// character is).
func (r *Renderer) Render(src string, width int) []string {
	s := NewStream(r)
	s.Append(src)
	return s.Lines(width)
}

// document parses src and returns its top-level blocks.
func (r *Renderer) document(src string) []ast.Node {
	src, dense := tame(src)
	r.src = []byte(src)
	p := r.parser
	if dense {
		p = r.blocks
	}
	doc := p.Parse(text.NewReader(r.src))
	var blocks []ast.Node
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		blocks = append(blocks, n)
	}
	return blocks
}

// Plain wraps text that is no Markdown, under one mark.
func (r *Renderer) Plain(m Mark, s string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(untrusted.Text(s), "\n") {
		out = append(out, r.wrap([]span{{m, line}}, width)...)
	}
	return out
}

// CodeLines highlights code of a language, wrapped to width.
func (r *Renderer) CodeLines(lang, code string, width int) []string {
	h := r.highlighter(lang)
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(untrusted.Text(code), "\n"), "\n") {
		out = append(out, r.wrapHard(h.line(line), width)...)
	}
	return out
}

// Code wraps one line of code under one mark, spaces kept.
func (r *Renderer) Code(m Mark, s string, width int) []string {
	return r.wrapHard([]span{{m, s}}, width)
}
