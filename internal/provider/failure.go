package provider

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Failure is what a service said instead of an answer, or in the middle of one. It holds foreign text as it came:
// only Endpoint.Fail turns it into something to show.
type Failure struct {
	Status  int    // HTTP status, or the code of an error in a stream; 0 when unknown
	Type    string // "overloaded_error", "invalid_request_error", ...
	Code    string // "context_length_exceeded", ...
	Message string

	media       string
	location    string // of a redirect, made safe
	retryAfter  time.Duration
	shouldRetry string // what the service says about trying again: "true", "false" or nothing
}

// Error says that the service refused; never the foreign text.
func (f *Failure) Error() string { return "the service answered status " + strconv.Itoa(f.Status) }

// StreamFailure reads an error event of a stream, in any of the shapes of error bodies.
func StreamFailure(data []byte) *Failure {
	f := parseFailure(data)
	if n, err := strconv.Atoi(f.Code); err == nil && n >= 400 && n < 600 {
		f.Status = n
	}
	return f
}

// parseFailure finds type, code and message in the body of an error. The services and the servers that imitate
// them use: {"error":{...}}, {"error":"text"}, {"message":...}, {"detail":"text"}, {"detail":[{"msg":...}]},
// {"type":"error","code":...,"message":...}, an array around one of these, plain text, and HTML.
func parseFailure(body []byte) *Failure {
	f := &Failure{}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if len(body) == 0 {
		return f
	}
	if body[0] == '[' {
		var list []jsontext.Value
		if json.Unmarshal(body, &list, lenient()) == nil && len(list) > 0 {
			body = list[0]
		}
	}
	if body[0] != '{' {
		if body[0] != '<' {
			f.Message = string(body)
		}
		return f
	}
	members := object(body)
	if inner := members["error"]; inner.Kind() == '{' {
		f.fill(object(inner))
	} else {
		f.Message = text(inner)
	}
	outer := Failure{}
	outer.fill(members)
	if f.Message == "" {
		f.Message = outer.Message
	}
	if f.Code == "" {
		f.Code = outer.Code
	}
	if f.Type == "" && outer.Type != "error" && outer.Type != "response.failed" {
		f.Type = outer.Type
	}
	return f
}

func (f *Failure) fill(m map[string]jsontext.Value) {
	f.Type, f.Code, f.Message = text(m["type"]), text(m["code"]), text(m["message"])
	detail := m["detail"]
	if f.Message != "" || detail == nil {
		return
	}
	if detail.Kind() != '[' {
		f.Message = text(detail)
		return
	}
	var list []jsontext.Value
	if json.Unmarshal(detail, &list, lenient()) == nil && len(list) > 0 {
		f.Message = text(object(list[0])["msg"])
	}
}

// lenient is how error bodies are read: they only become a message, so a sloppy one is better than none.
func lenient() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func object(v jsontext.Value) map[string]jsontext.Value {
	var m map[string]jsontext.Value
	if v.Kind() != '{' || json.Unmarshal(v, &m, lenient()) != nil {
		return nil
	}
	return m
}

// text is the text of a string or number, and nothing for everything else.
func text(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		var s string
		if json.Unmarshal(v, &s, lenient()) == nil {
			return s
		}
	case '0':
		return string(v)
	}
	return ""
}

// isOverflow reports whether the service says that the conversation is too long for the model. Codes are few; most
// servers have only words, so the words of those that matter are listed.
func (f *Failure) isOverflow() bool {
	switch f.Code {
	case "context_length_exceeded", "model_context_window_exceeded", "string_above_max_length":
		return true
	}
	switch f.Type {
	case "context_length_exceeded", "exceed_context_size_error", "request_too_large":
		return true
	}
	switch {
	case f.Status == 413:
		return true
	case strings.Contains(f.Type+f.Code, "rate_limit"):
		return false
	case f.Status != 0 && f.Status/100 != 2 && f.Status != 400 && f.Status != 422 && f.Status != 500: // llama.cpp: 500
		return false
	}
	return containsAny(strings.ToLower(f.Message),
		"prompt is too long",                // Anthropic
		"exceed context limit",              // Anthropic, output limit included
		"context window",                    // OpenAI, LM Studio
		"maximum context length",            // OpenAI, vLLM, OpenRouter
		"maximum prompt length",             // xAI
		"available context size",            // llama.cpp
		"context length",                    // Ollama, LM Studio
		"context the overflows",             // LM Studio
		"input token count",                 // Gemini
		"input is too long",                 // Bedrock
		"reduce the length of the messages", // Groq
		"too many tokens",
	)
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// isPassing reports whether the same request may succeed a little later.
func (f *Failure) isPassing() bool {
	if f.isQuota() {
		return false
	}
	switch f.shouldRetry {
	case "true":
		return true
	case "false":
		return false
	}
	switch f.Type {
	case "overloaded_error", "rate_limit_error", "api_error", "timeout_error":
		return true
	}
	switch f.Code {
	case "server_error", "rate_limit_exceeded", "overloaded", "server_overloaded":
		return true
	}
	return f.Status == 408 || f.Status == 409 || f.Status == 429 || f.Status >= 500
}

func (f *Failure) isQuota() bool {
	return f.Status == 402 || f.Type == "billing_error" ||
		f.Code == "insufficient_quota" || f.Type == "insufficient_quota" || f.Code == "billing_hard_limit_reached"
}
