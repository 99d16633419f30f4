package secret

import "io"

// Writer returns a writer that passes what it is given on to w with every known value
// replaced, also one that is split over several writes. It holds back as many bytes as the
// longest known form has; Close passes on the rest and does not close w. It is for one
// goroutine at a time.
func (s *Scrubber) Writer(w io.Writer) io.WriteCloser { return &scrubWriter{s: s, w: w} }

// scrubWriter keeps the end of the stream, in which a value may have begun.
type scrubWriter struct {
	s       *Scrubber
	w       io.Writer
	held    []byte
	covered int  // bytes at the start of held that a replacement already stands for
	open    bool // a replacement was written last, and nothing after it
}

// Write takes all of p, or fails as the underlying writer does.
func (w *scrubWriter) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	keep := 0
	if ix := w.s.index(); ix != nil {
		keep = ix.longest - 1
	}
	if err := w.pass(len(w.held) - keep); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close passes on what was held back.
func (w *scrubWriter) Close() error { return w.pass(len(w.held)) }

// pass writes the first upTo bytes of held. A replacement that reaches beyond them is written
// now, and its remaining bytes are left out later.
func (w *scrubWriter) pass(upTo int) error {
	if upTo <= 0 {
		return nil
	}
	var out []byte
	covered, at := w.covered, min(w.covered, upTo)
	for _, sp := range find(w.s.index(), w.held) {
		if sp.from >= upTo {
			break
		}
		if sp.from > covered || !w.open {
			out = append(out, w.held[at:sp.from]...)
			out = append(out, Redacted...)
			w.open = true
		}
		covered = max(covered, sp.to)
		at = min(covered, upTo)
	}
	if at < upTo {
		out = append(out, w.held[at:upTo]...)
		w.open = false
	}
	w.held = append(w.held[:0], w.held[upTo:]...)
	w.covered = max(0, covered-upTo)
	if len(out) == 0 {
		return nil
	}
	_, err := w.w.Write(out)
	return err
}
