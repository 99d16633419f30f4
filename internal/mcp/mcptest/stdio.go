// Package mcptest holds scripted MCP servers for tests of other packages: they answer sanely unless the script says
// otherwise. A stdio server is the test binary itself, run again.
package mcptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// stdioArg makes the test binary a server; the script follows as JSON.
const stdioArg = "mcptest-stdio-server"

// Action is one step of an answer. Several of its fields may be set; they happen in the order in which they stand.
type Action struct {
	Delay  time.Duration `json:",omitempty"` // waits first
	Stderr string        `json:",omitempty"` // writes that to stderr
	Line   string        `json:",omitempty"` // writes a line as it is, with $ID replaced by the id of the request
	Repeat int           `json:",omitempty"` // that many lines instead of one, with $N replaced by their number
	Result string        `json:",omitempty"` // answers with that raw result
	Error  string        `json:",omitempty"` // answers with that raw error object
	Stall  bool          `json:",omitempty"` // goes no further: reads and answers nothing any more
	Exit   int           `json:",omitempty"` // exits with that status
	Die    bool          `json:",omitempty"` // is ended by SIGKILL
}

// Script is what a server does. The zero Script is a sane server with the tools echo and add.
type Script struct {
	// Start happens before anything is read.
	Start []Action `json:",omitempty"`
	// On replaces the answer to a method. The key is "method#n" for its n-th request from 1 on, "tools/call:tool" for
	// one tool, or "method"; the first that exists in this order counts. An empty list answers nothing.
	On map[string][]Action `json:",omitempty"`
	// Tools is the raw array that tools/list gives.
	Tools string `json:",omitempty"`
	// Capabilities is the raw object of the initialize answer.
	Capabilities string `json:",omitempty"`
	// Protocol is the version that initialize answers; empty means 2025-06-18.
	Protocol string `json:",omitempty"`
	// IgnoreEOF keeps the server alive after its stdin ended.
	IgnoreEOF bool `json:",omitempty"`
}

// DefaultTools is the array that a Script without Tools gives.
const DefaultTools = `[{"name":"echo","description":"gives its text back","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},` +
	`{"name":"add","description":"adds two numbers","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}]`

// Command returns the program and the arguments that run s as a server. The test's TestMain must call Main first.
// Under the race detector a server without GORACE=atexit_sleep_ms=0 in its environment takes a second to exit.
func (s Script) Command() (program string, args []string) {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return program, []string{stdioArg, string(b)}
}

// Main runs a server and exits if the process was started by a Command; else it returns at once.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != stdioArg {
		return
	}
	p := &stdioPeer{in: bufio.NewReaderSize(os.Stdin, 1<<20), out: os.Stdout, seen: map[string]int{}}
	if err := json.Unmarshal([]byte(os.Args[2]), &p.script); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		os.Exit(2)
	}
	p.run()
	os.Exit(0)
}

// stdioPeer is a running server.
type stdioPeer struct {
	script Script
	in     *bufio.Reader
	out    io.Writer
	seen   map[string]int
}

// run answers until stdin ends.
func (p *stdioPeer) run() {
	p.act(p.script.Start, nil)
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			break
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(line, &m); err != nil || m.Method == "" {
			continue
		}
		p.seen[m.Method]++
		p.act(p.answer(m.Method, m.Params), m.ID)
	}
	if p.script.IgnoreEOF {
		p.stall()
	}
}

// answer chooses what to do about a request.
func (p *stdioPeer) answer(method string, params json.RawMessage) []Action {
	var call struct {
		Name            string
		Arguments       json.RawMessage
		ProtocolVersion string
	}
	_ = json.Unmarshal(params, &call) // other requests have none of it
	for _, key := range []string{method + "#" + strconv.Itoa(p.seen[method]), method + ":" + call.Name, method} {
		if a, ok := p.script.On[key]; ok {
			return a
		}
	}
	return []Action{Default(p.script, method, call.Name, call.Arguments)}
}

// Default is what a sane server answers; the zero Action to a notification.
func Default(s Script, method, tool string, arguments []byte) Action {
	or := func(v, otherwise string) string {
		if v == "" {
			return otherwise
		}
		return v
	}
	switch method {
	case "initialize":
		return Action{Result: fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"mcptest","version":"1.2.3"}}`,
			or(s.Protocol, "2025-06-18"), or(s.Capabilities, `{"tools":{"listChanged":true}}`))}
	case "tools/list":
		return Action{Result: `{"tools":` + or(s.Tools, DefaultTools) + `}`}
	case "ping":
		return Action{Result: `{}`}
	case "tools/call":
		return callTool(tool, arguments)
	}
	if strings.HasPrefix(method, "notifications/") {
		return Action{}
	}
	return Action{Error: `{"code":-32601,"message":"Method not found"}`}
}

// callTool is echo and add; any other tool gives its arguments back.
func callTool(tool string, arguments []byte) Action {
	var in struct {
		Text string
		A, B float64
	}
	_ = json.Unmarshal(arguments, &in)
	text := string(arguments)
	switch tool {
	case "echo":
		text = in.Text
	case "add":
		text = strconv.FormatFloat(in.A+in.B, 'g', -1, 64)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return Action{Error: `{"code":-32603,"message":"cannot encode"}`}
	}
	return Action{Result: `{"content":[{"type":"text","text":` + string(quoted) + `}]}`}
}

// act does the steps of an answer.
func (p *stdioPeer) act(steps []Action, id json.RawMessage) {
	for _, a := range steps {
		if a.Delay > 0 {
			<-time.After(a.Delay)
		}
		if a.Stderr != "" {
			_, _ = io.WriteString(os.Stderr, a.Stderr)
		}
		if a.Line != "" {
			for n := range max(1, a.Repeat) {
				p.write(strings.NewReplacer("$ID", string(id), "$N", strconv.Itoa(n)).Replace(a.Line))
			}
		}
		if a.Result != "" && id != nil {
			p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + a.Result + `}`)
		}
		if a.Error != "" && id != nil {
			p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":` + a.Error + `}`)
		}
		if a.Stall {
			p.stall()
		}
		if a.Exit != 0 {
			os.Exit(a.Exit)
		}
		if a.Die {
			die()
		}
	}
}

// write writes a line. A closed stdout is the end.
func (p *stdioPeer) write(line string) {
	if _, err := io.WriteString(p.out, line+"\n"); err != nil {
		os.Exit(1)
	}
}

// stall waits until the process is ended from outside.
func (p *stdioPeer) stall() {
	for {
		<-time.After(time.Hour)
	}
}

// die ends the process without giving it a chance.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	<-time.After(time.Minute)
}
