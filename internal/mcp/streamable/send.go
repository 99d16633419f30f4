package streamable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"magi-code/internal/secret"
)

// post sends a body, and once more with a fresh token when the server answers 401 to the first: then nothing ran.
func (t *Transport) post(x *exchange, method string, body []byte) (*http.Response, error) {
	resp, auth, err := t.send(x.ctx, http.MethodPost, method, body, "")
	if err != nil || resp.StatusCode != http.StatusUnauthorized || t.o.Tokens == nil {
		return resp, err
	}
	t.o.Tokens.Rejected(x.ctx, auth)
	again, err := t.tokenHeader(x.ctx)
	if err != nil || again.Reveal() == auth.Reveal() {
		if err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
		return resp, nil
	}
	_ = resp.Body.Close()
	resp, auth, err = t.send(x.ctx, http.MethodPost, method, body, "")
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.o.Tokens.Rejected(x.ctx, auth)
	}
	return resp, err
}

func (t *Transport) tokenHeader(ctx context.Context) (secret.String, error) {
	h, err := t.o.Tokens.Header(ctx)
	if err != nil {
		e := &Error{Text: err.Error(), notSent: true, cause: err}
		var hinted interface{ Hint() string }
		if errors.As(err, &hinted) {
			e.Cure = hinted.Hint()
		}
		return h, e
	}
	t.learn(h)
	return h, nil
}

// send sends one request and returns its answer with the Authorization value of the token source that it carried.
func (t *Transport) send(ctx context.Context, verb, method string, body []byte, lastEvent string) (*http.Response, secret.String, error) {
	req, err := t.request(ctx, verb, body, method)
	if err != nil {
		return nil, secret.String{}, err
	}
	if sendable(lastEvent) {
		req.Header.Set("Last-Event-Id", lastEvent)
	}
	var auth secret.String
	if t.o.Tokens != nil {
		if auth, err = t.tokenHeader(ctx); err != nil {
			return nil, auth, err
		}
		req.Header.Set("Authorization", auth.Reveal())
		t.mu.Lock()
		t.auth = auth
		t.mu.Unlock()
	}
	resp, err := t.rt.RoundTrip(req)
	if err == nil {
		resp.Request = req // for its headers; a foreign round tripper may leave it out
	}
	return resp, auth, err
}

// sendable reports whether an event id can go back in a header.
func sendable(id string) bool {
	for i := range len(id) {
		if id[i] < ' ' && id[i] != '\t' || id[i] == 0x7f {
			return false
		}
	}
	return id != ""
}

// request makes a request with the headers that every one carries.
func (t *Transport) request(ctx context.Context, verb string, body []byte, method string) (*http.Request, error) {
	req := (&http.Request{
		Method: verb, URL: t.url, Host: t.url.Host, Header: t.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	h := req.Header
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "magi-code")
	}
	switch verb {
	case http.MethodPost:
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.ContentLength = int64(len(body))
		h.Set("Content-Type", "application/json")
		h.Set("Accept", "application/json, text/event-stream")
		if repeatable(method) {
			// Not sent (it has no value); net/http then repeats the request by itself when it meets a kept connection
			// that the server was just closing.
			h["Idempotency-Key"] = nil
		}
	case http.MethodGet:
		h.Set("Accept", "text/event-stream")
	}
	session, version := t.state()
	if session != "" && method != "initialize" {
		h.Set(sessionHeader, session)
	}
	if version != "" && method != "initialize" {
		h.Set(versionHeader, version)
	}
	return req, nil
}
