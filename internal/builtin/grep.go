package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"magi-code/internal/tool"
)

const (
	grepDescription = "Search file contents, line by line, for a regular expression (RE2 syntax). " +
		"Binary files, files over 5 MiB, .git and node_modules are passed over unless path names them."
	grepSchema = `{"type":"object","properties":{` + intentProperty + `,` +
		`"pattern":{"type":"string"},` +
		`"path":{"type":"string","description":"Folder or file; default the workspace."},` +
		`"glob":{"type":"string","description":"Only files that match, such as *.go or src/**/*.ts."},` +
		`"ignore_case":{"type":"boolean"},` +
		`"context":{"type":"integer","description":"Lines around each match; default 0, at most 20."},` +
		`"limit":{"type":"integer","description":"Matching lines; default 100, at most 1000."}},` +
		`"required":["intent","pattern"],"additionalProperties":false}`

	maxPattern     = 4 << 10    // bytes of a regular expression
	maxRegexp      = 10_000     // instructions of a regular expression, repetitions written out; each may be tried at every character
	stepsAtOnce    = 20_000_000 // instructions tried without looking whether the search may go on: well under a second
	maxSearched    = 5 << 20    // bytes of a file that is searched
	maxGrepContext = 20
	defaultMatches = 100
	maxMatches     = 1000
	maxGrepLine    = 400      // bytes shown of a line
	maxGrepBytes   = 64 << 10 // of the result
	sniffed        = 8 << 10  // bytes of a file in which a NUL makes it binary
)

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    number `json:"context"`
	Limit      number `json:"limit"`
}

// search is one grep call under way.
type search struct {
	ctx     context.Context
	until   time.Time
	re      *regexp.Regexp
	size    int    // instructions of re
	literal []byte // what every match begins with; makes most lines cost nothing
	whole   bool   // literal is all of the pattern
	around  int
	limit   int

	buf     bytes.Buffer // the file being searched
	out     strings.Builder
	found   int
	large   int // files passed over because of their size
	stopped bool
	steps   int  // since it was last looked whether the search may go on
	late    bool // it may not: its time is over, or it was interrupted
}

func (t *toolset) grep(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := arguments[grepArgs](c)
	if err != nil {
		return failed(err)
	}
	s, err := newSearch(ctx, a)
	if err != nil {
		return failed(err)
	}
	only := glob{}
	if a.Glob != "" {
		if only, err = compileGlob(a.Glob); err != nil {
			return failed(err)
		}
	}
	at, err := t.searchPlace(a.Path)
	if errors.Is(err, errNoFolder) {
		return t.grepFile(s, at, a.Path)
	}
	if err != nil {
		return failed(err)
	}
	w, err := t.o.walk(ctx, at, maxDepth, func(e entry) error {
		if !e.Type().IsRegular() || a.Glob != "" && !only.match(e.rel) {
			return nil
		}
		if err := s.file(e.dir, e.name, at.under(e.rel)); err != nil {
			return nil // one unreadable file does not end a search
		}
		if s.stopped || s.late {
			return errStop
		}
		return nil
	})
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return failed(err)
	}
	return s.result(w.notes()), nil
}

func newSearch(ctx context.Context, a grepArgs) (*search, error) {
	if a.Pattern == "" {
		return nil, errors.New("pattern is empty")
	}
	if len(a.Pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	s := &search{ctx: ctx, until: time.Now().Add(maxWalk), around: int(a.Context), limit: a.Limit.or(defaultMatches)}
	if err := within("context", s.around, 0, maxGrepContext); err != nil {
		return nil, err
	}
	if err := within("limit", s.limit, 1, maxMatches); err != nil {
		return nil, err
	}
	pattern := a.Pattern
	if a.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	if s.size = sizeOf(tree); s.size > maxRegexp {
		return nil, fmt.Errorf("pattern: its repetitions are too large together, %d steps instead of at most %d; use smaller numbers or *", s.size, maxRegexp)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	literal, whole := re.LiteralPrefix()
	s.re, s.literal, s.whole = re, []byte(literal), whole
	return s, nil
}

// sizeOf is about how many instructions an expression is compiled to.
func sizeOf(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, part := range re.Sub {
		n += sizeOf(part)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// grepFile searches one named file, and says why when it cannot.
func (t *toolset) grepFile(s *search, at place, path string) (tool.Result, error) {
	root, err := os.OpenRoot(at.root)
	if err != nil {
		return failed(explain(err, path))
	}
	defer func() { _ = root.Close() }()
	if err := s.file(root, at.rel, at.shown); err != nil {
		return failed(explain(err, path))
	}
	if s.ctx.Err() != nil {
		return failed(context.Cause(s.ctx))
	}
	return s.result(""), nil
}

// file searches one file of a folder.
func (s *search) file(dir *os.Root, name, shown string) error {
	f, st, err := openRegular(dir, filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if st.Size() > maxSearched {
		s.large++
		return nil
	}
	s.buf.Reset()
	if _, err := s.buf.ReadFrom(io.LimitReader(f, maxSearched)); err != nil {
		return err
	}
	if text := s.buf.Bytes(); !isBinary(text) {
		s.text(text, oneLine(shown))
	}
	return nil
}

func isBinary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), sniffed)], 0) >= 0 }

// text writes the matching lines of a file with the lines around them.
func (s *search) text(text []byte, shown string) {
	number := 1  // of the line at pos
	printed := 0 // number of the last line written
	after := 0   // lines still to be written behind the last match
	pos := 0
	for pos < len(text) && !s.late {
		start := pos
		if len(s.literal) > 0 && after == 0 {
			// Straight to the next line that can match.
			at := bytes.Index(text[pos:], s.literal)
			if at < 0 {
				return
			}
			start = pos + bytes.LastIndexByte(text[pos:pos+at], '\n') + 1
			number += bytes.Count(text[pos:start], []byte("\n"))
		}
		line, rest := firstLine(text[start:])
		pos = len(text) - len(rest)
		switch {
		case s.matches(line):
			if s.found == s.limit || s.out.Len() > maxGrepBytes {
				s.stopped = true
				return
			}
			s.found++
			s.before(text[:start], number, &printed, shown)
			s.write(shown, ':', number, line)
			printed, after = number, s.around
		case after > 0:
			s.write(shown, '-', number, line)
			printed = number
			after--
		}
		number++
	}
}

func (s *search) matches(line []byte) bool {
	if s.whole && len(s.literal) > 0 {
		return bytes.Contains(line, s.literal)
	}
	if s.size*len(line) > stepsAtOnce {
		return s.re.MatchReader(&runes{search: s, rest: line}) && !s.late
	}
	s.tried(s.size * len(line))
	return s.re.Match(line)
}

// tried counts instructions, and looks from time to time whether the search may go on.
func (s *search) tried(steps int) {
	if s.steps += steps; s.steps < stepsAtOnce {
		return
	}
	s.steps = 0
	s.late = s.late || s.ctx.Err() != nil || time.Now().After(s.until)
}

// runes is a line that ends early when the search may not go on: package regexp cannot be interrupted otherwise.
type runes struct {
	search *search
	rest   []byte
}

func (r *runes) ReadRune() (c rune, size int, err error) {
	if r.search.tried(r.search.size); r.search.late || len(r.rest) == 0 {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.rest)
	r.rest = r.rest[size:]
	return c, size, nil
}

// before writes the lines in front of a match that are not yet there, and a mark when lines are left out.
func (s *search) before(text []byte, number int, printed *int, shown string) {
	if s.around == 0 {
		return
	}
	first := max(number-s.around, *printed+1)
	if s.out.Len() > 0 && (*printed == 0 || first > *printed+1) {
		s.out.WriteString("--\n")
	}
	start := len(text)
	for range number - first {
		start = bytes.LastIndexByte(text[:start-1], '\n') + 1
	}
	for n := first; n < number; n++ {
		line, rest := firstLine(text[start:])
		start = len(text) - len(rest)
		s.write(shown, '-', n, line)
	}
}

func (s *search) write(shown string, mark byte, number int, line []byte) {
	s.out.WriteString(shown)
	s.out.WriteByte(mark)
	s.out.WriteString(strconv.Itoa(number))
	s.out.WriteByte(mark)
	s.out.WriteString(s.window(line))
	s.out.WriteByte('\n')
}

// window returns a line, or of a very long one the part around its match.
func (s *search) window(line []byte) string {
	if len(line) <= maxGrepLine {
		return strings.ToValidUTF8(string(line), "\ufffd")
	}
	from := 0
	if m := s.re.FindReaderIndex(&runes{search: s, rest: line}); m != nil {
		from = max(0, m[0]-maxGrepLine/4)
	}
	to := min(len(line), from+maxGrepLine)
	for from > 0 && line[from]&0xC0 == 0x80 {
		from--
	}
	for to < len(line) && line[to]&0xC0 == 0x80 {
		to--
	}
	text := strings.ToValidUTF8(string(line[from:to]), "\ufffd")
	if from > 0 {
		text = "..." + text
	}
	if to < len(line) {
		text += "..."
	}
	return text + " [line of " + strconv.Itoa(len(line)) + " bytes]"
}

func (s *search) result(notes string) tool.Result {
	if s.found == 0 {
		s.out.WriteString("[nothing matches]\n")
	}
	if s.stopped {
		fmt.Fprintf(&s.out, "[only the first %d matching lines are shown: narrow the search or raise limit]\n", s.found)
	}
	if s.late {
		fmt.Fprintf(&s.out, "[stopped after %s: give a narrower path or a simpler pattern]\n", maxWalk)
	}
	if s.large > 0 {
		fmt.Fprintf(&s.out, "[%d files over %d bytes were passed over]\n", s.large, maxSearched)
	}
	s.out.WriteString(notes)
	return tool.TextResult(strings.TrimSuffix(s.out.String(), "\n"))
}

// firstLine splits off the first line, without its break.
func firstLine(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}
