// Package anthropic streams answers of the Anthropic Messages API. Bodies and events are our own small types, because
// they are written and read once per round trip and tool schemas have to arrive as they are; what is left of a request
// is one POST and its events, so the service's library with its twenty modules is not used.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"strings"

	"magi-code/internal/provider"
	"magi-code/internal/secret"
)

const (
	// Name is the provider's name.
	Name = "anthropic"
	// DefaultURL is where the service is.
	DefaultURL = "https://api.anthropic.com"
	// DefaultMaxTokens bounds one answer when the request does not: every current model allows as much.
	DefaultMaxTokens = 32000
	// maxImage is the most bytes of one image that the service takes (5 MB of base64).
	maxImage = 5 << 20 / 4 * 3
	// version is the version of the API that requests are written in.
	version = "2023-06-01"
)

// Options say where and as whom to ask. Nothing is read from the environment.
type Options struct {
	BaseURL string        // empty: DefaultURL; a /v1 at its end is not needed
	Key     secret.String // may be empty only with a BaseURL of one's own
	HTTP    http.RoundTripper
}

// Provider implements provider.Provider.
type Provider struct {
	endpoint provider.Endpoint
	client   *http.Client
	tools    provider.EncodedTools
}

// New makes a provider; it does no I/O. What is wrong with the options is told by the first Stream.
func New(o Options) *Provider {
	base := strings.TrimRight(strings.TrimSpace(o.BaseURL), "/")
	base = strings.TrimSuffix(base, "/v1")
	if base == "" {
		base = DefaultURL
	}
	p := &Provider{endpoint: provider.Endpoint{
		Name: Name, BaseURL: base, Key: secret.New(strings.TrimSpace(o.Key.Reveal())),
		KeyFrom: "ANTHROPIC_API_KEY", URLFrom: "ANTHROPIC_BASE_URL", HTTP: o.HTTP,
	}}
	p.client = p.endpoint.Client()
	return p
}

// Name returns "anthropic".
func (p *Provider) Name() string { return Name }

// Stream implements provider.Provider.
func (p *Provider) Stream(ctx context.Context, r provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		body, err := p.prepare(r)
		if err != nil {
			yield(provider.Event{}, err)
			return
		}
		provider.Retry(ctx, p.endpoint, r.Model, yield, func(ctx context.Context, emit func(provider.Event) bool) error {
			return p.attempt(ctx, body, emit)
		})
	}
}

func (p *Provider) prepare(r provider.Request) ([]byte, error) {
	if err := p.endpoint.Check(); err != nil {
		return nil, err
	}
	if p.endpoint.Key.IsEmpty() && p.endpoint.BaseURL == DefaultURL {
		return nil, p.endpoint.NoKey()
	}
	body, err := encode(r, &p.tools)
	if err != nil {
		return nil, &provider.Error{Provider: Name, Message: "the conversation cannot be written as a request", Cause: err}
	}
	return body, nil
}

func (p *Provider) attempt(ctx context.Context, body []byte, emit func(provider.Event) bool) error {
	header := http.Header{"Anthropic-Version": {version}}
	if !p.endpoint.Key.IsEmpty() {
		header.Set("X-Api-Key", p.endpoint.Key.Reveal())
	}
	answer, err := provider.Post(ctx, p.client, p.endpoint.BaseURL+"/v1/messages", header, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	c := collector{emit: emit}
	for ev, err := range answer.Events() {
		if err != nil {
			return err
		}
		switch ev.Name {
		case "ping":
			continue
		case "error":
			return provider.StreamFailure(ev.Data)
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
	return c.end()
}
