package jsonrpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the other end of a connection under test, driven by hand.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// open starts a connection over net.Pipe. The test ends with it closed.
func open(t *testing.T, o Options) (*Conn, *peer) {
	t.Helper()
	a, b := net.Pipe()
	c := NewConn(t.Context(), a, a, o)
	p := &peer{t: t, conn: b, in: bufio.NewReaderSize(b, 1<<20)}
	t.Cleanup(func() {
		_ = b.Close()
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c, p
}

// expect reads one line, which must hold want.
func (p *peer) expect(want string) {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil || !strings.Contains(line, want) {
		p.t.Errorf("peer read %q, %v; want %s", line, err, want)
	}
}

// send writes lines.
func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		if _, err := p.conn.Write([]byte(l + "\n")); err != nil {
			p.t.Errorf("peer write: %v", err)
		}
	}
}

// outcome is how a call ended.
type outcome struct {
	r   Response
	err error
}

// start makes a call beside the test.
func start(ctx context.Context, c *Conn, id string) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		r, err := c.Call(ctx, Request{ID: ID(id), Method: "m" + id})
		ch <- outcome{r, err}
	}()
	return ch
}

// begin makes a call and waits until the peer has it.
func (p *peer) begin(ctx context.Context, c *Conn, id string) <-chan outcome {
	p.t.Helper()
	ch := start(ctx, c, id)
	p.expect(`"id":` + id)
	return ch
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return "err " + o.err.Error()
	case o.r.Error != nil:
		return "error " + o.r.Error.Message
	}
	return "result " + string(o.r.ID) + " " + string(o.r.Result)
}

// TestAnyOrder: calls overlap, answers come in any order, others are ignored and counted: R-P4, B13.
func TestAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := open(t, Options{})
		one, two := p.begin(t.Context(), c, "1"), p.begin(t.Context(), c, "2")
		p.send(`{"jsonrpc":"2.0","id":99,"result":0}`, `{"jsonrpc":"2.0","id":2,"result":2}`,
			`{"jsonrpc":"2.0","id":2,"result":3}`, `{"jsonrpc":"2.0","id":1,"result":1}`, `{"jsonrpc":"2.0","id":1,"result":1}`)
		if got := (<-two).String(); got != "result 2 2" {
			t.Error(got)
		}
		if got := (<-one).String(); got != "result 1 1" {
			t.Error(got)
		}
		synctest.Wait()
		if n := c.Stats().Ignored; n != 3 {
			t.Errorf("%d ignored, want 3", n)
		}
	})
}

// TestIDDrift: servers that change the type of an id are understood when nothing else can be meant: B13.
func TestIDDrift(t *testing.T) {
	for _, tt := range []struct{ sent, reply, want string }{
		{"7", `{"jsonrpc":"2.0","id":"7","result":1}`, "result 7 1"},
		{"7", `{"jsonrpc":"2.0","id":7.0,"result":1}`, "result 7 1"},
		{"7", `{"jsonrpc":"2.0","id":7e0,"result":1}`, "result 7 1"},
		{"7", `{"jsonrpc":"2.0","id":"\u0037","result":1}`, "result 7 1"},
		{`"7"`, `{"jsonrpc":"2.0","id":7,"result":1}`, `result "7" 1`},
		{`"7"`, `{"jsonrpc":"2.0","id":7.0,"result":1}`, `result "7" 1`},
		{"0", `{"jsonrpc":"2.0","id":"0","result":1}`, "result 0 1"},
		{"7", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}`, "error bad"},
		{"7", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"bad"}}`, "error bad"},
		{"7", `{"jsonrpc":"2.0","id":null,"result":1}`, ""},
		{"7", `{"jsonrpc":"2.0","result":1}`, ""},
		{"7", `{"jsonrpc":"2.0","id":"7x","result":1}`, ""},
		{"7", `{"jsonrpc":"2.0","id":"","result":1}`, ""},
		{"7", `{"jsonrpc":"2.0","id":[7],"result":1}`, ""},
		{"7", `{"jsonrpc":"2.0","id":true,"result":1}`, ""},
		{"7", `{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}`, "err invalid message: a name occurs twice in one object"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			call := p.begin(ctx, c, tt.sent)
			p.send(tt.reply)
			want := tt.want
			if want == "" {
				want = "err " + context.DeadlineExceeded.Error()
			}
			if got := (<-call).String(); got != want {
				t.Errorf("%s for %s: got %s, want %s", tt.reply, tt.sent, got, want)
			}
		})
	}
	t.Run("ambiguous", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			number, text := p.begin(t.Context(), c, "7"), p.begin(t.Context(), c, `"7"`)
			p.send(`{"jsonrpc":"2.0","id":null,"error":{"message":"whose?"}}`, `{"jsonrpc":"2.0","id":"7","result":"t"}`, `{"jsonrpc":"2.0","id":7,"result":"n"}`)
			if a, b := (<-number).String(), (<-text).String(); a != `result 7 "n"` || b != `result "7" "t"` {
				t.Error(a, b)
			}
		})
	})
}

// TestNoise: lines that are no messages are skipped, counted, sampled and never answered: B1, B2, B5, W4.
func TestNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := open(t, Options{Handler: func(Request) *Response { t.Error("a handler call"); return nil }})
		call := p.begin(t.Context(), c, "1")
		for range 50 {
			p.send("INFO starting")
		}
		p.send(`{"level":"info"}`, `{"jsonrpc":"2.0","id":5}`, `42`, `"x"`, `null`, `[]`, ``, `   `, "\r", "{broken", `prompt> {"jsonrpc":"2.0","id":1,"result":"quoted"}`)
		p.send("\ufeff" + `  {"jsonrpc":"2.0","id":1,"result":{}}  ` + "\r")
		if got := (<-call).String(); got != "result 1 {}" {
			t.Error(got)
		}
		st := c.Stats()
		if st.Skipped != 58 || !strings.HasPrefix(st.Sample, "INFO starting\nINFO") || len(st.Sample) > sampleSize {
			t.Errorf("%d skipped, sample of %d bytes %.30q", st.Skipped, len(st.Sample), st.Sample)
		}
	})
}

// TestSplitsAndJoins: messages may come in pieces and several at once, and the last needs no newline: B5, B1.
func TestSplitsAndJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := open(t, Options{})
		one, two, three := p.begin(t.Context(), c, "1"), p.begin(t.Context(), c, "2"), p.begin(t.Context(), c, "3")
		for _, b := range []byte(`{"jsonrpc":"2.0","id":1,"result":"é😀"}` + "\n") {
			if _, err := p.conn.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		p.send(`{"jsonrpc":"2.0","id":2,"result":2}` + "\n\n" + `{"jsonrpc":"2.0","method":"x"}`)
		_, _ = p.conn.Write([]byte(`{"jsonrpc":"2.0","id":3,"result":3}`))
		_ = p.conn.Close()
		if a, b, d := (<-one).String(), (<-two).String(), (<-three).String(); a != `result 1 "é😀"` || b != "result 2 2" || d != "result 3 3" {
			t.Error(a, b, d)
		}
		<-c.Done()
		if !errors.Is(c.Err(), errPeerClosed) {
			t.Error(c.Err())
		}
	})
}

// TestServerRequests: what the peer asks goes to the handler in order, before initialize too, and its answers keep
// the id; unusable ids get none: R-P5, B14, B15.
func TestServerRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		c, p := open(t, Options{Handler: func(r Request) *Response {
			seen = append(seen, r.Method)
			if r.Method == "ping" {
				return &Response{ID: r.ID, Result: []byte("{}")}
			}
			return &Response{ID: r.ID, Error: &Error{Code: CodeMethodNotFound, Message: "Method not found"}}
		}})
		p.send(`{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"}`)
		p.expect(`{"jsonrpc":"2.0","id":12345678901234567890123,"result":{}}`)
		p.send(`{"jsonrpc":"2.0","id":"a\u0062","method":"roots/list"}`)
		p.expect(`{"jsonrpc":"2.0","id":"a\u0062","error":{"code":-32601,"message":"Method not found"}}`)
		p.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		for _, id := range []string{"null", "{}", "true", "1.5", `"` + strings.Repeat("a", 257) + `"`} {
			p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"odd"}`)
		}
		p.send(`{"jsonrpc":"2.0","id":0,"method":"ping"}`)
		p.expect(`"id":0,"result"`)
		if got := strings.Join(seen, " "); got != "ping roots/list notifications/x odd odd odd odd odd ping" {
			t.Error(got)
		}
		_ = c
	})
}

// TestReplyFlood: a peer that asks without reading costs a bounded queue, and its answers to us still arrive: B15, S35.
func TestReplyFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := open(t, Options{Handler: func(r Request) *Response { return &Response{ID: r.ID, Result: []byte("{}")} }})
		call := p.begin(t.Context(), c, "1")
		for i := range 1000 {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		p.send(`{"jsonrpc":"2.0","id":1,"result":1}`)
		if got := (<-call).String(); got != "result 1 1" {
			t.Error(got)
		}
		if n := c.Stats().DroppedReplies; n < 1000-replyQueue-2 {
			t.Errorf("%d dropped", n)
		}
		synctest.Wait()
		<-time.After(2 * replyPatience) // virtual: the blocked write gives up, and the connection lives
		if err := c.Err(); err != nil {
			t.Error(err)
		}
	})
}

// TestBatches: arrays count only where the negotiated version has them: B21, R-T2.
func TestBatches(t *testing.T) {
	const batch = `[{"jsonrpc":"2.0","id":1,"result":1},[{"jsonrpc":"2.0","id":2,"result":0}],5,{"jsonrpc":"2.0","method":"x","params":{"a":1,"a":2}},{"jsonrpc":"2.0","id":2,"result":2}]`
	for version, want := range map[string]string{"2025-03-26": "result 2 2", "2025-06-18": "result 2 3"} {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			c.Negotiated(version)
			one, two := p.begin(t.Context(), c, "1"), p.begin(t.Context(), c, "2")
			p.send(`[]`, batch, `[{"jsonrpc":"2.0","id":1`, `{"jsonrpc":"2.0","id":1,"result":1}`, `{"jsonrpc":"2.0","id":2,"result":3}`)
			if a, b := (<-one).String(), (<-two).String(); a != "result 1 1" || b != want {
				t.Error(version, a, b)
			}
		})
	}
}

// TestEnd: the end of the stream fails every pending call with its reason, later ones are not sent: R-T5.
func TestEnd(t *testing.T) {
	reason := errors.New("died of boredom")
	synctest.Test(t, func(t *testing.T) {
		c, p := open(t, Options{Ended: func(err error) error { return fmt.Errorf("%w (%w)", reason, err) }})
		calls := []<-chan outcome{p.begin(t.Context(), c, "1"), p.begin(t.Context(), c, "2")}
		_ = p.conn.Close()
		for _, call := range calls {
			if o := <-call; !errors.Is(o.err, reason) || NotSent(o.err) {
				t.Error(o)
			}
		}
		<-c.Done()
		if _, err := c.Call(t.Context(), Request{ID: ID("3"), Method: "x"}); !errors.Is(err, reason) || !NotSent(err) {
			t.Error(err)
		}
		if err := c.Notify(t.Context(), Request{Method: "x"}); !errors.Is(err, reason) || !NotSent(err) {
			t.Error(err)
		}
		if err := c.Err(); !errors.Is(err, reason) {
			t.Error(err)
		}
	})
}

// TestCutAnswer: half an answer before the end is no answer; the end is what its caller is told: B1, B8.
func TestCutAnswer(t *testing.T) {
	for _, half := range []string{`{"jsonrpc":"2.0","id":1,"result":{"to`, `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 2*lineBuffer)} {
		synctest.Test(t, func(t *testing.T) {
			c, p := open(t, Options{})
			call := p.begin(t.Context(), c, "1")
			_, _ = p.conn.Write([]byte(half))
			_ = p.conn.Close()
			if o := <-call; !errors.Is(o.err, errPeerClosed) || c.Stats().Skipped != 1 {
				t.Error(o, c.Stats().Skipped)
			}
		})
	}
}

// TestClose: pending calls are told, later ones refused, and everything has ended afterwards.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := open(t, Options{})
		call := p.begin(t.Context(), c, "1")
		stuck := start(t.Context(), c, "2") // nobody reads it
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		if o := <-call; !errors.Is(o.err, ErrClosed) || NotSent(o.err) {
			t.Error(o)
		}
		if o := <-stuck; !errors.Is(o.err, ErrClosed) || !NotSent(o.err) {
			t.Error(o)
		}
	})
}

// TestMisuse: calls that cannot be sent say so and harm nobody.
func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := open(t, Options{MaxFrame: 1000})
		first := p.begin(t.Context(), c, "1")
		for _, r := range []Request{{Method: "x"}, {ID: ID("1"), Method: "x"}, {ID: ID("2"), Method: "x\xff"},
			{ID: ID("2"), Method: "x", Params: []byte("{\n")}, {ID: ID("2"), Method: strings.Repeat("x", 1000)}} {
			if _, err := c.Call(t.Context(), r); !NotSent(err) {
				t.Errorf("%.20s: %v", r.Method, err)
			}
		}
		sent := make(chan error, 1)
		go func() { sent <- c.Notify(t.Context(), Request{Method: "y", Params: []byte("{\n \"a\": 1\r\n}")}) }()
		p.expect(`"params":{"a":1}}`)
		if err := <-sent; err != nil {
			t.Error(err)
		}
		p.send(`{"jsonrpc":"2.0","id":1,"result":1}`)
		if got := (<-first).String(); got != "result 1 1" {
			t.Error(got)
		}
	})
}

// TestManyCallers: a hundred callers at once, answered in reverse.
func TestManyCallers(t *testing.T) {
	c, p := open(t, Options{})
	const n = 100
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r, err := c.Call(t.Context(), Request{ID: ID(fmt.Sprint(i)), Method: "x"})
			if err != nil || string(r.Result) != fmt.Sprint(i) {
				t.Error(i, r, err)
			}
		})
	}
	var ids []string
	for range n {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(m.Request.ID))
	}
	for i := range ids {
		id := ids[len(ids)-1-i]
		p.send(`{"jsonrpc":"2.0","id":` + id + `,"result":` + id + `}`)
	}
	wg.Wait()
}
