package markdown

import "strings"

const (
	maxMarkers    = maxDepth // block markers that one line may open
	maxDelimiters = 600      // emphasis and link delimiters of one block: the parser's time grows with their square
)

// tame keeps hostile texts cheap: it blunts the markers of lines that would open too many blocks at once,
// and reports whether a block holds so many delimiters that inline markup must be left alone. The length of
// the text stays the same.
func tame(src string) (out string, dense bool) {
	delims := 0
	var blunt []byte
	for start := 0; start < len(src); {
		end := start + strings.IndexByte(src[start:], '\n')
		if end < start {
			end = len(src)
		}
		line := src[start:end]
		if at := markers(line); at >= 0 {
			if blunt == nil {
				blunt = []byte(src)
			}
			for i := start + at; i < end; i++ {
				if strings.IndexByte(">-+*", blunt[i]) >= 0 {
					blunt[i] = '.'
				}
			}
		}
		if strings.TrimSpace(line) == "" {
			delims = 0
		}
		for i := range len(line) {
			switch line[i] {
			case '*', '_', '[', ']', '~', '<':
				delims++
			}
		}
		dense = dense || delims > maxDelimiters
		start = end + 1
	}
	if blunt != nil {
		src = string(blunt)
	}
	return src, dense
}

// markers returns where the marker after the last permitted one stands, -1 when there are not too many.
func markers(line string) int {
	n := 0
	for i := range len(line) {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '.' || c == ')' || c >= '0' && c <= '9':
		case c == '>' || c == '-' || c == '+' || c == '*':
			if n++; n > maxMarkers && c != line[0] || n > maxMarkers && strings.ContainsAny(line[:i], "> ") {
				return i
			}
		default:
			return -1
		}
	}
	return -1
}
