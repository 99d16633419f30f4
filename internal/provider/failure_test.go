package provider

import (
	"errors"
	"strings"
	"testing"

	"magi-code/internal/secret"
)

func TestParseFailure(t *testing.T) {
	for _, c := range []struct{ body, typ, code, message string }{
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`, "overloaded_error", "", "Overloaded"},
		{`{"error":{"message":"no","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}`, "invalid_request_error", "context_length_exceeded", "no"},
		{`{"error":{"message":"x","code":502}}`, "", "502", "x"},
		{`{"error":"model 'x' not found"}`, "", "", "model 'x' not found"},
		{`{"object":"error","message":"m","type":"BadRequestError","code":400}`, "BadRequestError", "400", "m"},
		{`{"detail":"Not Found"}`, "", "", "Not Found"},
		{`{"detail":[{"loc":["body"],"msg":"field required"}]}`, "", "", "field required"},
		{`[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`, "", "400", "API key not valid"},
		{`{"type":"error","code":"server_error","message":"oops","param":null,"sequence_number":3}`, "", "server_error", "oops"},
		{`{"type":"error","error":null,"message":"a"}`, "", "", "a"},
		{"\xef\xbb\xbf plain words ", "", "", "plain words"},
		{`<html><body>502</body></html>`, "", "", ""},
		{``, "", "", ""},
		{`[]`, "", "", "[]"},
		{`{"error":`, "", "", ""},
		{`null`, "", "", "null"},
	} {
		f := parseFailure([]byte(c.body))
		if f.Type != c.typ || f.Code != c.code || f.Message != c.message {
			t.Errorf("%s: got type %q code %q message %q", c.body, f.Type, f.Code, f.Message)
		}
	}
}

// The shapes in which services say that a conversation is too long. // issue 2, 5
func TestContextOverflow(t *testing.T) {
	e := Endpoint{Name: "p", BaseURL: "http://h"}
	for _, c := range []struct {
		status int
		body   string
	}{
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 199000 + 32000 > 200000"}}`},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`},
		{400, `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}`},
		{500, `{"error":{"code":500,"message":"the request exceeds the available context size, try increasing it","type":"server_error"}}`},
		{400, `{"error":{"code":400,"message":"x","type":"exceed_context_size_error"}}`},
		{400, `{"error":"Trying to keep the first 9000 tokens when context the overflows."}`},
		{400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}]`},
		{400, `{"error":{"message":"Please reduce the length of the messages or completion."}}`},
	} {
		f := parseFailure([]byte(c.body))
		f.Status = c.status
		got := e.Fail(f, "m")
		if !errors.Is(got, ErrContextOverflow) || got.Retryable || got.Hint == "" || !strings.Contains(got.Message, "context window") {
			t.Errorf("%s: %+v", c.body, got)
		}
	}
	for _, f := range []*Failure{
		{Status: 429, Message: "too many tokens per minute"},
		{Type: "rate_limit_error", Message: "too many tokens"},
		{Status: 400, Message: "tools.0.custom.input_schema: invalid"},
		{Status: 503, Message: "context window service is down"},
	} {
		if errors.Is(e.Fail(f, "m"), ErrContextOverflow) {
			t.Errorf("%+v is no overflow", f)
		}
	}
}

func TestFailCures(t *testing.T) {
	e := Endpoint{Name: "anthropic", BaseURL: "https://api.example/v1", Key: secret.New("sk-very-secret"), KeyFrom: "ANTHROPIC_API_KEY", URLFrom: "ANTHROPIC_BASE_URL"}
	for _, c := range []struct {
		f             *Failure
		message, hint string
		retryable     bool
	}{
		{&Failure{Status: 401, Message: "invalid x-api-key"}, "authentication failed (401): invalid x-api-key", "set ANTHROPIC_API_KEY to a valid key", false},
		{&Failure{Status: 404, Message: "model: claude-x"}, `the model "claude-x" was not found (404): model: claude-x`, "--model", false},
		{&Failure{Status: 404, Code: "model_not_found"}, `the model "claude-x" was not found (404)`, "--model", false},
		{&Failure{Status: 404, Message: "404 page not found"}, "https://api.example/v1 has no such API (404): 404 page not found", "set ANTHROPIC_BASE_URL", false},
		{&Failure{Status: 429}, "too many requests (429)", "rate limit", true},
		{&Failure{Status: 429, Code: "insufficient_quota"}, "the account has no credit or quota left (429)", "billing", false},
		{&Failure{Status: 529, Type: "overloaded_error", Message: "Overloaded"}, "the service is overloaded (529): Overloaded", "", true},
		{&Failure{Type: "overloaded_error"}, "the service is overloaded", "", true},
		{&Failure{Status: 503}, "the service failed (503)", "", true},
		{&Failure{Code: "server_error", Message: "oops"}, "the service failed: oops", "", true},
		{&Failure{Status: 400, Message: "tools.0: bad"}, "the service refused the request (400): tools.0: bad", "", false},
		{&Failure{Status: 200, media: "text/html"}, "https://api.example/v1 answered text/html instead of an event stream", "set ANTHROPIC_BASE_URL", false},
		{&Failure{Status: 308, location: "https://b.example/x"}, "redirects to https://b.example/x", "set ANTHROPIC_BASE_URL to that address", false},
		{&Failure{Status: 403}, "the service does not allow this (403)", "may use this model", false},
	} {
		got := e.Fail(c.f, "claude-x")
		if !strings.Contains(got.Message, c.message) || !strings.Contains(got.Hint, c.hint) || (c.hint == "") != (got.Hint == "") || got.Retryable != c.retryable {
			t.Errorf("%+v: got %+v", c.f, got)
		}
	}
}

// Foreign text never carries the key, control characters or more than a few hundred bytes. // S27, S34
func FuzzFailure(f *testing.F) {
	for _, s := range []string{`{"error":{"message":"Incorrect API key provided: sk-very-secret"}}`, `{"error":{"message":"a\u001b[31mb\u202e"}}`,
		`[[[]]]`, `{"error":{"type":7,"code":{},"message":[1]}}`, "<html>", `{"detail":[{"msg":1}]}`, "\x00", strings.Repeat("x", 5000)} {
		f.Add(s, 400)
	}
	e := Endpoint{Name: "p", BaseURL: "http://h", Key: secret.New("sk-very-secret")}
	f.Fuzz(func(t *testing.T, body string, status int) {
		for _, fl := range []*Failure{StreamFailure([]byte(body)), parseFailure([]byte(body))} {
			if fl.Status == 0 {
				fl.Status = status
			}
			got := e.Fail(fl, "m")
			text := got.Error() + got.Hint
			if len(text) > 1500 {
				t.Fatalf("%d bytes", len(text))
			}
			if got.Message == "" {
				t.Fatal("an error without a sentence")
			}
			if strings.Contains(text, "sk-very-secret") {
				t.Fatalf("the key is in %q", text)
			}
			if strings.ContainsAny(text, "\x1b\n\r\x00") || strings.ContainsRune(text, '\u202e') {
				t.Fatalf("control characters in %q", text)
			}
		}
	})
}
