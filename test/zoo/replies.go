package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

type jsonRaw = json.RawMessage

// replyModes are about answers, requests and notifications: B13 to B17, B21, X2.
func replyModes() map[string]mode {
	return map[string]mode{
		"string-id":          {"gives number ids back as strings", reID(func(id string) string { return strconv.Quote(id) })},
		"float-id":           {"gives ids back as floats", reID(func(id string) string { return id + ".0" })},
		"null-id":            {"answers tools/call with an error whose id is null", nullID("null")},
		"missing-id":         {"answers tools/call with an error without an id", nullID("")},
		"wrong-id":           {"answers tools/call under an id that nobody sent, then rightly after ms=50", wrongID},
		"dup-reply":          {"answers everything twice", func(s *server) { s.encode = func(l string) string { return l + l } }},
		"late-reply":         {"answers tools/call after ms=2000", func(s *server) { s.on["tools/call"] = lateReply(s) }},
		"reverse":            {"answers n=2 calls in reverse order once all are there", reverse},
		"ping-flood":         {"sends n=1000 pings at each call, then answers", pingFlood},
		"unknown-req":        {"sends requests of its own, with ids of every kind, at start and at each call", unknownRequests},
		"early-messages":     {"sends notifications and a ping before its initialize answer", earlyMessages},
		"progress-odd":       {"sends odd progress and log notifications around each answer, n=100", progressOdd},
		"list-changed-storm": {"announces n=10 list changes at each call", storm},
		"batch":              {"answers in arrays and negotiates 2025-03-26 (v=)", batch},
		"list-32601":         {"does not know tools/list", failing("tools/list", -32601, "Method not found")},
		"list-32603":         {"fails tools/list", failing("tools/list", -32603, "Internal error")},
		"init-32601":         {"does not know initialize", failing("initialize", -32601, "Method not found")},
		"init-32022":         {"refuses the version, as servers of 2026-07-28 do", init32022},
		"call-error":         {"answers tools/call with code=-32603 and text=", callError},
		"spy":                {"answers env with the environment of its parent, where the system lets it be read", spy},
		"error-secrets":      {"fails every call with its environment in the error text", errorSecrets},
	}
}

// reID changes the id of every answer.
func reID(f func(string) string) func(*server) {
	return func(s *server) {
		s.before = func(message) {}
		s.encode = func(l string) string {
			head, rest, ok := strings.Cut(l, `"id":`)
			id, tail, _ := strings.Cut(rest, ",")
			if _, err := strconv.Atoi(id); !ok || err != nil {
				return l
			}
			return head + `"id":` + f(id) + "," + tail
		}
	}
}

func nullID(id string) func(*server) {
	if id != "" {
		id = `,"id":` + id
	}
	return func(s *server) {
		s.on["tools/call"] = func(message) {
			s.line(`{"jsonrpc":"2.0"` + id + `,"error":{"code":-32700,"message":"Parse error"}}`)
		}
	}
}

func wrongID(s *server) {
	s.on["tools/call"] = func(m message) {
		s.line(`{"jsonrpc":"2.0","id":987654321,"result":{"content":[{"type":"text","text":"somebody else's"}]}}`)
		wait(s.millis("ms", 50))
		s.callTool(m)
	}
}

func lateReply(s *server) func(message) {
	return func(m message) {
		s.calls.Go(func() {
			wait(s.millis("ms", 2000))
			s.callTool(m)
		})
	}
}

func reverse(s *server) {
	var held []message
	s.on["tools/call"] = func(m message) {
		if held = append(held, m); len(held) < s.number("n", 2) {
			return
		}
		for i := range held {
			s.text(held[len(held)-1-i], fmt.Sprintf("call %d", len(held)-i))
		}
		held = nil
	}
}

func pingFlood(s *server) {
	s.on["tools/call"] = func(m message) {
		for i := range s.number("n", 1000) {
			s.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":"flood-%d","method":"ping"}`, i))
		}
		s.callTool(m)
	}
}

func unknownRequests(s *server) {
	ask := func() {
		for _, l := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":"text","method":"roots/list"}`,
			`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"sampling/createMessage","params":{}}`,
			`{"jsonrpc":"2.0","id":-5,"method":"elicitation/create","params":{"message":"password?"}}`,
			`{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 256) + `","method":"ping"}`,
			`{"jsonrpc":"2.0","id":"` + strings.Repeat("b", 257) + `","method":"ping"}`,
			`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`,
			`{"jsonrpc":"2.0","id":true,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":null,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":[],"method":"ping"}`,
		} {
			s.line(l)
		}
	}
	s.on["notifications/initialized"] = func(message) { ask() }
	s.on["tools/call"] = func(m message) { ask(); s.callTool(m) }
}

func earlyMessages(s *server) {
	s.on["initialize"] = func(m message) {
		s.note("notifications/message", `{"level":"info","data":"starting"}`)
		s.note("notifications/tools/list_changed", `null`)
		s.line(`{"jsonrpc":"2.0","method":"notifications/whatever"}`)
		s.line(`{"jsonrpc":"2.0","id":"early","method":"ping"}`)
		s.line(`{"jsonrpc":"2.0","id":0,"method":"roots/list"}`)
		s.result(m, s.initialize(m))
	}
}

func progressOdd(s *server) {
	odd := func() {
		for i := range s.number("n", 100) {
			s.note("notifications/progress", fmt.Sprintf(`{"progress":%d}`, i))
			s.note("notifications/progress", fmt.Sprintf(`{"progressToken":"nobody's","progress":%d,"total":-1}`, i))
			s.note("notifications/progress", `{"progressToken":null,"progress":"half"}`)
			s.note("notifications/progress", `[1,2]`)
			s.note("notifications/message", `"text"`)
			s.note("notifications/message", `{"level":"shout","data":{"a":[1]}}`)
		}
	}
	s.before = func(message) { odd() }
	s.after = func(message) { odd() }
}

func storm(s *server) {
	s.on["tools/call"] = func(m message) {
		for range s.number("n", 10) {
			s.note("notifications/tools/list_changed", `{}`)
		}
		s.callTool(m)
	}
}

func batch(s *server) {
	s.version = s.option("v", "2025-03-26")
	s.encode = func(l string) string {
		l = strings.TrimSuffix(l, "\n")
		if strings.Contains(l, `"protocolVersion"`) {
			return l + "\n"
		}
		return `[]` + "\n" + `[{"jsonrpc":"2.0","method":"notifications/message","params":{}},[1],5,` + l + `]` + "\n"
	}
}

func failing(method string, code int, text string) func(*server) {
	return func(s *server) { s.on[method] = func(m message) { s.fail(m, code, text) } }
}

func init32022(s *server) {
	s.on["initialize"] = func(m message) {
		s.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-06-18"}}}`)
	}
}

func callError(s *server) {
	s.on["tools/call"] = func(m message) {
		s.fail(m, s.number("code", -32603), s.option("text", "\x1b[31mred\x1b[0m \u202egnorw"))
	}
}

func spy(s *server) {
	s.call["env"] = func(m message, _ json.RawMessage) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/environ")
		if err != nil {
			s.text(m, err.Error())
			return
		}
		s.text(m, strings.ReplaceAll(string(b), "\x00", "\n"))
	}
}

func errorSecrets(s *server) {
	s.on["tools/call"] = func(m message) { s.fail(m, -32603, environment()) }
}
