package agent

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/tool"
)

// scrubJSON removes known secrets from a JSON value. What is not JSON, before or after, becomes a JSON string of it, so
// that a session line or a hook document is never broken by what stands in it.
func scrubJSON(s *secret.Scrubber, v jsontext.Value) jsontext.Value {
	if len(v) == 0 {
		return nil
	}
	clean := jsontext.Value(s.Bytes(v))
	if clean.IsValid() {
		return clean
	}
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(clean), "\uFFFD"))
	if err != nil {
		return jsontext.Value(`""`)
	}
	return quoted
}

// scrubSchema is scrubJSON for what is JSON already: two thousand schemas need not be parsed again in every turn to find that
// nothing stands in them.
func scrubSchema(s *secret.Scrubber, v jsontext.Value) jsontext.Value {
	if clean := s.Bytes(v); len(v) == 0 || &clean[0] == &v[0] {
		return v
	}
	return scrubJSON(s, v)
}

// scrubResult removes known secrets from everything in a result that is text.
func scrubResult(s *secret.Scrubber, r tool.Result) tool.Result {
	if s == nil {
		return r
	}
	r.Content = slices.Clone(r.Content)
	for i := range r.Content {
		c := &r.Content[i]
		c.Text, c.URI, c.Name = tool.Scrubbed(s, c.Text), tool.Scrubbed(s, c.URI), tool.Scrubbed(s, c.Name)
	}
	r.Structured = scrubJSON(s, r.Structured)
	r.Diff = s.Text(r.Diff)
	return r
}

// scrubBlocks removes known secrets from the blocks of a message. A thought that held one is dropped: its provider would
// refuse it once changed.
func scrubBlocks(s *secret.Scrubber, blocks []provider.Block) []provider.Block {
	var out []provider.Block
	for _, b := range blocks {
		if b.Kind == provider.Thinking {
			if s.Text(b.Text) == b.Text && bytes.Equal(s.Bytes(b.Opaque), b.Opaque) {
				out = append(out, b)
			}
			continue
		}
		b.Text = s.Text(b.Text)
		b.Input = scrubJSON(s, b.Input)
		out = append(out, b)
	}
	return out
}

// maxHeldText is how many bytes of a streamed word wait for its end, the length of the longest secret that is still
// found when it comes in pieces.
const maxHeldText = 512

// wordScrubber scrubs streamed text. It holds back an unfinished word, so that a secret that arrives in two pieces is
// still seen whole.
type wordScrubber struct {
	s    *secret.Scrubber
	held string
}

// next takes a piece and returns what can be shown.
func (w *wordScrubber) next(piece string) string {
	if w.s == nil {
		return piece
	}
	w.held += piece
	end := strings.LastIndexFunc(w.held, unicode.IsSpace)
	if end < 0 && len(w.held) < maxHeldText {
		return ""
	}
	end++
	if len(w.held)-end >= maxHeldText {
		end = len(w.held)
	} else {
		for end < len(w.held) && w.held[end]&0xC0 == 0x80 { // the rest of a space of several bytes
			end++
		}
	}
	out := w.s.Text(w.held[:end])
	w.held = w.held[end:]
	return out
}

// flush returns what was held back.
func (w *wordScrubber) flush() string {
	out := w.s.Text(w.held)
	w.held = ""
	return out
}
