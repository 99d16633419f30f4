package markdown

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// tag paints so that marks can be read in a test.
func tag(m Mark, s string) string {
	names := []string{"b", "i", "s", "code", "a", "h", "q", "dim", "kw", "str", "num", "com", "type", "add", "del"}
	for i, n := range names {
		if m&(1<<i) != 0 {
			s = "<" + n + ">" + s + "</" + n + ">"
		}
	}
	return s
}

func plain(_ Mark, s string) string { return s }

const sample = "# Title\n\nA *few* **words** with `code` and a [link](https://example.com/x).\n\n" +
	"- one\n- two\n  - inner\n\n1. first\n2. second\n\n> quoted\n> text\n\n```go\nfunc main() { // hi\n\tx := \"s\"\n}\n```\n\n" +
	"| a | b |\n|---|--:|\n| 1 | 22 |\n\n---\n\nSetext\n===\n\n~~gone~~ &amp; done &#27;[31m\n\n- [x] task\n"

func TestRender(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"heading", "## Head", "<h><b>Head</b></h>"},
		{"emphasis", "a *b* **c** ~~d~~ `e`", "a <i>b</i> <b>c</b> <s>d</s> <code>e</code>"},
		{"link shows where it leads", "[x](http://e.com)", "<a>x</a><dim> (http://e.com)</dim>"},
		{"autolink", "<http://e.com>", "<a>http://e.com</a>"},
		{"list", "- a\n- b", "<dim>• </dim>a\n<dim>• </dim>b"},
		{"ordered", "3. a\n4. b", "<dim>3. </dim>a\n<dim>4. </dim>b"},
		{"quote", "> a\n> b", "<q>│</q> a b"},
		{"code", "```go\nreturn 1\n```", "  <dim>go</dim>\n  <kw>return</kw> <num>1</num>"},
		{"entity makes no control byte", "a&#27;[2Jb &#x202e;c", "a�[2Jb c"},
		{"hard break", "a  \nb", "a\nb"},
		{"two blocks", "a\n\nb", "a\n\nb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(New(tag).Render(tt.in, 60), "\n")
			if tt.name == "entity makes no control byte" {
				if strings.ContainsRune(got, 0x1b) {
					t.Fatalf("control byte in %q", got)
				}
				return
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// However a text is cut into deltas, the stream ends with the lines of the whole.
func TestStreamEqualsWhole(t *testing.T) {
	texts := []string{sample, strings.Repeat("para "+strings.Repeat("word ", 30)+"\n\n", 40),
		"```\n" + strings.Repeat("line of code\n", 200) + "```\nafter", "text\n#hashtag\n", "a\n=\n", "para\n- x\n- y\n\n\nz"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i, text := range texts {
		for _, width := range []int{20, 60} {
			want := New(tag).Render(text, width)
			s := NewStream(New(tag))
			for rest := text; rest != ""; {
				n := min(1+rnd.IntN(7), len(rest))
				s.Append(rest[:n])
				rest = rest[n:]
				s.Lines(width)
			}
			if got := strings.Join(s.Lines(width), "\n"); got != strings.Join(want, "\n") {
				t.Errorf("text %d at %d: got\n%s\nwant\n%s", i, width, got, strings.Join(want, "\n"))
			}
		}
	}
}

func TestStreamTakesAnotherWidth(t *testing.T) {
	s := NewStream(New(plain))
	s.Append(sample)
	s.Lines(80)
	want := New(plain).Render(sample, 30)
	if got := s.Lines(30); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func checkLines(t *testing.T, lines []string, width int) {
	t.Helper()
	for _, l := range lines {
		for _, r := range l {
			if unicode.IsControl(r) {
				t.Fatalf("control character %U in %q", r, l)
			}
		}
		if w := ansi.StringWidth(l); w > max(width, 2*maxDepth+8) {
			t.Fatalf("line of %d columns at %d: %q", w, width, l)
		}
	}
}

// S27: whatever the text is, no control byte comes out and nothing panics.
func FuzzRender(f *testing.F) {
	for _, s := range []string{sample, "\x1b]52;c;AAAA\x07", "[a](\x1b[2J)", "```\x1b\n\x9b31m\n```", "&#27;&#155;&#x202e;",
		"| a\x1b | b |\n|---|---|\n|\x00|", strings.Repeat(">", 200), strings.Repeat("- ", 200), strings.Repeat("[", 500),
		strings.Repeat("*a ", 300), "<script>\x1b</script>", "\xff\xfe", "`\x1b`", "![i](x\x1b)", "a\rb", "\r# h", "\r\r```\rx\r```", "a\n\r\r- b\r\r- c", strings.Repeat("a|", 90) + "\n" + strings.Repeat("-|", 90)} {
		f.Add(s, 40, 3)
	}
	f.Fuzz(func(t *testing.T, src string, width, chunk int) {
		width = 1 + abs(width)%200
		src = src[:min(len(src), 4096)]
		checkLines(t, New(plain).Render(src, width), width)
		s := NewStream(New(plain))
		step := max(1+abs(chunk)%50, len(src)/128) // one input must take no more than a moment
		for i := 0; i < len(src); i += step {
			s.Append(src[i:min(i+step, len(src))])
			checkLines(t, s.Lines(width), width)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// Hostile texts take work that grows with their length, not with its square: told by what is allocated for a text and for
// one of twice its length.
func TestHostileIsBounded(t *testing.T) {
	const size = 128 << 10
	for _, unit := range []string{">", "[", "*a_", "`", "- ", "|a", "a\n", "<", "![", "\\", "&#1;", "# ", "~~~\n", "a|b\n-|-\n", "> > >\n", "[a]: b\n", "x"} {
		half, whole := allocated(strings.Repeat(unit, size/len(unit))), allocated(strings.Repeat(unit, 2*size/len(unit)))
		if whole > 3*half+1<<20 {
			t.Errorf("%q: %d bytes for %d, %d for twice that", unit, half, size, whole)
		}
	}
}

// allocated is how many bytes the rendering of a text allocates.
func allocated(src string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	New(plain).Render(src, 80)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestHighlightKeepsText(t *testing.T) {
	code := "/* a\nb */ x = `q\nw` + \"s\\\"t\" // c\nfor i := 0x1F; ; {}\n$HOME <tag> é漢\n"
	for _, lang := range []string{"go", "js", "py", "sh", "json", "yaml", "rust", "c", "java", "ruby", "php", "sql", "lua", "html", "css", "make", "diff", "nope", ""} {
		h := New(plain).highlighter(lang)
		for line := range strings.SplitSeq(code, "\n") {
			var b strings.Builder
			for _, s := range h.line(line) {
				b.WriteString(s.text)
			}
			if b.String() != line {
				t.Errorf("%s: %q became %q", lang, line, b.String())
			}
		}
	}
}

func TestHighlightAcrossLines(t *testing.T) {
	h := New(tag).highlighter("go")
	h.line("a /* b")
	if got := h.line("c */ return"); got[0].mark != Comment || got[len(got)-1].mark != Keyword {
		t.Errorf("got %v", got)
	}
}

// The cost of one token at the end of a long answer must not grow with the answer.
func BenchmarkStreamToken(b *testing.B) {
	for _, kb := range []int{4, 64, 512} {
		b.Run(fmt.Sprintf("%dKiB", kb), func(b *testing.B) {
			s := NewStream(New(plain))
			for s.all.Len() < kb<<10 {
				s.Append(sample)
			}
			s.Append("\n\nthe last paragraph ")
			s.Lines(100)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%100 == 99 {
					s.Append("end.\n\n")
				}
				s.Append("token ")
				s.Lines(100)
			}
		})
	}
}
