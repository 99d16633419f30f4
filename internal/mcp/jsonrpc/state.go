package jsonrpc

// sampleSize is how many bytes of skipped lines are kept for diagnostics.
const sampleSize = 512

// state is everything of a Conn that changes.
type state struct {
	pending map[string]*call // by raw id
	batches bool
	end     error // why; nil while open
	stats   Stats
	sample  []byte
}

// call is a request that waits for its answer.
type call struct {
	id     string
	answer chan answer // holds one: whoever takes the call out of pending sends exactly one
}

// answer ends a call.
type answer struct {
	response Response
	err      error
}

// update is the one way to the state.
func (c *Conn) update(f func(*state)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

// admit makes a call pending.
func (c *Conn) admit(p *call) error {
	var err error
	c.update(func(s *state) {
		switch {
		case s.end != nil:
			err = &EndedError{Cause: s.end}
		case s.pending[p.id] != nil:
			err = &requestError{"a call with that id is pending"}
		default:
			s.pending[p.id] = p
		}
	})
	return err
}

// forget takes a call out of pending and reports whether it still was there.
func (c *Conn) forget(p *call) bool {
	mine := false
	c.update(func(s *state) {
		if mine = s.pending[p.id] == p; mine {
			delete(s.pending, p.id)
		}
	})
	return mine
}

// deliver ends the call that an id means.
func (c *Conn) deliver(id ID, a answer) {
	c.update(func(s *state) {
		p := s.match(id, a.response.Error != nil)
		if p == nil {
			s.stats.Ignored++
			return
		}
		delete(s.pending, p.id)
		if a.err == nil {
			a.response.ID = ID(p.id)
		}
		p.answer <- a
	})
}

// match finds the pending call of an answer: by the id to the digit, else by one that says the same in another type,
// else, for an error without an id, the only call there is.
func (s *state) match(id ID, failed bool) *call {
	if p := s.pending[string(id)]; p != nil {
		return p
	}
	if absent(id) {
		if failed && len(s.pending) == 1 {
			for _, p := range s.pending {
				return p
			}
		}
		return nil
	}
	other := alternate(id)
	if p := s.pending[other]; p != nil {
		return p
	}
	if other == "" || other[0] == '"' { // 7 for "7" was tried; nothing else says the same
		return nil
	}
	return s.pending[`"`+other+`"`]
}

// end fails every pending call and refuses later ones. The first reason stays.
func (c *Conn) end(reason error) {
	c.update(func(s *state) {
		if s.end != nil {
			return
		}
		s.end = reason
		for id, p := range s.pending {
			delete(s.pending, id)
			p.answer <- answer{err: &EndedError{Cause: reason, sent: true}}
		}
		close(c.ended)
		c.cancel()
	})
}

// skip counts a line that is no message and keeps the start of the first ones.
func (c *Conn) skip(head []byte) {
	c.update(func(s *state) {
		s.stats.Skipped++
		room := sampleSize - len(s.sample)
		if room <= 1 {
			return
		}
		if len(s.sample) > 0 {
			s.sample = append(s.sample, '\n')
			room--
		}
		s.sample = append(s.sample, head[:min(room, len(head))]...)
	})
}
