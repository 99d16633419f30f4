// Package openai streams answers of the OpenAI Responses API, and of the Chat Completions API that other services
// and local servers imitate. Bodies and events are our own small types, because they are written and read once per
// round trip, tool schemas have to arrive as they are, and the many dialects of Chat Completions differ from any
// library's types; what is left of a request is one POST and its events.
package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"

	"magi-code/internal/provider"
	"magi-code/internal/secret"
)

const (
	// Name is the provider's name.
	Name = "openai"
	// DefaultURL is where the service is.
	DefaultURL = "https://api.openai.com/v1"
	// maxCacheKey is the length in bytes of the longest prompt_cache_key that the service takes.
	maxCacheKey = 64
	// maxImage is the most bytes of one image that is sent; the service takes 50 MB per request.
	maxImage = 15 << 20
)

// Options say where and as whom to ask. Nothing is read from the environment.
type Options struct {
	Name    string        // Chat only: the provider's name in settings
	BaseURL string        // Responses: empty means DefaultURL
	Key     secret.String // Responses: may be empty only with a BaseURL of one's own
	KeyFrom string        // Chat only: the variable that holds the key, for hints
	HTTP    http.RoundTripper
}

// Responses implements provider.Provider over the Responses API.
type Responses struct {
	endpoint provider.Endpoint
	client   *http.Client
	tools    provider.EncodedTools

	mu    sync.Mutex
	plain map[string]bool // models that refuse to hand out encrypted reasoning
}

// NewResponses makes a provider; it does no I/O. What is wrong with the options is told by the first Stream.
func NewResponses(o Options) *Responses {
	base := strings.TrimRight(strings.TrimSpace(o.BaseURL), "/")
	if base == "" {
		base = DefaultURL
	}
	p := &Responses{plain: map[string]bool{}, endpoint: provider.Endpoint{
		Name: Name, BaseURL: base, Key: secret.New(strings.TrimSpace(o.Key.Reveal())),
		KeyFrom: "OPENAI_API_KEY", URLFrom: "OPENAI_BASE_URL", HTTP: o.HTTP,
	}}
	p.client = p.endpoint.Client()
	return p
}

// Name returns "openai".
func (p *Responses) Name() string { return Name }

// Stream implements provider.Provider.
func (p *Responses) Stream(ctx context.Context, r provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		if err := p.endpoint.Check(); err != nil {
			yield(provider.Event{}, err)
			return
		}
		if p.endpoint.Key.IsEmpty() && p.endpoint.BaseURL == DefaultURL {
			yield(provider.Event{}, p.endpoint.NoKey())
			return
		}
		provider.Retry(ctx, p.endpoint, r.Model, yield, func(ctx context.Context, emit func(provider.Event) bool) error {
			sealed := !p.isPlain(r.Model)
			err := p.attempt(ctx, r, sealed, emit)
			if f, ok := errors.AsType[*provider.Failure](err); ok && sealed && f.Status == http.StatusBadRequest &&
				strings.Contains(strings.ToLower(f.Message), "encrypted content is not supported") {
				p.setPlain(r.Model)
				return p.attempt(ctx, r, false, emit)
			}
			return err
		})
	}
}

func (p *Responses) isPlain(model string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plain[model]
}

func (p *Responses) setPlain(model string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plain[model] = true
}

func (p *Responses) attempt(ctx context.Context, r provider.Request, sealed bool, emit func(provider.Event) bool) error {
	body, err := encodeResponses(r, sealed, &p.tools)
	if err != nil {
		return &provider.Error{Provider: Name, Message: "the conversation cannot be written as a request", Cause: err}
	}
	answer, err := post(ctx, p.client, p.endpoint, "/responses", body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	c := collector{emit: emit}
	for ev, err := range answer.Events() {
		if err != nil {
			return err
		}
		if skipped(ev.Name) {
			continue
		}
		done, err := c.take(ev.Data)
		if err != nil || c.left {
			return err
		}
		if done {
			answer.Finish()
			return nil
		}
	}
	return provider.ErrBroken
}

// post sends a request with the key, where there is one, as a bearer token.
func post(ctx context.Context, client *http.Client, e provider.Endpoint, path string, body []byte) (*provider.Answer, error) {
	header := http.Header{}
	if !e.Key.IsEmpty() {
		header.Set("Authorization", "Bearer "+e.Key.Reveal())
	}
	return provider.Post(ctx, client, e.BaseURL+path, header, body)
}

// skipped names the events that repeat what others say. Those at the start hold every tool of the request.
func skipped(name string) bool {
	switch name {
	case "response.created", "response.in_progress", "response.queued", "response.content_part.added",
		"response.content_part.done", "response.output_text.done", "response.function_call_arguments.delta",
		"response.function_call_arguments.done", "response.output_item.added":
		return true
	}
	return false
}

func cacheKey(key string) string {
	if len(key) <= maxCacheKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
