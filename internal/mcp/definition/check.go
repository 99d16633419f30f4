package definition

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxURLBytes is the longest URL: longer than any server takes.
const maxURLBytes = 8 << 10

// checkURL records what is wrong with an endpoint.
func (x *expander) checkURL(field, text string) {
	if why, hint := CheckURL(text); why != "" {
		x.fail(field, why, hint)
	}
}

// CheckURL says why text cannot be an endpoint that we send credentials to, and the cure; "" when it can: https, or http to a
// literal localhost, 127.0.0.0/8 or [::1], no userinfo. Neither text tells anything of the URL.
//
// What one parser reads as this host and another as that one is refused: the characters of a host are few.
func CheckURL(text string) (why, hint string) {
	if text == "" {
		return "the URL is empty", "write an https URL"
	}
	if len(text) > maxURLBytes {
		return "the URL is longer than 8 KiB", ""
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return "the URL holds a space, a line break, a backslash or a control character", "remove it, or write it as a percent escape"
	}
	scheme, rest, found := strings.Cut(text, "://")
	if !found || scheme != "https" && scheme != "http" {
		return "the URL does not begin with https://, or with http:// for this machine", "write the whole URL, its scheme in lower case"
	}
	authority := rest[:endOfAuthority(rest)]
	if strings.Contains(authority, "@") {
		return "the URL holds a user name or a password", "send credentials in a header or with oauth"
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Opaque != "" {
		return "the URL is malformed", "write it as https://host/path"
	}
	host := u.Hostname()
	if why, hint := checkHost(authority, host, u.Port()); why != "" {
		return why, hint
	}
	if scheme == "http" && !isLoopback(authority, host) {
		return "plain http is allowed to this machine alone: localhost, 127.0.0.0/8 or [::1]", "use https"
	}
	return "", ""
}

// endOfAuthority is where host and port end in what follows "://".
func endOfAuthority(rest string) int {
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return i
	}
	return len(rest)
}

// checkHost checks the characters of host and port.
func checkHost(authority, host, port string) (why, hint string) {
	if strings.HasPrefix(authority, "[") {
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() || ip.Zone() != "" {
			return "the address in brackets is not an IPv6 address without zone", ""
		}
	} else {
		if host == "" {
			return "the URL names no host", "write it as https://host/path"
		}
		if i := strings.IndexFunc(host, func(r rune) bool { return !isHostRune(r) }); i >= 0 {
			return "the host holds a character that host names do not have", "write an international name in its xn-- form"
		}
	}
	if strings.HasSuffix(authority, ":") {
		return "the URL has a colon and no port after its host", "add the port or remove the colon"
	}
	if port == "" {
		return "", ""
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "the port is not from 1 to 65535", ""
	}
	return "", ""
}

// isHostRune reports whether r may stand in a host name or IPv4 address.
func isHostRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
}

// isLoopback reports whether the host as written is this machine, in one of the three spellings that no resolver
// or number parser can read in another way.
func isLoopback(authority, host string) bool {
	if strings.HasPrefix(authority, "[") {
		return host == "::1"
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Is4() && ip.IsLoopback()
}

// withoutFragment cuts the fragment, which is never sent.
func withoutFragment(text string) string {
	before, _, _ := strings.Cut(text, "#")
	return before
}

// reservedHeader reports whether a header is one of those that the transport sets by itself, or that would change how a message is read.
func reservedHeader(name string) bool {
	switch strings.ToLower(name) {
	case "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "accept", "accept-encoding",
		"connection", "keep-alive", "proxy-connection", "upgrade", "te", "trailer", "expect",
		"mcp-session-id", "mcp-protocol-version", "last-event-id":
		return true
	}
	return false
}

// checkHeader checks a header; its value only when it could be expanded.
func (x *expander) checkHeader(name, text string, expanded bool) {
	field := "headers." + name
	switch {
	case !isToken(name):
		x.fail(field, "the name of a header has only letters, digits and !#$%&'*+-.^_`|~", "rename it")
	case reservedHeader(name):
		x.fail(field, "the transport sets this header itself", "remove it")
	}
	if !expanded {
		return
	}
	trimmed := strings.TrimRight(text, "\r\n")
	switch {
	case hasControl(trimmed):
		x.fail(field, "the value holds a line break or another control character", "remove it from the definition or the variable")
	case trimmed != text:
		x.fail(field, "the value ends in a line break", "remove it from the end of the variable")
	}
}

// hasControl reports whether s holds a control character that no header value may have.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// isToken reports whether name is a token of RFC 9110.
func isToken(name string) bool {
	for _, r := range name {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			return false
		}
	}
	return name != ""
}

// checkOAuth checks the login settings, which are used as written.
func (x *expander) checkOAuth(o OAuth) {
	if hasControl(o.ClientID) || strings.TrimSpace(o.ClientID) != o.ClientID {
		x.fail("oauth.client_id", "the client id holds a control character or white space at an end", "remove it")
	}
	for i, s := range o.Scopes {
		bad := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
		if s == "" || bad {
			x.fail("oauth.scopes["+strconv.Itoa(i)+"]", "a scope is one word of printable ASCII", "write each scope as an element of its own")
		}
	}
	if o.AuthorizationServer != "" {
		x.checkURL("oauth.authorization_server", o.AuthorizationServer)
	}
}
