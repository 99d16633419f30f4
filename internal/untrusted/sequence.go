package untrusted

// The introducers of control sequences, in their one-character C1 forms.
const (
	esc = 0x1b
	bel = 0x07
	dcs = 0x90
	sos = 0x98
	csi = 0x9b
	st  = 0x9c
	osc = 0x9d
	pm  = 0x9e
	apc = 0x9f
)

// sequences recognises terminal control sequences in one text.
type sequences struct {
	openEnd int // where the last unterminated string sequence was seen to end, so that nothing is searched twice
}

// length returns how many bytes of s at i belong to the control sequence that r introduces; 0 when there is none.
// Of a broken sequence only what cannot be text belongs to it, so that nobody hides text behind one.
func (q *sequences) length(s string, i int, r rune) int {
	switch r {
	case esc:
		return q.escape(s, i)
	case csi:
		return 2 + csiBody(s[i+2:])
	case osc, dcs, sos, pm, apc:
		return 2 + q.stringBody(s, i+2)
	}
	return 0
}

// escape measures a sequence that begins with ESC.
func (q *sequences) escape(s string, i int) int {
	if i+1 >= len(s) {
		return 1
	}
	switch c := s[i+1]; {
	case c == '[':
		return 2 + csiBody(s[i+2:])
	case c == ']', c == 'P', c == 'X', c == '^', c == '_':
		return 2 + q.stringBody(s, i+2)
	case c >= 0x20 && c <= 0x2f:
		n := 1
		for i+n < len(s) && s[i+n] >= 0x20 && s[i+n] <= 0x2f {
			n++
		}
		if i+n < len(s) && s[i+n] >= 0x30 && s[i+n] <= 0x7e {
			return n + 1
		}
		return 1
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// csiBody measures parameters, intermediates and the final byte; 0 when there is no final byte.
func csiBody(s string) int {
	n := 0
	for n < len(s) && s[n] >= 0x30 && s[n] <= 0x3f {
		n++
	}
	for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
		n++
	}
	if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
		return n + 1
	}
	return 0
}

// stringBody measures the text of a string sequence with its terminator (BEL, ST, or ESC \);
// 0 when a line break, another escape or the end comes first.
func (q *sequences) stringBody(s string, from int) int {
	if from < q.openEnd {
		return 0
	}
	for i := from; i < len(s); i++ {
		switch s[i] {
		case bel:
			return i + 1 - from
		case esc:
			if i+1 < len(s) && s[i+1] == '\\' {
				return i + 2 - from
			}
			q.openEnd = i
			return 0
		case '\n', '\r', 0x18, 0x1a:
			q.openEnd = i
			return 0
		case 0xc2:
			if i+1 < len(s) && s[i+1] == st {
				return i + 2 - from
			}
		}
	}
	q.openEnd = len(s)
	return 0
}
