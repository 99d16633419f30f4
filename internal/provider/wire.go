package provider

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxCallID is the length in bytes of the longest id of a call that every service takes back.
	maxCallID = 64
	// idHash is how many hex digits keep a rewritten id apart from others.
	idHash = 12
)

// NoOutput stands for a tool result without text, because services refuse an empty one.
const NoOutput = "(no output)"

// Encode writes a request body. Text that is not UTF-8 is repaired rather than refused, and schemas, which were
// checked when they came, are not searched for duplicate names again.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return b, nil
}

// Decode reads one event of a stream. Half a surrogate pair or a broken byte becomes the replacement character.
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v, jsontext.AllowInvalidUTF8(true)); err != nil {
		return fmt.Errorf("%w: an event is malformed", ErrBroken)
	}
	return nil
}

// Input is what a model wrote as the input of a call: {} for nothing, the JSON as it is, or, when it is no valid
// JSON, a JSON string of it.
func Input(written string) jsontext.Value {
	if strings.TrimSpace(written) == "" {
		return jsontext.Value("{}")
	}
	if v := jsontext.Value(written); v.IsValid() {
		return v
	}
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(written, "\uFFFD"))
	if err != nil {
		return jsontext.Value("{}")
	}
	return quoted
}

// InputObject is the input of an earlier call as services take it back: always an object.
func InputObject(v jsontext.Value) jsontext.Value {
	switch {
	case len(v) == 0:
		return jsontext.Value("{}")
	case v.Kind() == '{' && v.IsValid():
		return v
	}
	wrapped, err := json.Marshal(map[string]string{"invalid_input": rawText(v)}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return jsontext.Value("{}")
	}
	return wrapped
}

func rawText(v jsontext.Value) string {
	if s := text(v); s != "" {
		return s
	}
	return string(v)
}

// CallID is an id of a call as every service takes it back. Conversations may go on with another service than the
// one that made the id, so characters that some refuse are replaced, the same way in the call and in its result.
func CallID(id string) string {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if id != "" && len(id) <= maxCallID && strings.IndexFunc(id, func(r rune) bool { return !ok(r) }) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	clean := strings.Map(func(r rune) rune {
		if ok(r) {
			return r
		}
		return '_'
	}, id)
	return clean[:min(len(clean), maxCallID-idHash-1)] + "_" + hex.EncodeToString(sum[:])[:idHash]
}

// TakesImage reports whether a service can be given this image: one of the four types that all of them read, and
// not above limit bytes, because an image that is refused would make every later request fail as well.
func TakesImage(mime string, size, limit int) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return size > 0 && size <= limit
	}
	return false
}

// DataURL is data as a data: address.
func DataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// Placeholder stands for what a service cannot be given.
func Placeholder(kind, mime string, size int) string {
	return fmt.Sprintf("[%s %s, %d bytes, not shown to the model]", kind, mime, size)
}

// Schema is the schema of a tool, or that of any object when there is none.
func Schema(v jsontext.Value) jsontext.Value {
	if len(v) == 0 {
		return jsontext.Value(`{"type":"object","properties":{}}`)
	}
	return v
}

// Blank reports whether a text has nothing to read: services refuse such blocks.
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

// Count is a number of tokens as services write it, whole or not; nonsense counts as nothing.
type Count float64

// Int is the number.
func (c Count) Int() int {
	if !(c > 0) || c > 1e12 {
		return 0
	}
	return int(c)
}
