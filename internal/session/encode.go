package session

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// encode returns the line of an entry with its line break. What a model or a tool wrote is kept as it is (repeated member
// names in an input, big numbers), except that invalid UTF-8 is replaced.
func encode(count int, e Entry) ([]byte, error) {
	e.Input = validJSON(e.Input)
	text, err := marshal(count, e)
	if err != nil {
		if text, err = marshal(count, shrink(e, maxLineBytes)); err != nil { // quotes what is not JSON
			return nil, err
		}
	}
	// An entry that is too large is cut harder and harder: first its single huge text, at last everything.
	for _, limit := range []int{4 << 20, 512 << 10, 32 << 10, 2 << 10} {
		if len(text) <= maxLineBytes {
			return text, nil
		}
		if text, err = marshal(count, shrink(e, limit)); err != nil {
			return nil, err
		}
	}
	if len(text) > maxLineBytes {
		return nil, fmt.Errorf("an entry of %d bytes cannot be cut to %d bytes", len(text), maxLineBytes)
	}
	return text, nil
}

func marshal(count int, e Entry) ([]byte, error) {
	e.Time = e.Time.UTC()
	text, err := json.Marshal(line{count, e}, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return nil, fmt.Errorf("the entry cannot be written as JSON: %w", err)
	}
	return append(text, '\n'), nil
}

func decode(text []byte) (line, error) {
	var l line
	err := json.Unmarshal(text, &l, jsontext.AllowDuplicateNames(true))
	return l, err
}

// validJSON returns v, or a JSON string of it when it is not JSON.
func validJSON(v jsontext.Value) jsontext.Value {
	if len(v) == 0 || v.IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
		return v
	}
	return quote(string(v))
}

func quote(s string) jsontext.Value {
	q, _ := jsontext.AppendQuote(nil, s) // the error says that invalid UTF-8 was replaced
	return q
}

// shrink returns e with no part larger than limit bytes, and with JSON strings in the place of what is not JSON. It changes nothing that e points to.
func shrink(e Entry, limit int) Entry {
	e.Text = cut(e.Text, limit)
	e.Input = cutJSON(e.Input, limit)
	if e.Message == nil {
		return e
	}
	m := provider.Message{Role: e.Message.Role, Blocks: make([]provider.Block, len(e.Message.Blocks))}
	for i, b := range e.Message.Blocks {
		if len(b.Text) > limit || len(b.Opaque) > limit {
			b.Opaque, b.Origin = nil, "" // it vouches for the whole text
		}
		b.Opaque = validJSON(b.Opaque)
		b.Text = cut(b.Text, limit)
		b.Input = cutJSON(b.Input, limit)
		if len(b.Data) > limit {
			b = provider.Block{Kind: provider.Text, Text: leftOut(b.MIME, len(b.Data))}
		}
		content := make([]tool.Content, len(b.Content))
		for j, c := range b.Content {
			c.Text = cut(c.Text, limit)
			if len(c.Data) > limit {
				c = tool.Content{Kind: tool.Text, Text: leftOut(c.MIME, len(c.Data))}
			}
			content[j] = c
		}
		if b.Content != nil {
			b.Content = content
		}
		m.Blocks[i] = b
	}
	e.Message = &m
	return e
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s, _ = untrusted.Cut(s, limit)
	return s
}

func cutJSON(v jsontext.Value, limit int) jsontext.Value {
	if len(v) <= limit {
		return validJSON(v)
	}
	return quote(cut(string(v), limit))
}

func leftOut(mime string, size int) string {
	return fmt.Sprintf("[%s, %d bytes, too large for the session file]", untrusted.Head(mime, 64), size)
}
