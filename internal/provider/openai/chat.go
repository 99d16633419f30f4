package openai

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"

	"magi-code/internal/provider"
	"magi-code/internal/secret"
)

// Chat implements provider.Provider over Chat Completions, as Ollama, vLLM, LM Studio, OpenRouter, llama.cpp and many
// others serve them. It is made for their differences: fields may be missing, null or of another type.
type Chat struct {
	endpoint provider.Endpoint
	client   *http.Client
	tools    provider.EncodedTools
	noUsage  atomic.Bool // the endpoint refused stream_options
}

// NewChat makes a provider of an endpoint from the settings; it does no I/O. What is wrong with the options is told
// by the first Stream.
func NewChat(o Options) *Chat {
	base := strings.TrimRight(strings.TrimSpace(o.BaseURL), "/")
	base = strings.TrimSuffix(base, "/chat/completions")
	p := &Chat{endpoint: provider.Endpoint{
		Name: o.Name, BaseURL: base, Key: secret.New(strings.TrimSpace(o.Key.Reveal())),
		KeyFrom: o.KeyFrom, URLFrom: "the base URL of provider " + o.Name + " in the settings", HTTP: o.HTTP,
	}}
	p.client = p.endpoint.Client()
	return p
}

// Name returns the name from the options.
func (p *Chat) Name() string { return p.endpoint.Name }

// Stream implements provider.Provider.
func (p *Chat) Stream(ctx context.Context, r provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		if err := p.endpoint.Check(); err != nil {
			yield(provider.Event{}, err)
			return
		}
		provider.Retry(ctx, p.endpoint, r.Model, yield, func(ctx context.Context, emit func(provider.Event) bool) error {
			usage := !p.noUsage.Load()
			err := p.attempt(ctx, r, usage, emit)
			if f, ok := errors.AsType[*provider.Failure](err); ok && usage && (f.Status == http.StatusBadRequest ||
				f.Status == http.StatusUnprocessableEntity) && strings.Contains(f.Message, "stream_options") {
				p.noUsage.Store(true)
				return p.attempt(ctx, r, false, emit)
			}
			return err
		})
	}
}

func (p *Chat) attempt(ctx context.Context, r provider.Request, usage bool, emit func(provider.Event) bool) error {
	body, err := encodeChat(r, p.endpoint.Name, usage, &p.tools)
	if err != nil {
		return &provider.Error{Provider: p.endpoint.Name, Message: "the conversation cannot be written as a request", Cause: err}
	}
	answer, err := post(ctx, p.client, p.endpoint, "/chat/completions", body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	c := chatCollector{emit: emit, origin: p.endpoint.Name, turn: len(r.Messages)}
	for ev, err := range answer.Events() {
		if err != nil {
			return err
		}
		if bytes.HasPrefix(ev.Data, []byte("[DONE]")) {
			answer.Finish()
			return c.end(true)
		}
		if err := c.take(ev.Data); err != nil || c.left {
			return err
		}
	}
	return c.end(false) // some servers close the stream without [DONE]
}
