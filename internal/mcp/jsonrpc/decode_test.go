package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// TestDecodeMessages pins what is a message and what it says: R-P5, B13, B14.
func TestDecodeMessages(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"request", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, `request 7 ping -`},
		{"big integer to the digit", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}`, `request 123456789012345678901234567890 ping -`},
		{"string id as written", `{"jsonrpc":"2.0","id":"a\u0062","method":"ping"}`, `request "a\u0062" ping -`},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`, `request - notifications/message {"level":"info"}`},
		{"null params", `{"jsonrpc":"2.0","method":"x","params":null}`, `request - x -`},
		{"array params", `{"jsonrpc":"2.0","method":"x","params":[1]}`, `request - x [1]`},
		{"null id of a request", `{"jsonrpc":"2.0","id":null,"method":"x"}`, `request null x -`},
		{"object id of a request", `{"jsonrpc":"2.0","id":{"a":1},"method":"x"}`, `request {"a":1} x -`},
		{"escaped names", `{"jsonrpc":"2.0","\u0069d":1,"method":"a\u0062"}`, `request 1 ab -`},
		{"unknown members", `{"x":[{"y":1}],"jsonrpc":"2.0","id":1,"result":{}}`, `result 1 {}`},
		{"result null", `{"jsonrpc":"2.0","id":1,"result":null}`, `result 1 null`},
		{"error null beside a result", `{"jsonrpc":"2.0","id":1,"error":null,"result":{}}`, `result 1 {}`},
		{"method null beside a result", `{"jsonrpc":"2.0","id":1,"method":null,"result":{}}`, `result 1 {}`},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no\n","data":{"a":1}}}`, "error 1 -32601 no\n {\"a\":1}"},
		{"error beside a result", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"},"result":{}}`, `error 1 1 x -`},
		{"error without an id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`, `error - -32700 x -`},
		{"error as text", `{"jsonrpc":"2.0","id":1,"error":"boom"}`, `error 1 0 boom -`},
		{"error code in quotes, message an object", `{"jsonrpc":"2.0","id":1,"error":{"code":"-5","message":{"a":1}}}`, `error 1 -5 {"a":1} -`},
		{"error code 1e3", `{"jsonrpc":"2.0","id":1,"error":{"code":1e3}}`, `error 1 1000  -`},
		{"white space around", " \t{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1 } \r\n", `result 1 1`},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\xffb\"}", "result 1 \"a\ufffdb\""},
		{"a run of invalid bytes", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\xfe\xc3\"}", "result 1 \"\ufffd\""},
		{"lone surrogate", `{"jsonrpc":"2.0","id":1,"result":"a\ud800b"}`, "result 1 \"a\ufffdb\""},
		{"low surrogate first", `{"jsonrpc":"2.0","id":1,"result":"\udc00\ud83d\ude00"}`, "result 1 \"\ufffd\\ud83d\\ude00\""},
		{"escaped NUL", `{"jsonrpc":"2.0","id":1,"result":"\u0000"}`, `result 1 "\u0000"`},
		{"raw NUL and tab", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\x00\t\"}", `result 1 "\u0000\u0009"`},
		{"id that cannot be given back", "{\"jsonrpc\":\"2.0\",\"id\":\"a\xff\",\"method\":\"ping\"}", `request null ping -`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Decode([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if got := show(m); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// show writes a message in short form.
func show(m Message) string {
	or := func(v jsontext.Value) string {
		if v == nil {
			return "-"
		}
		return string(v)
	}
	switch {
	case m.Request != nil:
		return "request " + or(m.Request.ID) + " " + m.Request.Method + " " + or(m.Request.Params)
	case m.Response.Error != nil:
		e := m.Response.Error
		n, _ := json.Marshal(e.Code)
		return "error " + or(m.Response.ID) + " " + string(n) + " " + e.Message + " " + or(e.Data)
	}
	return "result " + or(m.Response.ID) + " " + or(m.Response.Result)
}

// TestDecodeRefuses pins what is no message, and when the call that it answers can be told: B2, S6.
func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, id string }{
		{"number", `42`, ""},
		{"text", `"x"`, ""},
		{"null", `null`, ""},
		{"array", `[]`, ""},
		{"nothing", ``, ""},
		{"log line", `{"level":"info","id":1,"result":"ok"}`, ""},
		{"version 1.0", `{"jsonrpc":"1.0","id":1,"result":"ok"}`, ""},
		{"version as number", `{"jsonrpc":2.0,"id":1,"result":"ok"}`, ""},
		{"id only", `{"jsonrpc":"2.0","id":1}`, ""},
		{"method a number", `{"jsonrpc":"2.0","id":1,"method":5}`, ""},
		{"request and answer", `{"jsonrpc":"2.0","id":1,"method":"x","result":{}}`, ""},
		{"METHOD", `{"jsonrpc":"2.0","id":1,"METHOD":"x"}`, ""},
		{"Result", `{"jsonrpc":"2.0","id":1,"Result":{}}`, ""},
		{"Result beside result", `{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}`, "1"},
		{"folded with a long s", `{"jsonrpc":"2.0","id":1,"result":{},"re` + "\u017f" + `ult":{}}`, "1"},
		{"id twice", `{"jsonrpc":"2.0","id":1,"result":{},"id":2}`, ""},
		{"result twice", `{"jsonrpc":"2.0","id":1,"result":{},"result":[]}`, "1"},
		{"name twice within", `{"jsonrpc":"2.0","id":1,"result":{"a":{"b":1,"b":2}}}`, "1"},
		{"name twice by escape", `{"jsonrpc":"2.0","id":1,"result":{"a":1,"\u0061":2}}`, "1"},
		{"name twice within a request", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}`, ""},
		{"trailing data", `{"jsonrpc":"2.0","id":1,"result":{}} x`, "1"},
		{"two messages", `{"jsonrpc":"2.0","id":1,"result":{}}{"jsonrpc":"2.0","id":2,"result":{}}`, "1"},
		{"cut", `{"jsonrpc":"2.0","id":1,"result":{"a":`, "1"},
		{"too deep", `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Decode([]byte(tt.in))
			bad, ok := errors.AsType[*InvalidError](err)
			if !ok {
				t.Fatalf("got %v, %v", m, err)
			}
			if string(bad.ID) != tt.id {
				t.Errorf("id %q, want %q", bad.ID, tt.id)
			}
		})
	}
}

// TestDecodeMemory: what a hostile message multiplies is bounded, and nothing of it is kept: S13.
func TestDecodeMemory(t *testing.T) {
	var names strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&names, `"%x":1,`, i)
	}
	answer := func(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }
	for name, tt := range map[string]struct {
		in      string
		ok      bool
		ceiling int // times the length of the message
	}{
		"names":          {answer("{" + names.String() + `"z":1}`), true, 20},
		"invalid bytes":  {answer(`"` + strings.Repeat("\xff", 2<<20) + `"`), true, 3},
		"every second":   {answer(`"` + strings.Repeat("a\xff", 1<<20) + `"`), true, 3},
		"raw controls":   {answer(`"` + strings.Repeat("\x01", 2<<20) + `"`), false, 3},
		"lone surrogate": {answer(`"` + strings.Repeat(`\ud800`, 300<<10) + `"`), true, 3},
	} {
		b := []byte(tt.in)
		var d decoder
		var before, after, kept runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := d.decode(b)
		runtime.ReadMemStats(&after)
		runtime.GC()
		runtime.ReadMemStats(&kept)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		if n := int(after.TotalAlloc - before.TotalAlloc); n > tt.ceiling*len(b) {
			t.Errorf("%s: %d bytes allocated for %d", name, n, len(b))
		}
		if n := int(kept.HeapAlloc) - int(before.HeapAlloc); n > 1<<20 {
			t.Errorf("%s: %d bytes kept", name, n)
		}
		runtime.KeepAlive(&d)
		runtime.KeepAlive(b)
	}
	if _, err := SplitBatch([]byte("[" + strings.Repeat("1,", maxBatch) + "1]")); err == nil {
		t.Error("a batch without end")
	}
}

// TestUsableID pins which ids are given back: R-P5, B15.
func TestUsableID(t *testing.T) {
	for id, want := range map[string]bool{
		`1`: true, `0`: true, `-3`: true, `12345678901234567890123`: true, `"x"`: true, `""`: true,
		`"` + strings.Repeat("a", 256) + `"`: true, `"` + strings.Repeat("a", 257) + `"`: false,
		`"` + strings.Repeat(`\u0061`, 256) + `"`: true, `"` + strings.Repeat("é", 129) + `"`: false,
		strings.Repeat("1", 257): false, `1.5`: false, `1.0`: false, `1e3`: false, `null`: false, `true`: false,
		`{}`: false, `[]`: false, ``: false, `-`: false,
	} {
		if got := UsableID(ID(id)); got != want {
			t.Errorf("UsableID(%.40s) = %v", id, got)
		}
	}
}

// TestDecodeCopies proves that a message outlives the bytes that it was read from.
func TestDecodeCopies(t *testing.T) {
	b := []byte(`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`)
	m, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 'x'
	}
	if got := show(m); got != `result 1 {"a":1}` {
		t.Error(got)
	}
}

// FuzzDecode: whatever is accepted is one strict message, and is accepted again when we write it ourselves.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":"x","result":{"a":[1,"\ud800"]}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\xff\x00\"}", `{"jsonrpc":"2.0","id":null,"error":{"code":"1","message":5}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}`, `[{"jsonrpc":"2.0","method":"x"}]`, `{"jsonrpc":"2.0","id":1.0,"result":{}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = SplitBatch(b)
		m, err := Decode(b)
		if err != nil {
			if _, ok := errors.AsType[*InvalidError](err); !ok {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		if (m.Request == nil) == (m.Response == nil) {
			t.Fatal("not exactly one of request and response")
		}
		var out []byte
		if m.Request != nil {
			if !utf8.ValidString(m.Request.Method) {
				t.Fatal("method is not UTF-8")
			}
			out, err = AppendRequest(nil, *m.Request)
		} else {
			if (m.Response.Error == nil) == (m.Response.Result == nil) {
				t.Fatal("not exactly one of result and error")
			}
			if m.Response.ID == nil {
				m.Response.ID = ID("null")
			}
			out, err = AppendResponse(nil, *m.Response)
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(string(out), "\r\n") {
			t.Fatalf("line break inside a frame: %q", out)
		}
		if _, err := Decode(out); err != nil {
			t.Fatalf("%v: %q from %q", err, out, b)
		}
	})
}
