package endpoint

import "strings"

const (
	maxChallengeBytes  = 16 << 10 // of all WWW-Authenticate headers together
	maxChallengeParams = 64
)

// Challenge is one authentication challenge. Everything in it is the server's word.
type Challenge struct {
	Scheme string            // lower case
	Params map[string]string // names in lower case; the first of equal names counts
}

// ParseChallenges reads WWW-Authenticate headers, forgivingly: what cannot be understood is skipped, so that one
// malformed challenge does not hide another. (The parser of the official SDK gives up at the first.)
func ParseChallenges(headers []string) (out []Challenge) {
	left := maxChallengeBytes
	for _, h := range headers {
		h = h[:min(len(h), left)]
		left -= len(h)
		out = append(out, parseHeader(h)...)
	}
	return out
}

// Bearer returns the parameters of the first bearer challenge, or nil.
func Bearer(headers []string) map[string]string {
	for _, c := range ParseChallenges(headers) {
		if c.Scheme == "bearer" {
			return c.Params
		}
	}
	return nil
}

// parseHeader: a list of "scheme", "scheme token68" or "scheme name=value, name=value", separated by commas.
func parseHeader(s string) (out []Challenge) {
	params := 0
	for s != "" && params < maxChallengeParams {
		s = strings.TrimLeft(s, " \t,")
		word, rest := token(s)
		if word == "" {
			if s = skipOne(s); s == "" {
				break
			}
			continue
		}
		after := strings.TrimLeft(rest, " \t")
		params++
		if value, ok := strings.CutPrefix(after, "="); ok && len(out) > 0 {
			v, tail := paramValue(strings.TrimLeft(value, " \t"))
			name := strings.ToLower(word)
			if _, have := out[len(out)-1].Params[name]; !have {
				out[len(out)-1].Params[name] = v
			}
			s = tail
			continue
		}
		out = append(out, Challenge{Scheme: strings.ToLower(word), Params: map[string]string{}})
		s = rest
	}
	return out
}

// token takes the characters that RFC 9110 allows in a token.
func token(s string) (word, rest string) {
	i := strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

// paramValue takes a quoted string or what stands before the next comma or space.
func paramValue(s string) (v, rest string) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, ", \t")
		if i < 0 {
			return s, ""
		}
		return s[:i], s[i:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == '"':
			return b.String(), s[i+1:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), "" // the closing quote is missing
}

// skipOne leaves out one quoted string or one character that starts no token.
func skipOne(s string) string {
	if s == "" {
		return ""
	}
	if s[0] == '"' {
		_, rest := paramValue(s)
		return rest
	}
	return s[1:]
}
