package mcp

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/secret"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

const (
	// maxContent bounds the parts of one result: an array of tiny parts would take a hundred times its size in memory.
	maxContent = 4096
	// maxShownType bounds in bytes a type or media type inside a placeholder.
	maxShownType = 100
	// maxMediaOnce is how many media of a result are looked for in its structured content, minMediaOnce how long in bytes of
	// base64 they must be: servers repeat an image there, and base64 must not be pasted as text.
	maxMediaOnce = 32
	minMediaOnce = 64
)

// readResult reads what a server answered to tools/call, whatever it is (R-P7, B40): nothing is dropped silently.
func readResult(result jsontext.Value) tool.Result {
	f, ok := object(result, "content", "structuredContent", "isError")
	if !ok {
		return tool.Result{Content: []tool.Content{unknown(fmt.Sprintf("result that is no object, %d bytes", len(result)))}}
	}
	r := reader{structured: f["structuredContent"]}
	switch content := f["content"]; content.Kind() {
	case '[':
		if err := elements(content, r.part); err != nil {
			r.add(unknown("content that is broken JSON"))
		}
	case 'n', 0:
	default: // one part without its array
		r.part(content)
	}
	if r.more > 0 {
		r.parts = append(r.parts, unknown(fmt.Sprintf("%d more parts left out", r.more)))
	}
	out := tool.Result{Content: r.parts, IsError: isTrue(f["isError"])}
	if s := r.structured; len(s) > 0 && s.Kind() != 'n' {
		out.Structured = r.withoutMedia(s)
	}
	if out.Content == nil && out.Structured == nil && hasOthers(result, "content", "structuredContent", "isError", "_meta") {
		out.Structured = bytes.Clone(result) // an older or newer shape: better all of it than nothing
	}
	return out
}

// isTrue is lenient towards servers that quote booleans.
func isTrue(v jsontext.Value) bool {
	if s, ok := text(v); ok {
		return strings.EqualFold(s, "true")
	}
	return v.Kind() == 't'
}

// reader collects the parts of one result.
type reader struct {
	structured jsontext.Value
	parts      []tool.Content
	more       int      // parts beyond maxContent
	media      [][]byte // base64 of the first ones, kept when there is structured content to look in
}

func (r *reader) add(c tool.Content) { r.parts = append(r.parts, c) }

// part reads one part. It always wants the next.
func (r *reader) part(v jsontext.Value) bool {
	if len(r.parts) == maxContent {
		r.more++
		return true
	}
	if s, ok := text(v); ok {
		r.add(tool.Content{Kind: tool.Text, Text: s})
		return true
	}
	f, ok := object(v, "type", "text", "data", "mimeType", "resource", "uri", "name", "title", "description")
	if !ok {
		r.add(unknown(fmt.Sprintf("content that is no object, %d bytes", len(v))))
		return true
	}
	kind, _ := text(f["type"])
	switch kind {
	case "text":
		r.add(tool.Content{Kind: tool.Text, Text: textOrJSON(f["text"])})
	case "image":
		r.add(r.binary(tool.Image, f["data"], f["mimeType"], ""))
	case "audio":
		r.add(r.binary(tool.Audio, f["data"], f["mimeType"], ""))
	case "resource":
		r.add(r.resource(f["resource"], len(v)))
	case "resource_link":
		r.add(resourceLink(f))
	case "":
		if s, ok := text(f["text"]); ok {
			r.add(tool.Content{Kind: tool.Text, Text: s})
			break
		}
		r.add(unknown(fmt.Sprintf("content without a type, %d bytes", len(v))))
	default:
		r.add(unknown(fmt.Sprintf("content of unknown type %q, %d bytes", untrusted.Head(untrusted.Line(kind), maxShownType), len(v))))
	}
	return true
}

// unknown is a placeholder.
func unknown(what string) tool.Content {
	return tool.Content{Kind: tool.Unknown, Text: "[" + what + "]"}
}

// textOrJSON is the text of a text part; servers put numbers and objects there too.
func textOrJSON(v jsontext.Value) string {
	if s, ok := text(v); ok {
		return s
	}
	if v.Kind() == 'n' {
		return ""
	}
	return strings.ToValidUTF8(string(v), "\uFFFD")
}

// binary reads base64 data.
func (r *reader) binary(kind tool.Kind, data, mime jsontext.Value, uri string) tool.Content {
	c := tool.Content{Kind: kind, URI: uri}
	c.MIME, _ = text(mime)
	encoded, ok := text(data)
	if !ok {
		return unknown(fmt.Sprintf("%s without data", describe(kind, c.MIME, uri)))
	}
	if rest, ok := strings.CutPrefix(encoded, "data:"); ok { // a data URL instead of its data
		head, body, found := strings.Cut(rest, ",")
		if found {
			encoded = body
			if c.MIME == "" {
				c.MIME, _, _ = strings.Cut(head, ";")
			}
		}
	}
	if c.Data, ok = decodeBase64(encoded); !ok {
		return unknown(fmt.Sprintf("%s with broken base64, %d bytes", describe(kind, c.MIME, uri), len(encoded)))
	}
	if len(r.structured) > 0 && len(encoded) >= minMediaOnce && len(r.media) < maxMediaOnce {
		r.media = append(r.media, []byte(encoded))
	}
	return c
}

// describe names a binary part in a placeholder.
func describe(kind tool.Kind, mime, uri string) string {
	s := string(kind)
	for _, f := range []string{mime, uri} {
		if f != "" {
			s += " " + untrusted.Head(untrusted.Line(f), maxShownType)
		}
	}
	return s
}

// decodeBase64 accepts both alphabets, with or without padding, and line breaks.
func decodeBase64(s string) ([]byte, bool) {
	if b, err := base64.StdEncoding.DecodeString(s); err == nil { // which skips \r and \n
		return b, true
	}
	s = strings.Map(func(c rune) rune {
		switch c {
		case ' ', '\t', '\r', '\n':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return c
	}, s)
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return b, err == nil
}

// resource reads an embedded resource.
func (r *reader) resource(v jsontext.Value, size int) tool.Content {
	f, ok := object(v, "uri", "mimeType", "text", "blob")
	if !ok {
		return unknown(fmt.Sprintf("resource without contents, %d bytes", size))
	}
	uri, _ := text(f["uri"])
	if s, ok := text(f["text"]); ok {
		mime, _ := text(f["mimeType"])
		return tool.Content{Kind: tool.Resource, Text: s, MIME: mime, URI: uri}
	}
	return r.binary(tool.Resource, f["blob"], f["mimeType"], uri)
}

// resourceLink reads a reference. Nothing is fetched (S31).
func resourceLink(f fields) tool.Content {
	c := tool.Content{Kind: tool.Link}
	c.URI, _ = text(f["uri"])
	c.MIME, _ = text(f["mimeType"])
	if c.Name, _ = text(f["title"]); c.Name == "" {
		c.Name, _ = text(f["name"])
	}
	c.Text, _ = text(f["description"])
	return c
}

// withoutMedia is structured content in which base64 that is a part already is replaced by a word.
func (r *reader) withoutMedia(s jsontext.Value) jsontext.Value {
	for _, m := range r.media {
		if bytes.Contains(s, m) {
			s = bytes.ReplaceAll(s, m, []byte("[shown above]"))
		}
	}
	return bytes.Clone(s)
}

// scrub takes known secrets out of everything that a model or a person could be shown.
func scrub(r tool.Result, s *secret.Scrubber) tool.Result {
	for i := range r.Content {
		c := &r.Content[i]
		c.Text, c.MIME, c.URI, c.Name = tool.Scrubbed(s, c.Text), tool.Scrubbed(s, c.MIME), tool.Scrubbed(s, c.URI), tool.Scrubbed(s, c.Name)
		if c.Kind == tool.Resource { // a file, which may well hold a key; images and sounds are left alone
			c.Data = s.Bytes(c.Data)
		}
	}
	if clean := jsontext.Value(tool.Scrubbed(s, string(r.Structured))); string(clean) != string(r.Structured) {
		r.Structured = clean
		if !clean.IsValid() {
			r.Structured = nil
			r.Content = append(r.Content, unknown("structured content that cannot be shown without a secret"))
		}
	}
	return r
}
