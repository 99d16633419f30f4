package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// define is a tool definition with properties such as `"ms":{"type":"integer"}`.
func define(name, description, properties string) string {
	return fmt.Sprintf(`{"name":%s,"description":%s,"inputSchema":{"type":"object","properties":{%s}}}`, quote(name), quote(description), properties)
}

// withSchema is a tool definition with a raw schema; an empty one leaves the member out.
func withSchema(name, schema string) string {
	if schema == "" {
		return fmt.Sprintf(`{"name":%s,"description":"no schema"}`, quote(name))
	}
	return fmt.Sprintf(`{"name":%s,"description":"an odd schema","inputSchema":%s}`, quote(name), schema)
}

// goodTools are the tools of the mode good.
func goodTools() []string {
	return []string{
		define("echo", "Gives its text back.", `"text":{"type":"string"}`),
		define("add", "Adds two numbers.", `"a":{"type":"number"},"b":{"type":"number"}`),
		define("env", "Lists its environment.", ``),
		define("slow", "Answers after a while.", `"ms":{"type":"integer"}`),
		define("crash", "Ends the server with status 7.", ``),
		define("big", "Answers with that many bytes of text.", `"bytes":{"type":"integer"}`),
		define("replies", "Lists the answers that the client gave to requests of the server.", ``),
		define("grow", "Adds a tool and announces the change.", `"name":{"type":"string"}`),
	}
}

// arguments are those of all good tools.
type arguments struct {
	Text  string  `json:"text"`
	Name  string  `json:"name"`
	A     float64 `json:"a"`
	B     float64 `json:"b"`
	MS    int     `json:"ms"`
	Bytes int     `json:"bytes"`
}

// goodCalls are the tools of the mode good by name.
func (s *server) goodCalls() map[string]func(message, json.RawMessage) {
	tool := func(f func(message, arguments)) func(message, json.RawMessage) {
		return func(m message, raw json.RawMessage) {
			var a arguments
			if len(raw) > 0 {
				if err := json.Unmarshal(raw, &a); err != nil {
					s.fail(m, -32602, err.Error())
					return
				}
			}
			f(m, a)
		}
	}
	return map[string]func(message, json.RawMessage){
		"echo": tool(func(m message, a arguments) { s.text(m, a.Text) }),
		"add":  tool(func(m message, a arguments) { s.text(m, strconv.FormatFloat(a.A+a.B, 'g', -1, 64)) }),
		"env":  tool(func(m message, _ arguments) { s.text(m, environment()) }),
		"slow": tool(func(m message, a arguments) {
			wait(time.Duration(a.MS) * time.Millisecond)
			s.text(m, "slow")
		}),
		"crash": tool(func(message, arguments) {
			fmt.Fprintln(os.Stderr, "crashing as asked")
			os.Exit(7)
		}),
		"big":     tool(func(m message, a arguments) { s.text(m, strings.Repeat("x", a.Bytes)) }),
		"replies": tool(func(m message, _ arguments) { s.text(m, s.received()) }),
		"grow": tool(func(m message, a arguments) {
			s.mu.Lock()
			s.tools = append(slices.Clone(s.tools), define(a.Name, "Grown.", ``))
			s.mu.Unlock()
			s.note("notifications/tools/list_changed", `{}`)
			s.text(m, "grown")
		}),
	}
}

// environment is the environment of this process, sorted, one variable a line.
func environment() string {
	env := os.Environ()
	slices.Sort(env)
	return strings.Join(env, "\n")
}

// received are the client's answers so far, one a line.
func (s *server) received() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.replies, "\n")
}
