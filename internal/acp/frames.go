package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxFrame bounds one message from the editor, in bytes; it lies below the library's own limit, which ends the connection.
	maxFrame = 8 << 20
	// maxHead is how many bytes of a longer message are looked at to learn whose answer it is or who waits for one.
	maxHead = 4 << 10
	// maxID bounds in bytes an id that is given back.
	maxID = 256

	codeInvalidRequest = -32600
	codeInvalidParams  = -32602
	codeInternalError  = -32603
)

// Answers to what never reaches the library: it drops such lines without a word, and whoever waits would wait for ever.
const (
	parseError     = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: a line is not one JSON object"}}` + "\n"
	tooLargeText   = "invalid request: a message is longer than 8 MiB"
	noMessageText  = "invalid request: not a message of JSON-RPC 2.0"
	largeReplyText = "the answer is longer than 8 MiB"
	brokenText     = "the answer is not one of JSON-RPC 2.0"
)

// frames passes whole, valid messages on and answers the others, so that a bad line costs its sender that line only.
type frames struct {
	in      *bufio.Reader
	reply   func(line string)   // must not block
	before  func(method string) // is told of each request and notification just before it is passed on
	pending []byte              // the rest of the line that is being passed on
}

func newFrames(in io.Reader, reply, before func(string)) *frames {
	return &frames{in: bufio.NewReaderSize(in, 64<<10), reply: reply, before: before}
}

// Read gives the next bytes of the stream of valid lines.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.pending) == 0 {
		line, err := f.line()
		if err != nil {
			return 0, err
		}
		f.pending = line
	}
	n := copy(p, f.pending)
	f.pending = f.pending[n:]
	return n, nil
}

// line returns the next valid line with its end, or nil for one that was answered or is blank.
func (f *frames) line() ([]byte, error) {
	var line, head []byte
	for {
		part, err := f.in.ReadSlice('\n')
		if head == nil && len(line)+len(part) > maxFrame {
			head, line = bytes.Clone(line[:maxHead]), nil
		}
		if head == nil {
			line = append(line, part...)
		}
		if err == nil || errors.Is(err, io.EOF) && (len(line) > 0 || head != nil) {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	if head != nil {
		return f.tooLarge(head), nil
	}
	trimmed := jsontext.Value(bytes.TrimSpace(line))
	switch {
	case len(trimmed) == 0:
		return nil, nil
	case trimmed.Kind() != '{' || !trimmed.IsValid():
		f.reply(parseError)
		return nil, nil
	}
	return f.fit(trimmed), nil
}

// fit returns a message as the library takes it, nil when it was answered here.
func (f *frames) fit(line []byte) []byte {
	var m struct { // as the library reads it
		JSONRPC string            `json:"jsonrpc"`
		ID      *json.RawMessage  `json:"id"`
		Method  string            `json:"method"`
		Error   *sdk.RequestError `json:"error"`
	}
	if json.Unmarshal(line, &m) == nil && (m.ID != nil || m.Method != "") {
		if m.Method != "" {
			f.before(m.Method)
		}
		return append(bytes.Clone(line), '\n')
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(line, &members) // it is an object
	_, asks := members["method"]
	_, fails := members["error"]
	id := givenBack(members["id"])
	switch {
	case asks, id == "null" && !fails:
		f.reply(failure(id, codeInvalidRequest, noMessageText))
	case id != "null":
		return []byte(failure(id, codeInternalError, brokenText))
	}
	return nil // an error about nothing: to answer it could go on for ever
}

// tooLarge deals with a message of which only the beginning was kept.
func (f *frames) tooLarge(head []byte) []byte {
	id, answers := "null", false
	d := jsontext.NewDecoder(bytes.NewReader(head))
	_, err := d.ReadToken()
	for err == nil {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil || name.Kind() != '"' {
			break
		}
		member := name.String()
		answers = answers || member == "result" || member == "error"
		var value jsontext.Value
		if value, err = d.ReadValue(); err == nil && member == "id" {
			id = givenBack(json.RawMessage(value))
		}
	}
	if answers && id != "null" {
		return []byte(failure(id, codeInternalError, largeReplyText))
	}
	f.reply(failure(id, codeInvalidRequest, tooLargeText))
	return nil
}

// givenBack is an id as an answer repeats it: a text or a number, anything else is null.
func givenBack(id json.RawMessage) string {
	if kind := jsontext.Value(id).Kind(); len(id) <= maxID && (kind == '"' || kind == '0') {
		return string(id)
	}
	return "null"
}

// failure is the line of an answer with an error.
func failure(id string, code int, text string) string {
	b, _ := json.Marshal(sdk.RequestError{Code: code, Message: text}) // plain fields
	return `{"jsonrpc":"2.0","id":` + id + `,"error":` + string(b) + "}\n"
}
