package definition

import (
	"math"
	"strings"

	"magi-code/internal/secret"
)

// masker hides what may be a credential, and remembers the literal texts that it hid.
type masker struct {
	hidden []string
	code   bool // the text is code that a shell will run: it is shown but for keys of known issuers
}

// text returns a value for display: references by name, every literal piece (a fallback too) through mask.
func (m *masker) text(raw string, mask func(string) string) string {
	parts, err := split(raw)
	if err != nil {
		return mask(raw)
	}
	var b strings.Builder
	for _, p := range parts {
		if p.name == "" {
			b.WriteString(mask(p.literal))
			continue
		}
		b.WriteString("${" + p.name)
		if p.hasElse {
			b.WriteString(":-" + mask(p.fallback))
		}
		b.WriteString("}")
	}
	return b.String()
}

// all hides a whole text.
func (m *masker) all(text string) string {
	if text == "" {
		return ""
	}
	m.hidden = append(m.hidden, text)
	return secret.Redacted
}

// allBut hides a text unless it is plainly no secret.
func (m *masker) allBut(text string) string {
	if isPlain(text) {
		return text
	}
	return m.all(text)
}

// words hides those words of a text that look like a key or token, and the secret parts of URLs.
func (m *masker) words(text string) string {
	if strings.Contains(text, "://") {
		if masked := maskURL(text, true); masked != text {
			m.hidden = append(m.hidden, urlSecrets(text)...)
			text = masked
		}
	}
	secretLooking := looksSecret
	if m.code || looksPath(text) {
		secretLooking = hasKeyPrefix // folders have random names too, and a path decides what runs: it must be seen
	}
	var b strings.Builder
	for text != "" {
		n := len(text) - len(strings.TrimLeftFunc(text, isTokenRune))
		if n == 0 {
			n = strings.IndexFunc(text, isTokenRune)
			if n < 0 {
				n = len(text)
			}
			b.WriteString(text[:n])
		} else if word := text[:n]; secretLooking(word) {
			b.WriteString(m.all(word))
		} else {
			b.WriteString(word)
		}
		text = text[n:]
	}
	return b.String()
}

// arg returns an argument for display, knowing the one before it: what a flag or a header of a telling name
// carries is hidden, and so is what looks like a key by itself.
func (m *masker) arg(prev, raw string) string {
	if strings.HasPrefix(prev, "-") && !strings.Contains(prev, "=") && isSecretName(prev) && !strings.HasPrefix(raw, "--") {
		return m.text(raw, m.allBut)
	}
	head := raw
	if i := strings.Index(raw, "${"); i >= 0 {
		head = raw[:i]
	}
	if name, _, found := strings.Cut(head, "="); found && isSecretName(name) {
		return name + "=" + m.text(raw[len(name)+1:], m.allBut)
	}
	if name, _, found := strings.Cut(head, ":"); found && !strings.HasPrefix(head[len(name):], "://") && (isSecretName(name) || strings.EqualFold(prev, "-H") || prev == "--header") {
		rest := raw[len(name)+1:]
		space := len(rest) - len(strings.TrimLeft(rest, " "))
		return name + ":" + rest[:space] + m.header(rest[space:])
	}
	return m.text(raw, m.words)
}

// header hides the value of a header but for a scheme in front of a reference.
func (m *masker) header(raw string) string {
	if scheme := authScheme(raw); scheme != "" && strings.HasPrefix(raw[len(scheme):], "${") {
		return scheme + m.text(raw[len(scheme):], m.all)
	}
	return m.text(raw, m.all)
}

// maskHeader is the value of a header for display.
func maskHeader(raw string) string { return (&masker{}).header(raw) }

// authScheme returns the scheme with its space that an Authorization value begins with; "" when there is none.
func authScheme(value string) string {
	scheme, _, found := strings.Cut(value, " ")
	if !found {
		return ""
	}
	switch strings.ToLower(scheme) {
	case "bearer", "basic", "token", "apikey", "key":
		return value[:len(scheme)+1]
	}
	return ""
}

// isSecretName reports whether a flag, variable or header of that name carries a credential.
func isSecretName(name string) bool {
	n := strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(name))
	for _, part := range []string{"token", "secret", "password", "passwd", "passphrase", "apikey", "accesskey", "privatekey", "credential", "bearer", "cookie", "authorization"} {
		if strings.Contains(n, part) {
			return true
		}
	}
	return n == "key" || n == "auth" || n == "pat" || n == "pass" || n == "pwd" || n == "pw"
}

// isTokenRune reports whether r may stand within a key or token.
func isTokenRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '+' || r == '.'
}

const (
	minKeyBytes   = 24  // shorter words are too often names
	minKeyDigits  = 3   // words without digits are names
	minKeyEntropy = 3.2 // bits a byte; words of a language repeat themselves more
	minKnownBytes = 12  // of a word with a known prefix
)

// looksPath reports whether a text is a path of a file: absolute, or relative in so many words.
func looksPath(text string) bool {
	for _, start := range []string{"/", "./", "../", "~/", `\`, `.\`, `..\`} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/')
}

// hasKeyPrefix reports whether a word begins as the keys of a known issuer do.
func hasKeyPrefix(word string) bool {
	for _, prefix := range []string{"sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "AKIA", "ASIA", "AIza", "eyJ", "npm_", "pypi-", "hf_", "ntn_", "secret_", "lin_api_", "dop_v1_", "shpat_", "tvly-", "figd_", "ATATT"} {
		if strings.HasPrefix(word, prefix) && len(word) >= minKnownBytes {
			return true
		}
	}
	return false
}

// looksSecret reports whether a word looks like a key or a token: by the prefix that an issuer gives, or by its looks.
func looksSecret(word string) bool {
	if hasKeyPrefix(word) {
		return true
	}
	if len(word) < minKeyBytes || strings.Contains(word, ".") {
		return false
	}
	digits := 0
	for _, r := range word {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	return digits >= minKeyDigits && entropy(word) >= minKeyEntropy
}

// entropy is Shannon's measure of the bytes of s, in bits a byte.
func entropy(s string) float64 {
	var counts [256]float64
	for i := range len(s) {
		counts[s[i]]++
	}
	sum := 0.0
	for _, c := range counts {
		if c > 0 {
			p := c / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
