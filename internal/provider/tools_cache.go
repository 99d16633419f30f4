package provider

import (
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxEncodedTools is how many encoded tool lists are kept: those of a conversation and of its subagents at one time.
const maxEncodedTools = 8

// EncodedTools keeps tool lists as they are sent, by cache key: within a turn they are the same in every request, and
// encoding two hundred schemas anew costs more than all the rest of a request. The zero value is ready; its methods may
// be called concurrently.
type EncodedTools struct {
	mu   sync.Mutex
	kept map[string]jsontext.Value
}

// Get returns the encoded list of a request, making it when it is not kept. A request without a cache key is encoded each time.
func (e *EncodedTools) Get(r Request, encode func() (jsontext.Value, error)) (jsontext.Value, error) {
	if r.CacheKey == "" {
		return encode()
	}
	key := strconv.Itoa(len(r.Tools)) + " " + r.CacheKey
	e.mu.Lock()
	raw, ok := e.kept[key]
	e.mu.Unlock()
	if ok {
		return raw, nil
	}
	raw, err := encode()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kept == nil || len(e.kept) >= maxEncodedTools {
		e.kept = map[string]jsontext.Value{}
	}
	e.kept[key] = raw
	return raw, nil
}

// WithTools puts an encoded tool list into an encoded body, which must be an object with at least one member; an empty list
// leaves the body as it is.
func WithTools(body []byte, tools jsontext.Value) []byte {
	if len(tools) == 0 {
		return body
	}
	out := make([]byte, 0, len(body)+len(tools)+len(`{"tools":,`))
	out = append(out, `{"tools":`...)
	out = append(out, tools...)
	out = append(out, ',')
	return append(out, body[1:]...)
}
