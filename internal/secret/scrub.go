package secret

import (
	"sync"
	"sync/atomic"
)

// MinScrubbed is the length in bytes below which a value is too common to be removed from text.
const MinScrubbed = 6

// Scrubber replaces known secret values, and their base64, hexadecimal, URL-encoded, quoted and
// JSON-escaped forms, by [redacted]; base64 also where the value is only a part of what was
// encoded. Foreign text goes through package untrusted first: an escape sequence or a hidden character in the
// middle of a value keeps it from being found. A Scrubber may be used by several goroutines at once. A nil Scrubber changes nothing.
type Scrubber struct {
	mu      sync.Mutex
	known   map[String]bool
	current atomic.Pointer[index] // nil: to be built, or nothing is known
	empty   atomic.Bool           // nothing is known
}

// NewScrubber knows the given values.
func NewScrubber(values ...String) *Scrubber {
	s := &Scrubber{}
	s.empty.Store(true)
	s.Add(values...)
	return s
}

// Add makes further values known. Values shorter than MinScrubbed bytes are ignored.
func (s *Scrubber) Add(values ...String) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if len(v.Reveal()) < MinScrubbed || s.known[v] {
			continue
		}
		if s.known == nil {
			s.known = map[String]bool{}
		}
		s.known[v] = true
		s.current.Store(nil)
		s.empty.Store(false)
	}
}

// index returns the index of all known values, building it when values were added.
func (s *Scrubber) index() *index {
	if s == nil || s.empty.Load() {
		return nil
	}
	if ix := s.current.Load(); ix != nil {
		return ix
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ix := s.current.Load(); ix != nil {
		return ix
	}
	var needles []string
	for v := range s.known {
		needles = append(needles, forms(v.Reveal())...)
	}
	ix := newIndex(needles)
	s.current.Store(ix)
	return ix
}

// Text returns t with every known value replaced.
func (s *Scrubber) Text(t string) string {
	found := find(s.index(), t)
	if len(found) == 0 {
		return t
	}
	return string(replace(make([]byte, 0, len(t)), t, found))
}

// Bytes is Text for bytes; it returns b itself when nothing had to be replaced.
func (s *Scrubber) Bytes(b []byte) []byte {
	found := find(s.index(), b)
	if len(found) == 0 {
		return b
	}
	return replace(make([]byte, 0, len(b)), b, found)
}

// replace appends t to dst with every span written as [redacted].
func replace[T string | []byte](dst []byte, t T, spans []span) []byte {
	at := 0
	for _, sp := range spans {
		dst = append(dst, t[at:sp.from]...)
		dst = append(dst, Redacted...)
		at = sp.to
	}
	return append(dst, t[at:]...)
}
