package mcp

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"magi-code/internal/mcp/jsonrpc"
)

// R-P5, S35: in any window of one second, wherever it begins, 32 pass.
func TestLimiter(t *testing.T) {
	var l limiter
	at := time.Unix(1000, 0)
	passed := []time.Time{}
	for range 5000 {
		if l.pass(at) {
			passed = append(passed, at)
		}
		at = at.Add(7 * time.Millisecond)
	}
	for i := range passed {
		n := 0
		for _, p := range passed[i:] {
			if p.Sub(passed[i]) < time.Second {
				n++
			}
		}
		if n > maxReplies {
			t.Fatalf("%d in the second after reply %d", n, i)
		}
	}
	if len(passed) < 5000*7/1000*maxReplies*9/10 || l.droppedSoFar() != 5000-len(passed) {
		t.Errorf("%d passed, %d dropped", len(passed), l.droppedSoFar())
	}
}

// R-P5, B14, B15, S35: what a server may ask at any time, and what it gets.
func TestServerRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{tools: oneTool("t")}
		f.serve = func(p *peer, r jsonrpc.Request) {
			if r.Method == "initialize" { // B14: before the handshake
				p.send(`{"jsonrpc":"2.0","id":"early","method":"ping"}`)
				p.send(`{"jsonrpc":"2.0","method":"notifications/message","params":null}`)
				p.send(`{"jsonrpc":"2.0","method":"notifications/message","params":[1]}`)
				p.send(`{"jsonrpc":"2.0","method":"notifications/nobody/knows"}`)
			}
			p.standard(r)
		}
		m := start(t, Options{}, map[string]*fake{"s": f})
		s := m.servers[0]
		ask := func(id, method string) *jsonrpc.Response {
			return s.hear(s.last, jsonrpc.Request{ID: jsonrpc.ID(id), Method: method})
		}
		for _, id := range []string{`1`, `"x"`, `123456789012345678901234567890`, `"` + strings.Repeat("x", 256) + `"`} {
			if r := ask(id, "ping"); r == nil || string(r.ID) != id || string(r.Result) != "{}" || r.Error != nil {
				t.Errorf("ping %s: %+v", id, r)
			}
		}
		for _, method := range []string{"roots/list", "sampling/createMessage", "elicitation/create", "initialize", "notifications/tools/list_changed"} {
			r := ask(`7`, method)
			if r == nil || r.Error == nil || r.Error.Code != jsonrpc.CodeMethodNotFound || r.Error.Message != "Method not found" || r.Result != nil {
				t.Errorf("%s: %+v", method, r)
			}
		}
		for _, id := range []string{`{}`, `true`, `1.5`, `null`, `"` + strings.Repeat("x", 257) + `"`} {
			if r := ask(id, "ping"); r != nil {
				t.Errorf("unusable id %s got %+v", id, r)
			}
		}
		<-time.After(2 * time.Second)
		answered := 0
		for i := range 1000 {
			if ask(fmt.Sprint(i), "ping") != nil {
				answered++
			}
		}
		if st := statusOf(t, m, "s"); answered != maxReplies || st.DroppedReplies != 1000-maxReplies {
			t.Errorf("%d answered, %d dropped", answered, st.DroppedReplies)
		}
		closeNow(t, m)
	})
}

// B16: notifications during a call never fail it.
func TestNotificationsDuringCall(t *testing.T) {
	f := &fake{tools: oneTool("t")}
	f.serve = func(p *peer, r jsonrpc.Request) {
		if r.Method == "tools/call" {
			for range 1000 {
				p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody","progress":1}}`)
			}
			p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
			p.send(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
		}
		p.standard(r)
		if r.Method == "tools/call" {
			p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`)
		}
	}
	m := start(t, Options{}, map[string]*fake{"s": f})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := m.Call(t.Context(), "s", "t", nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
