package httpzoo

import (
	"fmt"
	"net/http"
	"strings"
)

// events are the modes that answer calls with a stream; initialize and tools/list too, except where the stream breaks.
func (v *visit) events(m string) bool {
	if v.r.Method == http.MethodGet && v.r.Header.Get("Last-Event-Id") != "" {
		return v.resumed(m)
	}
	if v.r.Method != http.MethodPost || len(v.msg.ID) == 0 || v.msg.Method == "" {
		return false
	}
	breaking := m == "sse-drop" || m == "sse-resume" || m == "sse-mid" || m == "sse-reset" || m == "sse-huge" || m == "sse-ping" || m == "sse-flood" || m == "sse-elsewhere"
	if breaking && v.msg.Method != "tools/call" || v.msg.Method != "initialize" && !v.known() {
		return false
	}
	if v.msg.Method == "initialize" {
		v.session(fmt.Sprintf("zoo-session-%d", v.m.times("initialize")))
	}
	v.stream()
	if breaking {
		v.broken(m)
	} else {
		v.odds(m, v.answer())
	}
	return true
}

// odds are whole answers in every grammar that there is.
func (v *visit) odds(m, a string) {
	half := len(a) / 2
	for a[half-1] != ',' { // a line break may stand only between tokens
		half--
	}
	switch m {
	case "sse-crlf":
		v.write("event: message\r\ndata: " + a + "\r\n\r\n")
	case "sse-cr":
		v.write("event: message\rdata: " + a + "\r\r")
	case "sse-bom":
		v.write("\xef\xbb\xbfdata: " + a + "\n\n")
	case "sse-multiline":
		v.write("data: " + a[:half] + "\ndata: " + a[half:] + "\n\n")
	case "sse-comment":
		v.write(": hello\n\n:" + strings.Repeat("x", 1<<20) + "\nunknown: field\ndata: " + a + "\n\n")
	case "sse-split":
		for _, c := range []byte("id: 1\r\ndata: " + a + "\r\n\r\n") {
			v.write(string([]byte{c}))
		}
	case "sse-noterm":
		v.write("data: " + a)
	case "sse-emptydata":
		v.write("id: p\ndata:\n\ndata: " + a + "\n\n")
	case "sse-names":
		v.write("event: ping\ndata: {}\n\nevent: endpoint\ndata: /messages?x=1\n\nevent: response\ndata: " + a + "\n\n")
	case "sse-open":
		v.write("data: " + a + "\n\n")
		v.hang()
	case "sse-notes":
		note := "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
		v.write(strings.Repeat(note, 10) + "data: " + a + "\n\n" + note)
	default:
		v.write("event: message\ndata: " + a + "\n\n")
	}
}

// broken are the streams that end, or do something else, before the answer.
func (v *visit) broken(m string) {
	switch m {
	case "sse-resume":
		v.write("id: e1\nretry: 50\ndata:\n\n")
		v.m.mu.Lock()
		v.m.count["answer "+v.answer()] = 1
		v.m.mu.Unlock()
	case "sse-elsewhere": // the answer comes on the GET stream
		v.write("id: e1\ndata:\n\n")
		v.m.Push(v.answer())
		v.hang()
	case "sse-mid":
		a := v.answer()
		v.write("data: " + a[:len(a)/2])
	case "sse-reset":
		v.write("data: {\"jsonrpc\":")
		v.reset()
	case "sse-huge":
		v.write("data: ")
		chunk := strings.Repeat("x", 1<<20)
		for range 20 {
			v.write(chunk)
		}
		v.write("\n\n")
	case "sse-ping":
		for _, id := range []string{"1", `"abc"`, "12345678901234567890"} {
			v.write(`data: {"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n\n")
		}
		v.write("data: " + v.answer() + "\n\n")
	case "sse-flood":
		for i := range 1000 {
			v.write(fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n\n", i))
		}
		v.write("data: " + v.answer() + "\n\n")
	}
}

// resumed answers a GET that names an event: the first one breaks once more.
func (v *visit) resumed(m string) bool {
	if m != "sse-resume" {
		return false
	}
	v.stream()
	if v.m.times("resumed") == 1 {
		v.write("id: e2\ndata:\n\n")
		return true
	}
	v.m.mu.Lock()
	answer := ""
	for k := range v.m.count {
		if a, ok := strings.CutPrefix(k, "answer "); ok {
			answer = a
		}
	}
	v.m.mu.Unlock()
	v.write("id: e3\ndata: " + answer + "\n\n")
	return true
}
