package streamable

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"magi-code/internal/mcp/jsonrpc"
)

const maxBatch = 1000 // messages in one array; a real batch has a handful

// decode reads a body or the data of an event: one message, or with 2025-03-26 an array of them. What is no message is
// counted and left out; an answer to want that cannot be accepted is an error, since nothing better will come.
func (t *Transport) decode(b []byte, want jsonrpc.ID) (out []jsonrpc.Message, err error) {
	parts := [][]byte{bytes.TrimSpace(b)}
	if _, version := t.state(); version == batchVersion && len(parts[0]) > 0 && parts[0][0] == '[' {
		split, err := jsonrpc.SplitBatch(parts[0])
		if err != nil || len(split) > maxBatch {
			t.skipped.Add(1)
			return nil, nil
		}
		parts = split
	}
	for _, p := range parts {
		m, bad := jsonrpc.Decode(p)
		var invalid *jsonrpc.InvalidError
		if errors.As(bad, &invalid) && len(want) > 0 && sameID(invalid.ID, want) {
			err = &Error{Text: "the server sent an answer that is not valid: " + invalid.Reason}
		}
		if bad != nil {
			t.skipped.Add(1)
			continue
		}
		out = append(out, m)
	}
	return out, err
}

// sameID compares ids as they are written; an id that came back as a string instead of a number is taken as well.
func sameID(got, want jsonrpc.ID) bool {
	g, w := strings.TrimSpace(string(got)), strings.TrimSpace(string(want))
	return g == w || len(g) > 2 && g[0] == '"' && g[1:len(g)-1] == w
}

// answers reports whether a response in the answer to our POST is the one to our request. An error without an id cannot
// belong to anything else.
func answers(r jsonrpc.Response, id jsonrpc.ID) bool {
	noID := len(r.ID) == 0 || string(r.ID) == "null"
	return sameID(r.ID, id) || r.Error != nil && noID
}

// handle gives a message of the server to the handler and queues the reply.
func (t *Transport) handle(r jsonrpc.Request) {
	if t.o.Handler == nil {
		return
	}
	t.handling.Lock()
	reply := t.o.Handler(r)
	t.handling.Unlock()
	if reply == nil {
		return
	}
	select {
	case t.replies <- *reply:
	default:
		t.dropped.Add(1)
	}
}

// sendReplies is the one worker that answers the server's requests.
func (t *Transport) sendReplies() {
	for {
		select {
		case <-t.ctx.Done():
			return
		case r := <-t.replies:
			body, err := jsonrpc.AppendResponse(nil, r)
			if err != nil {
				continue
			}
			ctx, cancel := context.WithTimeout(t.ctx, replyTimeout)
			_ = t.deliver(ctx, "", body) // a reply that does not arrive is the server's loss
			cancel()
		}
	}
}

// siblingWait is how long calls under way may still learn their own fate after one of them met a lost session: each that
// gets its own 404 may be sent again, one that is cut off may not.
const siblingWait = time.Second

// admit counts a call. After a session loss nothing starts: the caller waits for the end of the connection, so that it
// asks for a new one.
func (t *Transport) admit(ctx context.Context) error {
	t.mu.Lock()
	losing := t.losing
	if !losing {
		t.calls++
	}
	t.mu.Unlock()
	if !losing {
		return nil
	}
	select {
	case <-t.ctx.Done():
	case <-ctx.Done():
	}
	return &SessionLostError{}
}

func (t *Transport) leave() {
	t.mu.Lock()
	t.calls--
	last := t.losing && t.calls == t.lost
	t.mu.Unlock()
	if last {
		t.fail(&SessionLostError{})
	}
}

// loseSession ends the connection as soon as the calls under way have ended, or after siblingWait.
func (t *Transport) loseSession() {
	t.mu.Lock()
	first := !t.losing
	t.losing = true
	last := t.calls == t.lost
	t.mu.Unlock()
	if first {
		timer := time.AfterFunc(siblingWait, func() { t.fail(&SessionLostError{}) })
		context.AfterFunc(t.ctx, func() { timer.Stop() })
	}
	if last {
		t.fail(&SessionLostError{})
	}
}

// awaitSiblings holds a call that met the loss until the connection has ended.
func (t *Transport) awaitSiblings(ctx context.Context) {
	t.mu.Lock()
	t.lost++
	last := t.calls == t.lost
	t.mu.Unlock()
	if last {
		t.fail(&SessionLostError{})
	}
	select {
	case <-t.ctx.Done():
	case <-ctx.Done():
	}
}
