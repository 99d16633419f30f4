package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// forms returns the texts under which v may show up: v itself and its usual encodings, none
// of them shorter than MinScrubbed bytes.
func forms(v string) []string {
	out := []string{v}
	quoted := jsonForms(v)
	out = append(out, quoted...)
	for _, q := range quoted { // JSON inside a JSON string
		out = append(out, jsonForms(q)...)
	}
	out = append(out, unquote(strconv.Quote(v)), unquote(strconv.QuoteToASCII(v)))
	for _, escaped := range []string{url.QueryEscape(v), url.PathEscape(v), percentAll(v)} {
		out = append(out, escaped, lowerEscapes(escaped))
	}
	for _, format := range []string{`\u%04x`, `\u%04X`} {
		out = append(out, each(utf16.Encode([]rune(v)), format))
	}
	for _, format := range []string{"%%%02x", "%%%02X", `\x%02x`, `\x%02X`} {
		out = append(out, each([]byte(v), format))
	}
	out = append(out, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		padded := enc.EncodeToString([]byte(v))
		out = append(out, padded, strings.TrimRight(padded, "="))
		for shift := range 3 {
			out = append(out, base64Core(enc, v, shift))
		}
	}
	return out
}

// base64Core returns those characters of a base64 text that v alone decides when shift bytes
// (modulo 3) stand before it and anything after it: what shows of a password in "Basic ..." .
func base64Core(enc *base64.Encoding, v string, shift int) string {
	all := enc.EncodeToString(append(make([]byte, shift), v...))
	first := (shift*8 + 5) / 6
	last := (shift + len(v)) * 8 / 6
	return all[first:last]
}

// jsonForms returns v as the inside of a JSON string, in the three ways encoders differ.
func jsonForms(v string) []string {
	plain, err := jsontext.AppendQuote(nil, v)
	if err != nil { // not UTF-8: encoders replace what they cannot write
		plain, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(v, "\ufffd"))
	}
	text := unquote(string(plain))
	html := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(text)
	return []string{text, html, strings.ReplaceAll(text, "/", `\/`)}
}

// each writes every unit of a text in the same way.
func each[U byte | uint16](units []U, format string) string {
	var b strings.Builder
	for _, u := range units {
		fmt.Fprintf(&b, format, u)
	}
	return b.String()
}

// unquote removes the quotes around a quoted text.
func unquote(q string) string { return q[1 : len(q)-1] }

// percentAll escapes every byte that RFC 3986 does not call unreserved, a space too.
func percentAll(v string) string { return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") }

// lowerEscapes writes the percent escapes of a URL text in lower case.
func lowerEscapes(escaped string) string {
	b := []byte(escaped)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}
