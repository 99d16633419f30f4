package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// acpClient is a client of serve --stdio that says what an SDK would not. It answers no request by itself.
type acpClient struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Reader
	session string
	notes   []spoken // what came while answer looked for something else
}

// spoken is one message of the agent.
type spoken struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	whole string
}

const editorFiles = `{"fs":{"readTextFile":true,"writeTextFile":true}}`

// startEditor starts serve in a place and opens a session.
func startEditor(t *testing.T, p *place, capabilities string, flags ...string) *acpClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := p.command(ctx, append([]string{"serve", "--stdio", "--provider", "offline"}, flags...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := &acpClient{t: t, cmd: cmd, in: in, lines: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	e.say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":`+capabilities+`}}`,
		`{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":`+quoted(p.project)+`,"mcpServers":[]}}`)
	var opened struct {
		SessionID string `json:"sessionId"`
	}
	if err := json.Unmarshal(e.answer("n").Result, &opened); err != nil || opened.SessionID == "" {
		t.Fatalf("no session: %v", err)
	}
	e.session = opened.SessionID
	return e
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// say writes lines at once.
func (e *acpClient) say(lines ...string) {
	e.t.Helper()
	if _, err := io.WriteString(e.in, strings.Join(lines, "\n")+"\n"); err != nil {
		e.t.Fatal(err)
	}
}

// prompt is the line of a prompt.
func (e *acpClient) prompt(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%s}]}}`, id, e.session, quoted(text))
}

func (e *acpClient) cancel() string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, e.session)
}

// until reads until a message is the one.
func (e *acpClient) until(what string, is func(spoken) bool) spoken {
	e.t.Helper()
	for i, m := range e.notes {
		if is(m) {
			e.notes = append(e.notes[:i:i], e.notes[i+1:]...)
			return m
		}
	}
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			e.t.Fatalf("%s does not come: %v", what, err)
		}
		m := spoken{whole: line}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			e.t.Fatalf("stdout holds %q: %v", line, err)
		}
		if is(m) {
			return m
		}
		e.notes = append(e.notes, m)
	}
}

// answer reads the answer to one of our requests.
func (e *acpClient) answer(id string) spoken {
	e.t.Helper()
	return e.until("the answer "+id, func(m spoken) bool { return m.Method == "" && string(m.ID) == quoted(id) })
}

// asked reads a request of the agent.
func (e *acpClient) asked(method string) spoken {
	e.t.Helper()
	return e.until(method, func(m spoken) bool { return m.Method == method })
}

// stopped checks how a prompt ended.
func (e *acpClient) stopped(id, reason string) {
	e.t.Helper()
	if m := e.answer(id); !strings.Contains(string(m.Result), `"stopReason":"`+reason+`"`) {
		e.t.Errorf("%s ended with %s instead of %s", id, m.whole, reason)
	}
}

// failedWith checks that a tool call failed with words.
func (e *acpClient) failedWith(words string) {
	e.t.Helper()
	m := e.until("the failure of a call", func(m spoken) bool { return strings.Contains(m.whole, `"status":"failed"`) })
	if !strings.Contains(m.whole, words) {
		e.t.Errorf("the call failed with %s instead of %q", m.whole, words)
	}
}

// TestEditorOrder: a cancellation counts for the prompt that was sent just before it, and a prompt follows the one that it interrupts
// (R-G11).
func TestEditorOrder(t *testing.T) {
	t.Parallel()
	e := startEditor(t, newPlace(t), "{}")
	for i := range 20 {
		id := fmt.Sprint("cancelled", i)
		e.say(e.prompt(id, "wait"), e.cancel())
		e.stopped(id, "cancelled")
	}
	e.say(e.prompt("first", "wait"), e.prompt("second", "wait"), e.prompt("third", "wait"))
	e.stopped("first", "cancelled")
	e.stopped("second", "cancelled")
	e.say(e.cancel())
	e.stopped("third", "cancelled")
	// A prompt that the library refuses holds up a cancellation for a moment only.
	e.say(`{"jsonrpc":"2.0","id":"odd","method":"session/prompt","params":{"sessionId":7}}`, e.prompt("last", "wait"), e.cancel())
	if m := e.answer("odd"); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("%s", m.whole)
	}
	e.stopped("last", "cancelled")
}

// TestEditorAnswers: an editor that answers with garbage or not at all costs the call, never the turn (R-G11).
func TestEditorAnswers(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	writeFile(t, filepath.Join(p.project, "a.txt"), "text\n")
	e := startEditor(t, p, editorFiles)
	for i, c := range []struct{ answer, words string }{
		{`{"jsonrpc":"2.0","id":%s,"error":"no"}`, "the answer is not one of JSON-RPC 2.0"},
		{`{"jsonrpc":2,"id":%s,"result":{"content":"x"}}`, "the answer is not one of JSON-RPC 2.0"},
		{`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no\u001b[31m"}}`, "could not read the file: no"},
		{`{"jsonrpc":"2.0","id":%s,"result":{"content":"` + strings.Repeat("x", 8<<20) + `"}}`, "the answer is longer than 8 MiB"},
	} {
		id := fmt.Sprint("read", i)
		e.say(e.prompt(id, `call read {"path":"a.txt"}`))
		e.say(fmt.Sprintf(c.answer, e.asked("fs/read_text_file").ID))
		e.failedWith(c.words)
		e.stopped(id, "end_turn")
	}
	for _, text := range []string{`call read {"path":"a.txt"}`, `call write {"path":"a.txt","content":"b"}`, `call edit {"path":"a.txt","old":"text","new":"b"}`} {
		e.say(e.prompt(text, text))
		e.asked("fs/read_text_file")
		e.say(e.cancel())
		e.stopped(text, "cancelled")
	}
	e.notes = nil
	e.say(e.prompt("allow", `call bash {"command":"echo never"}`))
	e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":"x"}}`, e.asked("session/request_permission").ID))
	e.failedWith("the person could not be asked: the answer is not one of JSON-RPC 2.0")
	e.stopped("allow", "end_turn")
}

// TestEditorLoad: a session is loaded by its whole id, and by nothing that is none (R-G11).
func TestEditorLoad(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := startEditor(t, p, "{}")
	e.say(e.prompt("p", "say hello"), fmt.Sprintf(`{"jsonrpc":"2.0","id":"none","method":"session/load","params":{"sessionId":%q,"cwd":%s,"mcpServers":[]}}`, e.session, quoted(p.project)))
	e.stopped("p", "end_turn")
	if m := e.answer("none"); m.Error == nil || !strings.Contains(m.Error.Message, "open already") {
		t.Errorf("%s", m.whole)
	}
	e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"close","method":"session/close","params":{"sessionId":%q}}`, e.session))
	e.answer("close")
	for i, c := range []struct{ id, problem string }{
		{"", "there is no session of this id"},
		{e.session[:len(e.session)-1], "there is no session of this id"},
		{"../" + e.session, "no such session"},
		{e.session, ""},
	} {
		id := fmt.Sprint("load", i)
		e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"session/load","params":{"sessionId":%q,"cwd":%s,"mcpServers":[]}}`, id, c.id, quoted(p.project)))
		m := e.answer(id)
		if c.problem == "" && m.Error != nil || c.problem != "" && (m.Error == nil || !strings.Contains(m.Error.Message, c.problem)) {
			t.Errorf("%q: %s", c.id, m.whole)
		}
	}
}

// TestEditorUndecided: the first prompt of a session tells which servers were left out for want of approval (R-G11).
func TestEditorUndecided(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"z": {"args": []string{"good"}}})
	e := startEditor(t, p, "{}")
	e.say(e.prompt("p", "say hello"))
	e.until("the note", func(m spoken) bool {
		return strings.Contains(m.whole, "Note: not started, because you did not approve them in this form: z (never approved)")
	})
	e.stopped("p", "end_turn")
}

// TestEditorQuestions: what is asked each time offers no lasting answer (R-G11).
func TestEditorQuestions(t *testing.T) {
	t.Parallel()
	e := startEditor(t, newPlace(t), "{}")
	for _, c := range []struct {
		call string
		want string
	}{
		{`call write {"path":"a.txt","content":"x"}`, "allow_once allow_always allow_always reject_once"},
		{`call write {"path":".mcp.json","content":"{}"}`, "allow_once reject_once"},
	} {
		e.say(e.prompt(c.call, c.call))
		q := e.asked("session/request_permission")
		var p struct {
			Options []struct{ Kind, OptionID string }
		}
		if err := json.Unmarshal(q.Params, &p); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, o := range p.Options {
			kinds = append(kinds, o.Kind)
		}
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s: %s instead of %s", c.call, got, c.want)
		}
		e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"no"}}}`, q.ID))
		e.stopped(c.call, "end_turn")
	}
}
