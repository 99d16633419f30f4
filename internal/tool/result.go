package tool

import "github.com/go-json-experiment/json/jsontext"

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
func (r Result) Plain() string { panic("to be built") }

// ForModel returns the parts that go to a model: at most limit bytes of text in all, cut with head and tail
// kept and the cut stated; images as they are; everything else as Plain does it.
func (r Result) ForModel(limit int) []Content { panic("to be built") }
