package tool

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/untrusted"
)

// Kind is the kind of one part of a result.
type Kind string

const (
	Text     Kind = "text"
	Image    Kind = "image"
	Audio    Kind = "audio"
	Resource Kind = "resource" // embedded: Text or Data, with URI and MIME
	Link     Kind = "link"     // a reference: URI, Name
	Unknown  Kind = "unknown"  // a type we do not know: Text holds a short placeholder
)

const (
	// DefaultResultLimit is how many bytes of text of one result a model gets when nothing else is set.
	DefaultResultLimit = 100 << 10
	// MaxImage bounds one image in bytes: providers refuse more than 5 MB of base64, and with it the whole request.
	MaxImage = 3_700_000
	// MaxImages bounds the images of one result: the smallest limit of the providers is 20 to a request.
	MaxImages = 20
	// maxShownField bounds in bytes a MIME type, URI or name inside a placeholder.
	maxShownField = 300
)

// Content is one part of a result.
type Content struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text,omitempty"`
	MIME string `json:"mime,omitempty"`
	Data []byte `json:"data,omitempty"` // decoded bytes of an image, audio or binary resource
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
}

// Result is what a call gave.
type Result struct {
	Content    []Content      `json:"content"`
	Structured jsontext.Value `json:"structured,omitempty"`
	IsError    bool           `json:"isError,omitempty"`
	// Diff is a unified diff of what a built-in changed, for people; the model does not get it.
	Diff string `json:"diff,omitempty"`
}

// TextResult is a result of one text.
func TextResult(s string) Result { return Result{Content: []Content{{Kind: Text, Text: s}}} }

// ErrorResult is a failed result of one text.
func ErrorResult(s string) Result {
	return Result{Content: []Content{{Kind: Text, Text: s}}, IsError: true}
}

// Plain returns the result as text alone: texts in order, media and links as short placeholders
// ("[image image/png, 1234 bytes]"), structured content as compact JSON when there is no usable text.
// Binary is never pasted. Nothing is cut.
func (r Result) Plain() string {
	parts := make([]string, 0, len(r.Content)+1)
	for _, c := range r.Content {
		if s := c.plain(); s != "" {
			parts = append(parts, s)
		}
	}
	if s := r.structuredText(); s != "" {
		parts = append(parts, s)
	}
	return strings.Join(parts, "\n")
}

// ForModel returns the parts that go to a model: at most limit bytes of text in all, cut with head and tail
// kept and the cut stated; images as they are, when they are of a kind and size that models take; everything else
// as Plain does it. A limit of 0 or less means DefaultResultLimit. There is always at least one part, and no text
// is blank, because providers refuse both.
func (r Result) ForModel(limit int) []Content {
	if limit <= 0 {
		limit = DefaultResultLimit
	}
	var parts []Content
	var pending strings.Builder // texts in a row become one part
	text := func(s string) {
		if strings.TrimSpace(s) == "" {
			return
		}
		if pending.Len() > 0 {
			pending.WriteByte('\n')
		}
		pending.WriteString(strings.ReplaceAll(s, "\x00", "\uFFFD")) // which some providers refuse the request for
	}
	flush := func() {
		if pending.Len() > 0 {
			parts = append(parts, Content{Kind: Text, Text: pending.String()})
			pending.Reset()
		}
	}
	images := 0
	for _, c := range r.Content {
		mime := imageType(c)
		if mime == "" || images == MaxImages {
			text(c.plain())
			continue
		}
		images++
		flush()
		parts = append(parts, Content{Kind: Image, MIME: mime, Data: c.Data})
	}
	text(r.structuredText())
	flush()
	if len(parts) == 0 {
		s := "[no content]"
		if r.IsError {
			s = "[the tool failed and gave no reason]"
		}
		return []Content{{Kind: Text, Text: s}}
	}
	fit(parts, limit)
	return parts
}

// structuredText is the structured content as compact JSON, or "" when the content has usable text: servers
// repeat the one in the other, and a model should not pay for it twice.
func (r Result) structuredText() string {
	if len(r.Structured) == 0 || r.Structured.Kind() == 'n' {
		return ""
	}
	for _, c := range r.Content {
		if (c.Kind == Text || c.Kind == Resource) && strings.TrimSpace(c.Text) != "" {
			return ""
		}
	}
	v := bytes.Clone(r.Structured)
	value := jsontext.Value(v)
	if err := value.Compact(); err != nil {
		return "[structured content that is not valid JSON]"
	}
	return string(value)
}

// plain is one part as text.
func (c Content) plain() string {
	switch c.Kind {
	case Text, Unknown:
		return c.Text
	case Image, Audio:
		return c.placeholder()
	case Resource:
		switch {
		case len(c.Data) > 0 || c.Text == "":
			return c.placeholder()
		case c.URI != "":
			return "[resource " + short(c.URI) + "]\n" + c.Text
		}
		return c.Text
	case Link:
		s := "[link " + short(c.URI)
		if c.Name != "" && c.Name != c.URI {
			s += " (" + short(c.Name) + ")"
		}
		if c.Text != "" {
			s += ": " + short(c.Text)
		}
		return s + "]"
	}
	return "[content of unknown kind]"
}

// placeholder stands for binary: "[image image/png, 1234 bytes]".
func (c Content) placeholder() string {
	s := "[" + string(c.Kind)
	for _, f := range []string{c.MIME, c.URI} {
		if f != "" {
			s += " " + short(f)
		}
	}
	s += fmt.Sprintf(", %d bytes", len(c.Data))
	if c.Text != "" {
		s += ", " + short(c.Text)
	}
	return s + "]"
}

// short is a field of a placeholder: one line, bounded.
func short(s string) string { return untrusted.Head(untrusted.Line(s), maxShownField) }

// imageType returns the media type of an image that models take, or "". It looks at the bytes, because a provider
// refuses the whole request when they are not what the type says.
func imageType(c Content) string {
	if c.Kind != Image || len(c.Data) > MaxImage {
		return ""
	}
	switch d := c.Data; {
	case bytes.HasPrefix(d, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(d, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(d, []byte("GIF87a")), bytes.HasPrefix(d, []byte("GIF89a")):
		return "image/gif"
	case len(d) >= 12 && bytes.HasPrefix(d, []byte("RIFF")) && string(d[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// fit cuts the texts of parts so that they have at most limit bytes together. Short texts stay whole; the long
// ones share what is left.
func fit(parts []Content, limit int) {
	var long []int
	for i, c := range parts {
		if c.Kind == Text {
			long = append(long, i)
		}
	}
	rest := limit
	for again := true; again && len(long) > 0; {
		again = false
		share := rest / len(long)
		var longer []int
		for _, i := range long {
			if n := len(parts[i].Text); n <= share {
				rest -= n
				again = true
				continue
			}
			longer = append(longer, i)
		}
		long = longer
	}
	for n, i := range long {
		parts[i].Text = cut(parts[i].Text, rest/(len(long)-n))
		rest -= len(parts[i].Text)
	}
}

// cut is untrusted.Cut, or the head alone where the limit has no room for its sentence.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const dots = 3 // what Head appends
	if t, _ := untrusted.Cut(s, limit); len(t) <= limit {
		return t
	}
	return untrusted.Head(s, max(limit-dots, 0))
}
