package oauth

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"magi-code/internal/secret"
)

const (
	// refreshGrace is how long a refresh goes on after its caller gave up: the server may already have rotated the token.
	refreshGrace = 3 * time.Second
	// freshness: a token that is refused so soon after it was given out is not mended by another refresh.
	freshness = 10 * time.Second
)

// Source gives out the Authorization values of one server. It is silent: it opens nothing, and when it has no token it
// says which command gets one. Its methods may be called concurrently.
type Source struct {
	o    Options
	turn chan struct{} // one at a time; a channel, so that a caller can give up

	current record        // guarded by turn
	refused secret.String // the access token that the server did not take
}

// NewSource makes the source of a server. Nothing is read yet.
func NewSource(o Options) *Source {
	s := &Source{o: o, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

func (s *Source) take(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Source) give() { s.turn <- struct{}{} }

// Header returns the Authorization value to send, refreshing the token if needed.
func (s *Source) Header(ctx context.Context) (secret.String, error) {
	if err := s.take(ctx); err != nil {
		return secret.String{}, err
	}
	defer s.give()
	if s.usable(s.current, false) {
		return bearer(s.current), nil
	}
	stored, err := load(s.o)
	if err != nil {
		return secret.String{}, err
	}
	if !s.usable(stored, false) {
		if stored, err = s.renew(ctx); err != nil {
			return secret.String{}, err
		}
	}
	s.current = stored
	return bearer(stored), nil
}

func bearer(r record) secret.String { return secret.New("Bearer " + r.access.Reveal()) }

// usable: there is a token that was not refused and need not be refreshed; with late set, one that just works still.
func (s *Source) usable(r record, late bool) bool {
	if r.access.IsEmpty() || r.access.Reveal() == s.refused.Reveal() {
		return false
	}
	end := r.refreshAt
	if late || r.refresh.IsEmpty() {
		end = r.expires
	}
	return end.IsZero() || s.o.now().Before(end)
}

// renew refreshes under the cross-process lock, unless another process has just done so.
func (s *Source) renew(ctx context.Context) (record, error) {
	if r, err := load(s.o); err == nil && r.refresh.IsEmpty() {
		return r, s.hopeless(r) // nothing to lock for
	}
	release, err := lock(ctx, s.o)
	if err != nil {
		return record{}, err
	}
	defer release()
	r, err := load(s.o)
	if err != nil {
		return r, err
	}
	if s.usable(r, false) {
		return r, nil
	}
	if r.refresh.IsEmpty() || r.access.Reveal() == s.refused.Reveal() && s.o.now().Sub(r.obtained).Abs() < freshness {
		return r, s.hopeless(r)
	}
	fresh, err := s.refresh(ctx, r)
	var denied *tokenError
	switch {
	case err == nil:
		if err := save(s.o, fresh); err != nil { // before it is used: the old one may be void already
			return r, err
		}
		return fresh, nil
	case errors.As(err, &denied) && denied.code == "invalid_grant":
		// The store still holds what was refused, for we hold the lock.
		r.access, r.refresh = secret.String{}, secret.String{}
		if err := save(s.o, r); err != nil {
			return r, err
		}
		return r, needLogin(s.o.Server.Name, "the login has ended: "+denied.Error())
	case s.usable(r, true):
		return r, nil
	}
	return r, &Error{Text: "the token could not be refreshed: " + err.Error(), Cure: "try again; if it stays so, run \"magi-code mcp login " + s.o.Server.Name + "\"", cause: err}
}

func (s *Source) hopeless(r record) error {
	switch {
	case r.access.IsEmpty():
		return needLogin(s.o.Server.Name, "not authenticated")
	case r.access.Reveal() == s.refused.Reveal():
		return needLogin(s.o.Server.Name, "the server refuses the token")
	}
	return needLogin(s.o.Server.Name, "the token has expired and cannot be refreshed")
}

func (s *Source) refresh(ctx context.Context, r record) (record, error) {
	f, err := newFetcher(s.o)
	if err != nil {
		return r, err
	}
	defer f.close()
	going, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(refreshGrace, cancel) })()
	return f.requestToken(going, r, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.refresh.Reveal()}}, s.o.now)
}

// Rejected tells that the server answered 401 to this value.
func (s *Source) Rejected(ctx context.Context, header secret.String) {
	if s.take(ctx) != nil {
		return
	}
	defer s.give()
	if token, ok := cutBearer(header); ok {
		s.refused = token
	}
}

func cutBearer(h secret.String) (secret.String, bool) {
	const scheme = "Bearer "
	v := h.Reveal()
	if len(v) <= len(scheme) || v[:len(scheme)] != scheme {
		return secret.String{}, false
	}
	return secret.New(v[len(scheme):]), true
}

// NeedScopes notes scopes that the server asked for with a 403, so that the next login asks for them besides those held.
func (s *Source) NeedScopes(ctx context.Context, scopes []string) {
	if s.take(ctx) != nil {
		return
	}
	defer s.give()
	release, err := lock(ctx, s.o)
	if err != nil {
		return
	}
	defer release()
	r, err := load(s.o)
	if err != nil || r.access.IsEmpty() {
		return
	}
	wanted := union(r.wanted, validScopes(scopes))
	if len(wanted) > maxScopes || slices.Equal(wanted, r.wanted) {
		return
	}
	r.wanted = wanted
	_ = save(s.o, r) // the next 403 tries again
}
