package definition

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"magi-code/internal/secret"
)

// Secrets returns the values that a scrubber must know: header values, env values and URL query values, as well as
// arguments that came from a reference or look like a credential; without those that are plainly no secret (absolute paths, numbers,
// booleans, addresses, well-known variables such as HOME, PATH, LANG, USER).
func (l Launch) Secrets() []secret.String { return slices.Clone(l.learned) }

// learned gathers the secrets among the expanded values.
func (x *expander) learned() []secret.String {
	g := &gatherer{}
	for i, v := range x.values {
		switch v.kind {
		case "header":
			g.header(v.text)
			g.refs(v.refs, isPlain)
		case "env":
			if !isWellKnown(v.name) {
				g.value(v.text)
			}
			g.refs(v.refs, isPlain)
		case "arg":
			g.refs(v.refs, isPlain)
			prev := ""
			if i > 0 && x.values[i-1].kind == "arg" {
				prev = x.values[i-1].text
			}
			g.masked(func(m *masker) { m.arg(prev, strings.ReplaceAll(v.text, "${", "$ {")) })
		case "url":
			for _, s := range urlSecrets(v.text) {
				g.add(s)
			}
			g.refs(v.refs, func(s string) bool { return !looksSecret(s) })
		case "command":
			g.refs(v.refs, func(s string) bool { return !looksSecret(s) })
		}
	}
	return g.out
}

// gatherer collects secrets, each once.
type gatherer struct{ out []secret.String }

// add takes a text as it is.
func (g *gatherer) add(text string) {
	if s := secret.New(text); !s.IsEmpty() && !slices.Contains(g.out, s) {
		g.out = append(g.out, s)
	}
}

// longLine is the length from which a single line of a secret of several is one by itself.
const longLine = 16

// value takes a text unless it is plainly no secret; of several lines (a private key) also each long one.
func (g *gatherer) value(text string) {
	if isPlain(text) {
		return
	}
	g.add(text)
	if trimmed := strings.TrimSpace(text); trimmed != text {
		g.add(trimmed)
	}
	if lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 1 {
		for _, line := range lines {
			if len(line) >= longLine && !strings.HasPrefix(line, "-----") {
				g.add(line)
			}
		}
	}
	if strings.Contains(text, "://") {
		for _, s := range urlSecrets(text) {
			g.add(s)
		}
	}
}

// header takes the value of a header, and the credential behind its scheme.
func (g *gatherer) header(text string) {
	g.value(text)
	scheme := authScheme(text)
	if scheme == "" {
		return
	}
	credential := strings.TrimSpace(text[len(scheme):])
	g.add(credential)
	if decoded, err := base64.StdEncoding.DecodeString(credential); err == nil {
		if _, password, found := strings.Cut(string(decoded), ":"); found {
			g.add(password)
		}
	}
}

// refs takes what references became, but for fallbacks (they stand in the file), well-known variables and what skip says;
// the name of a variable can tell that it holds a secret all the same.
func (g *gatherer) refs(refs []reference, skip func(string) bool) {
	for _, r := range refs {
		if r.fromEnv && !isWellKnown(r.name) && (!skip(r.text) || isSecretName(r.name)) {
			g.value(r.text)
		}
	}
}

// masked takes what a masker hides.
func (g *gatherer) masked(run func(*masker)) {
	m := &masker{}
	run(m)
	for _, s := range m.hidden {
		g.value(s)
	}
}

// urlSecrets returns password, query values and fragment of a URL, as written and decoded.
func urlSecrets(text string) []string {
	var out []string
	both := func(written string) {
		if isPlain(written) {
			return
		}
		out = append(out, written)
		if decoded, err := url.QueryUnescape(written); err == nil && decoded != written {
			out = append(out, decoded)
		}
	}
	rest, fragment, _ := strings.Cut(text, "#")
	base, query, _ := strings.Cut(rest, "?")
	if _, rest, found := strings.Cut(base, "://"); found {
		if user, _, found := strings.Cut(rest[:endOfAuthority(rest)], "@"); found {
			name, password, hasPassword := strings.Cut(user, ":")
			if !hasPassword {
				password = name
			}
			both(password)
		}
	}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			value = name
		}
		both(value)
	}
	both(fragment)
	return out
}

// isWellKnown reports whether a variable of that name holds no secret on any usual system.
func isWellKnown(name string) bool {
	n := strings.ToUpper(name)
	if strings.HasPrefix(n, "LC_") || strings.HasPrefix(n, "XDG_") {
		return true
	}
	switch n {
	case "HOME", "PATH", "PATHEXT", "LANG", "LANGUAGE", "USER", "USERNAME", "LOGNAME", "SHELL", "TERM", "COLORTERM", "TZ", "PWD", "OLDPWD",
		"TMPDIR", "TMP", "TEMP", "HOSTNAME", "DISPLAY", "EDITOR", "PAGER", "NO_COLOR", "FORCE_COLOR", "CI", "NODE_ENV", "LOG_LEVEL",
		"LOGLEVEL", "DEBUG", "RUST_LOG", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
		"PROGRAMFILES", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "COMPUTERNAME", "JAVA_HOME", "GOPATH", "NODE_PATH", "PYTHONPATH":
		return true
	}
	return false
}

// isPlain reports whether a text is plainly no secret: a number, a switch, a path, an address, or a URL without
// credentials. Removing those from all output would only make it unreadable.
func isPlain(text string) bool {
	t := strings.TrimSpace(text)
	if _, err := strconv.ParseFloat(t, 64); err == nil && len(t) < minKeyBytes {
		return true
	}
	switch strings.ToLower(t) {
	case "", "true", "false", "yes", "no", "on", "off", "null", "none", "enabled", "disabled", "default", "auto", "debug", "info", "warn", "warning", "error",
		"trace", "silent", "verbose", "production", "development", "staging", "test", "testing", "localhost", "utf-8", "stdio", "readonly", "read-only":
		return true
	}
	if _, err := netip.ParseAddr(t); err == nil {
		return true
	}
	if _, err := netip.ParseAddrPort(t); err == nil {
		return true
	}
	return isPlainPath(t) || isPlainURL(t)
}

// isPlainPath reports whether t is an absolute path, or one from the home or working folder.
func isPlainPath(t string) bool {
	rooted := strings.HasPrefix(t, "/") || strings.HasPrefix(t, "~/") || strings.HasPrefix(t, "./") || strings.HasPrefix(t, "../") ||
		len(t) > 2 && t[1] == ':' && (t[2] == '\\' || t[2] == '/') || strings.HasPrefix(t, `\\`)
	return rooted && !strings.ContainsAny(t, "?\n=") && !hasSecretWord(t)
}

// isPlainURL reports whether t is a URL without userinfo, query, fragment, or a path that holds a key.
func isPlainURL(t string) bool {
	u, err := url.Parse(t)
	return err == nil && u.Scheme != "" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && !hasSecretWord(t)
}

// hasSecretWord reports whether a word of t looks like a key.
func hasSecretWord(t string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(t, func(r rune) bool { return !isTokenRune(r) }), looksSecret)
}
