package untrusted

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// S27: one sanitiser for everything that others can say.
func TestLineAndText(t *testing.T) {
	tests := []struct{ name, in, line, text string }{
		{"plain", "hello, world", "hello, world", "hello, world"},
		{"unicode", "Grüße 世界 👋", "Grüße 世界 👋", "Grüße 世界 👋"},
		{"breaks and tabs", "a\nb\tc", "a b c", "a\nb\tc"},
		{"CRLF and CR", "a\r\nb\rc", "a b c", "a\nb\nc"},
		{"CR overwrite", "harmless\rrm -rf", "harmless rm -rf", "harmless\nrm -rf"},
		{"VT FF NEL LS PS", "a\vb\fc\u0085d\u2028e\u2029f", "a b c d e f", "a\nb\nc\nd\ne\nf"},
		{"C0", "a\x00b\x07c\x08d\x7fe", "abcde", "abcde"},
		{"C1", "a\u0080b\u0084c", "abc", "abc"},
		{"CSI colour", "a\x1b[31mred\x1b[0mb", "aredb", "aredb"},
		{"CSI C1", "a\u009b2Jb", "ab", "ab"},
		{"CSI with intermediates", "a\x1b[?25$pb", "ab", "ab"},
		{"CSI cursor", "a\x1b[2K\x1b[1Gb", "ab", "ab"},
		{"CSI unfinished", "a\x1b[31", "a31", "a31"},
		{"OSC 0 BEL", "a\x1b]0;title\x07b", "ab", "ab"},
		{"OSC 8 ST", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link", "link"},
		{"OSC 52", "a\x1b]52;c;cHduZWQ=\x07b", "ab", "ab"},
		{"OSC C1", "a\u009d52;c;x\u009cb", "ab", "ab"},
		{"DCS APC PM SOS C1", "a\u0090x\u009cb\u009fy\u009cc\u009ez\x07d\u0098w\x1b\\e", "abcde", "abcde"},
		{"OSC without end hides nothing", "a\x1b]0;text\nmore", "a0;text more", "a0;text\nmore"},
		{"DCS", "a\x1bP+q544e\x1b\\b", "ab", "ab"},
		{"APC PM SOS", "a\x1b_x\x1b\\b\x1b^y\x1b\\c\x1bXz\x1b\\d", "abcd", "abcd"},
		{"RIS and charset", "a\x1bcb\x1b(Bc\x1b7d", "abcd", "abcd"},
		{"ESC at the end", "a\x1b", "a", "a"},
		{"ESC ESC", "a\x1b\x1b[1mb", "ab", "ab"},
		{"bidi", "a\u202eb\u202cc\u2066d\u2069e\u200ef\u061cg", "abcdefg", "abcdefg"},
		{"zero width", "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg", "abcdefg", "abcdefg"},
		{"tags", "a\U000e0001\U000e0068\U000e0069\U000e007fb", "ab", "ab"},
		{"variation selectors", "a\ufe00b\U000e0100c", "abc", "abc"},
		{"emoji style stays", "⚠\ufe0f careful 1\ufe0f\u20e3", "⚠\ufe0f careful 1\ufe0f\u20e3", "⚠\ufe0f careful 1\ufe0f\u20e3"},
		{"emoji style once", "⚠\ufe0f\ufe0fa\ufe0f1\ufe0f", "⚠\ufe0fa1", "⚠\ufe0fa1"},
		{"fillers", "a\u3164b\u115fc\u034fd", "abcd", "abcd"},
		{"invalid", "a\xffb\xc3", "a\ufffdb\ufffd", "a\ufffdb\ufffd"},
		{"raw C1 byte", "a\x9b31mb", "a\ufffd31mb", "a\ufffd31mb"},
		{"surrogate bytes", "a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb", "a\ufffd\ufffd\ufffdb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Line(tt.in); got != tt.line {
				t.Errorf("Line(%q) = %q, want %q", tt.in, got, tt.line)
			}
			if got := Text(tt.in); got != tt.text {
				t.Errorf("Text(%q) = %q, want %q", tt.in, got, tt.text)
			}
		})
	}
}

// S9, S28: a person sees what is really there.
func TestVisible(t *testing.T) {
	tests := []struct {
		in, want string
		hidden   bool
	}{
		{"plain", "plain", false},
		{"a\nb\tc\rd", `a\u{a}b\u{9}c\u{d}d`, false},
		{"ab\u202ecd", `ab\u{202e}cd`, true},
		{"\x1b[31mx", `\u{1b}[31mx`, true},
		{"a\U000e0041b", `a\u{e0041}b`, true},
		{"a\xffb", `a\x{ff}b`, true},
		{"a\u200bb", `a\u{200b}b`, true},
		{"a\u2028b", `a\u{2028}b`, true},
		{`C:\temp\new`, `C:\temp\new`, false},
		{`fake \u{202e}`, `fake \u{5c}u{202e}`, false},
		{"⚠\ufe0f", "⚠\ufe0f", false},
		{"naïve \ufffd", "naïve \ufffd", false},
	}
	for _, tt := range tests {
		if got := Visible(tt.in); got != tt.want {
			t.Errorf("Visible(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if got := HasHidden(tt.in); got != tt.hidden {
			t.Errorf("HasHidden(%q) = %v", tt.in, got)
		}
	}
}

func TestCut(t *testing.T) {
	long := strings.Repeat("é", 500)
	for limit := range 1100 {
		got, n := Cut(long, limit)
		if !utf8.ValidString(got) {
			t.Fatalf("limit %d: a rune was cut", limit)
		}
		if n == 0 && got != long || n > 0 && limit >= 40 && len(got) > limit {
			t.Fatalf("limit %d: %d bytes, %d omitted", limit, len(got), n)
		}
		if n > 0 {
			head, tail, ok := strings.Cut(got, omitted(n))
			if !ok || len(head)+len(tail)+n != len(long) {
				t.Fatalf("limit %d: the cut is misstated: %q", limit, got)
			}
		}
	}
	if got, n := Cut("abc", 3); got != "abc" || n != 0 {
		t.Errorf("a text that fits was cut: %q", got)
	}
	if got, n := Cut("0123456789012345678901234567890123456789", -1); n != 40 || got != "... 40 bytes omitted ..." {
		t.Errorf("negative limit: %q, %d", got, n)
	}
	if got, _ := Cut(strings.Repeat("\x80", 100), 50); len(got) > 50 {
		t.Errorf("not UTF-8: %d bytes", len(got))
	}
}

func TestHead(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc..."}, {"aéb", 2, "a..."}, {"abc", 0, "..."}, {"abc", -5, "..."}, {"", 0, ""}} {
		if got := Head(tt.in, tt.limit); got != tt.want {
			t.Errorf("Head(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

// Many broken sequences must not take quadratic time.
func TestManyBrokenSequences(t *testing.T) {
	in := strings.Repeat("\x1b]x", 1<<19) + "\u009d"
	if got := Line(in); got != strings.Repeat("x", 1<<19) {
		t.Error("broken sequences hide text")
	}
	if got := Line(strings.Repeat("\u009d", 1<<19)); got != "" {
		t.Error("introducers stay")
	}
}

// FuzzText: nothing that acts on a terminal comes through, and cleaning twice changes nothing more.
func FuzzText(f *testing.F) {
	for _, s := range []string{"a\x1b[31m", "\x1b]8;;x\x1b\\", "\r\n\u202e\U000e0041", "\xff\xc2\x9b", "⚠\ufe0f", "1\ufe0f\u20e3", "\xa0\ufe0f", "a\u2800\ufe0f", "⚠\u2800\ufe0f", "\x1b(\x1b", "\\u{1b}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{"Line": Line(s), "Text": Text(s), "Visible": Visible(s)} {
			if !utf8.ValidString(got) {
				t.Fatalf("%s: invalid UTF-8: %q", name, got)
			}
			prev := rune(-1)
			for i, r := range got {
				ok := name == "Text" && (r == '\n' || r == '\t')
				if !ok && (isControl(r) || isBreak(r) || isHidden(r) && !isEmojiStyle(prev, r, got[i+utf8.RuneLen(r):])) {
					t.Fatalf("%s(%q) holds %U", name, s, r)
				}
				prev = r
			}
		}
		if once := Text(s); Text(once) != once {
			t.Fatalf("Text is not idempotent on %q", s)
		}
		if HasHidden(Line(s)) || HasHidden(Visible(s)) {
			t.Fatalf("something hidden is left of %q", s)
		}
	})
}

func BenchmarkText(b *testing.B) {
	ascii := strings.Repeat("an ordinary line of output, nothing special\n", 4096)
	mixed := strings.Repeat("größere \x1b[31mAusgabe\x1b[0m, nichts Besonderes\r\n", 4096)
	for name, s := range map[string]string{"ascii": ascii, "mixed": mixed} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Text(s)
			}
		})
	}
}
