package jsonrpc

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendRequest appends a request or notification as one line of JSON, without the newline.
func AppendRequest(b []byte, r Request) ([]byte, error) {
	if b == nil {
		b = make([]byte, 0, len(r.ID)+len(r.Method)+len(r.Params)+64) // 64: the names, the marks and a newline
	}
	b = append(b, `{"jsonrpc":"2.0"`...)
	if len(r.ID) > 0 {
		b = append(append(b, `,"id":`...), r.ID...)
	}
	b = append(b, `,"method":`...)
	b, err := jsontext.AppendQuote(b, r.Method)
	if err != nil {
		return nil, &requestError{"the method is not valid UTF-8"}
	}
	if r.Params != nil {
		if b, err = appendLine(append(b, `,"params":`...), r.Params); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// AppendResponse appends an answer as one line of JSON, without the newline.
func AppendResponse(b []byte, r Response) ([]byte, error) {
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), r.ID...)
	var err error
	if r.Error == nil {
		if b, err = appendLine(append(b, `,"result":`...), r.Result); err != nil {
			return nil, err
		}
		return append(b, '}'), nil
	}
	b = append(strconv.AppendInt(append(b, `,"error":{"code":`...), r.Error.Code, 10), `,"message":`...)
	if b, err = jsontext.AppendQuote(b, r.Error.Message); err != nil {
		return nil, &requestError{"the error's message is not valid UTF-8"}
	}
	if r.Error.Data != nil {
		if b, err = appendLine(append(b, `,"data":`...), r.Error.Data); err != nil {
			return nil, err
		}
	}
	return append(b, "}}"...), nil
}

// appendLine appends v on one line: a line break inside would end the frame and let what follows pass for a message.
func appendLine(b []byte, v jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 && len(v) > 0 {
		return append(b, v...), nil
	}
	c := v.Clone()
	if err := c.Compact(); err != nil {
		return nil, &requestError{"the message's value is not valid JSON"}
	}
	return append(b, c...), nil
}
