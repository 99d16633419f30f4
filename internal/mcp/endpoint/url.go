// Package endpoint says which URLs may be contacted and how they are shown, and makes the round tripper, the bounded
// body reader and the error texts that hold to it. The transport and the login share it, so that there is one answer.
package endpoint

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"magi-code/internal/untrusted"
)

// MaxURL is the longest URL in bytes that is accepted: longer than any server or browser takes.
const MaxURL = 8 << 10

// Parse parses a URL that may be contacted: https, or http to a literal loopback host, without userinfo. The
// fragment is removed, the host is lower case. The error never holds any part of raw.
func Parse(raw string) (*url.URL, error) {
	if len(raw) > MaxURL {
		return nil, errors.New("the URL is too long")
	}
	if !utf8.ValidString(raw) {
		return nil, errors.New("the URL is not UTF-8")
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, errors.New("the URL holds a space or a control character")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("the URL is malformed") // url.Error prints the whole URL
	}
	u.Fragment, u.RawFragment = "", ""
	u.Host = lowerASCII(u.Host)
	if len(u.String()) > MaxURL { // its escapes count as they are sent
		return nil, errors.New("the URL is too long")
	}
	return u, Check(u)
}

// lowerASCII leaves other letters alone: the Kelvin sign is no k before a name is looked up.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// Check reports why a parsed URL may not be contacted.
func Check(u *url.URL) error {
	switch {
	case u == nil || u.Opaque != "" || u.Host == "" || u.Hostname() == "":
		return errors.New("the URL has no host")
	case u.User != nil:
		return errors.New("the URL holds a user name or password")
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && IsLoopback(u):
		return nil
	case u.Scheme == "http":
		return errors.New("plain http is accepted only to localhost, 127.0.0.0/8 and [::1]; use https")
	}
	return errors.New("the URL is neither https nor http")
}

// IsLoopback reports whether the host is literally localhost, in 127.0.0.0/8, or ::1. No name is resolved, and no
// other spelling of these addresses counts.
func IsLoopback(u *url.URL) bool {
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Zone() == "" && !a.Is4In6() && a.IsLoopback()
}

// Show is scheme, host, port and path, safe to print: never userinfo, query or fragment.
func Show(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return untrusted.Head(untrusted.Line(bare.String()), 512)
}

// Origin is scheme, host and port, with the default port left out: what decides whether two URLs belong together.
func Origin(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	scheme := strings.ToLower(u.Scheme)
	if p := u.Port(); p != "" && !(scheme == "https" && p == "443") && !(scheme == "http" && p == "80") {
		host += ":" + p
	}
	return scheme + "://" + host
}

// SameOrigin reports whether two URLs belong together: equal origins, or the same scheme and port of this machine under
// another of its names. Servers that run locally often call themselves localhost where the definition says 127.0.0.1.
func SameOrigin(a, b *url.URL) bool {
	if Origin(a) == Origin(b) {
		return true
	}
	return IsLoopback(a) && IsLoopback(b) && a.Scheme == b.Scheme && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}
