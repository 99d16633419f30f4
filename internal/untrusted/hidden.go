package untrusted

import (
	"strings"
	"unicode"
)

// isBreak reports whether r moves to another line: LF, VT, FF, CR, NEL, and the two separators.
func isBreak(r rune) bool {
	switch r {
	case '\n', '\v', '\f', '\r', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// isControl reports whether r is a C0 or C1 control character or DEL.
func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }

// emojiStyle asks for the coloured form of the symbol before it.
const emojiStyle = 0xfe0f

// isHidden reports whether r shows nothing by itself or changes the order of its neighbours:
// bidi controls, zero-width and other format characters, variation selectors, fillers, and tags.
func isHidden(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Cs, r):
		return true // soft hyphen, U+200B to U+200F, U+202A to U+202E, U+2060 to U+206F, BOM, tags, ...
	case unicode.Is(unicode.Variation_Selector, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true // U+034F, Hangul fillers, U+2065, U+E0000 to U+E0FFF, ...
	case unicode.Is(unicode.Noncharacter_Code_Point, r):
		return true
	}
	return false
}

// isEmojiStyle reports whether r is one emoji style selector in its proper place, between what
// stands before it and the rest of the text. Descriptions are full of them, and one after a symbol hides nothing.
func isEmojiStyle(prev, r rune, rest string) bool {
	if r != emojiStyle {
		return false
	}
	if prev == '#' || prev == '*' || prev >= '0' && prev <= '9' {
		return strings.HasPrefix(rest, "\u20e3")
	}
	switch prev {
	case 0x203c, 0x2049, 0x2139, 0x3030, 0x303d:
		return true
	}
	return unicode.Is(unicode.So, prev) || unicode.Is(unicode.Sm, prev) && prev >= 0x2190
}
