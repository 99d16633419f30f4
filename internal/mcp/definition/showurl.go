package definition

import (
	"strings"

	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// DisplayURL is scheme, host, port and path of an HTTP definition, sanitized; "" for stdio. References stand by their names.
func (s Server) DisplayURL() string {
	if s.Type != HTTP {
		return ""
	}
	return untrusted.Visible(maskURL(s.URL, false))
}

// showURL is what may be shown of an expanded URL: no query, no fragment, and of the path nothing that came from a variable.
func (x *expander) showURL(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	path := len(scheme) + len("://") + endOfAuthority(rest)
	end := len(text)
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		end = i
	}
	parts, _ := split(x.server.URL)
	refs := x.values[len(x.values)-1].refs
	var b strings.Builder
	at := 0
	for _, p := range parts {
		piece, masked := p.literal, ""
		if p.name != "" {
			piece = refs[0].text
			if refs[0].fromEnv && at >= path && piece != "" {
				masked = "${" + p.name + "}"
			}
			refs = refs[1:]
		}
		if at >= end {
			break
		}
		if masked != "" {
			b.WriteString(masked)
		} else {
			b.WriteString(piece[:min(len(piece), end-at)])
		}
		at += len(piece)
	}
	return untrusted.Visible(b.String())
}

// maskURL returns an unexpanded URL without userinfo, query and fragment; withMarks says where those were.
func maskURL(raw string, withMarks bool) string {
	parts, err := split(raw)
	if err != nil {
		parts = []part{{literal: raw}}
	}
	var b strings.Builder
	for _, p := range parts {
		if p.name == "" {
			base, mark := cutURL(p.literal)
			b.WriteString(base)
			if mark != "" {
				return hideUser(b.String()) + marked(mark, withMarks)
			}
			continue
		}
		b.WriteString("${" + p.name)
		if p.hasElse {
			base, mark := cutURL(p.fallback)
			b.WriteString(":-" + hideUser(base) + marked(mark, withMarks))
		}
		b.WriteString("}")
	}
	return hideUser(b.String())
}

// cutURL cuts text before its query or fragment, and tells which it was: "?", "#" or "".
func cutURL(text string) (base, mark string) {
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		return text[:i], text[i : i+1]
	}
	return text, ""
}

// marked says where a query or fragment was.
func marked(mark string, withMarks bool) string {
	if mark == "" || !withMarks {
		return ""
	}
	return mark + secret.Redacted
}

// hideUser masks the userinfo of a URL, or of what may become one.
func hideUser(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return text
	}
	authority := rest[:endOfAuthority(rest)]
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		return scheme + "://" + secret.Redacted + rest[i:]
	}
	_, port, found := strings.Cut(authority[strings.LastIndex(authority, "]")+1:], ":")
	if found && strings.Trim(port, "0123456789") != "" && !strings.Contains(port, "$") {
		return scheme + "://" + secret.Redacted + rest[len(authority):] // a password cut short by a ? or #
	}
	return text
}
