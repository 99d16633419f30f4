package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"magi-code/internal/provider"
	"magi-code/internal/provider/anthropic"
	"magi-code/internal/provider/offline"
	"magi-code/internal/provider/openai"
	"magi-code/internal/safefile"
	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// The models used when neither a flag nor settings.json names one.
const (
	anthropicModel = "claude-sonnet-5-5"
	openaiModel    = "gpt-5.5"
	offlineModel   = "planner"
)

// maxAuthFile bounds auth.json, in bytes.
const maxAuthFile = 64 << 10

// provider chooses by flag, then settings, then by the key that is there. Without any it says what to set;
// the offline planner is never chosen by itself.
func (a *app) provider(w *workshop, o conversationFlags) (provider.Provider, string, error) {
	keys, err := a.keys(w)
	if err != nil {
		return nil, "", err
	}
	name := o.provider
	if name == "" {
		name = w.settings.Provider
	}
	for _, candidate := range []string{"anthropic", "openai"} {
		if k, ok := keys[candidate]; name == "" && ok && !k.IsEmpty() {
			name = candidate
		}
	}
	if name == "" {
		if o.interactive { // there are servers to approve and a model to choose before anything is asked
			return unset{}, "", nil
		}
		return nil, "", hinted(exitProvider, errors.New(noProvider), noProviderHint+", or try the built-in planner with --provider offline")
	}
	return a.makeProvider(w, name, o.model, keys)
}

const (
	noProvider     = "no provider is set up"
	noProviderHint = `set ANTHROPIC_API_KEY or OPENAI_API_KEY, or "endpoints" and "provider" in $MC_HOME/settings.json`
)

// unset stands where no provider is set up: it answers every request with how to set one up.
type unset struct{}

// Name is what is shown of it.
func (unset) Name() string { return "none" }

// Stream fails at once.
func (unset) Stream(context.Context, provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		yield(provider.Event{}, &provider.Error{Provider: "none", Message: noProvider, Hint: noProviderHint + ", or choose the built-in planner with /model"})
	}
}

// modelName is provider and model for display.
func (w *workshop) modelName() string {
	if w.model == "" {
		return noProvider
	}
	return w.provider.Name() + "/" + w.model
}

// namedModel makes the provider of a name such as "openai/gpt-5.5"; a name without a known provider before the slash is a
// model of the present one.
func (a *app) namedModel(w *workshop, name string) (provider.Provider, string, error) {
	keys, err := a.keys(w)
	if err != nil {
		return nil, "", err
	}
	if p, model, ok := strings.Cut(name, "/"); ok {
		_, endpoint := w.settings.Endpoints[p]
		if endpoint || p == "anthropic" || p == "openai" || p == "offline" {
			return a.makeProvider(w, p, model, keys)
		}
	}
	return a.makeProvider(w, w.provider.Name(), name, keys)
}

// makeProvider makes the provider of that name; model "" means its default.
func (a *app) makeProvider(w *workshop, name, model string, keys map[string]secret.String) (provider.Provider, string, error) {
	base := func(variable string) string { v, _ := a.lookup(variable); return v }
	if model == "" && (w.settings.Provider == name || w.settings.Provider == "") {
		model = w.settings.Model
	}
	switch name {
	case "anthropic":
		if keys[name].IsEmpty() {
			return nil, "", missingKey(name, "ANTHROPIC_API_KEY", w.home)
		}
		return anthropic.New(anthropic.Options{Key: keys[name], BaseURL: base("ANTHROPIC_BASE_URL")}), or(model, anthropicModel), nil
	case "openai":
		if keys[name].IsEmpty() {
			return nil, "", missingKey(name, "OPENAI_API_KEY", w.home)
		}
		return openai.NewResponses(openai.Options{Name: name, Key: keys[name], BaseURL: base("OPENAI_BASE_URL")}), or(model, openaiModel), nil
	case "offline":
		return offline.New(), or(model, offlineModel), nil
	}
	e, ok := w.settings.Endpoints[name]
	if !ok {
		known := []string{"anthropic", "openai", "offline"}
		for n := range w.settings.Endpoints {
			known = append(known, n)
		}
		slices.Sort(known)
		return nil, "", hinted(exitUsage, fmt.Errorf("no provider is called %q", untrusted.Line(name)), "there are: "+strings.Join(known, ", ")+"; further ones are \"endpoints\" in $MC_HOME/settings.json")
	}
	key := keys[name]
	if e.APIKeyEnv != "" {
		v, set := a.lookup(e.APIKeyEnv)
		if !set || v == "" {
			return nil, "", missingKey(name, e.APIKeyEnv, w.home)
		}
		key = secret.New(v)
		w.scrub.Add(key)
	}
	if model = or(model, e.Model); model == "" {
		return nil, "", hinted(exitUsage, fmt.Errorf("endpoint %q has no model", name), "pass --model, or set endpoints."+name+".model in $MC_HOME/settings.json")
	}
	return openai.NewChat(openai.Options{Name: name, Key: key, KeyFrom: e.APIKeyEnv, BaseURL: e.BaseURL}), model, nil
}

// keyVariables hold the keys of the providers that need no settings.
func keyVariables() []string {
	return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"}
}

// keys are those of auth.json and, before them, of the environment, by provider.
func (a *app) keys(w *workshop) (map[string]secret.String, error) {
	keys, err := readAuth(filepath.Join(w.home, "auth.json"))
	if err != nil {
		return nil, err
	}
	for variable, name := range map[string]string{"ANTHROPIC_API_KEY": "anthropic", "OPENAI_API_KEY": "openai"} {
		if v, ok := a.lookup(variable); ok && v != "" {
			keys[name] = secret.New(v)
		}
	}
	for _, k := range keys {
		w.scrub.Add(k)
	}
	return keys, nil
}

func missingKey(name, variable, home string) error {
	return hinted(exitProvider, fmt.Errorf("provider %q has no key", name),
		"set "+variable+", or write {\""+name+"\": \"KEY\"} into "+filepath.Join(home, "auth.json")+" with mode 0600")
}

// readAuth reads keys by provider name from auth.json, which must be private. A missing file holds none.
func readAuth(path string) (map[string]secret.String, error) {
	keys := map[string]secret.String{}
	b, err := safefile.ReadPrivate(path, maxAuthFile)
	if errors.Is(err, fs.ErrNotExist) {
		return keys, nil
	}
	if err != nil {
		return nil, hinted(exitConfig, err, "")
	}
	var raw map[string]string
	if json.Unmarshal(b, &raw) != nil { // the error could quote a key
		return nil, hinted(exitConfig, fmt.Errorf("%s is not a JSON object of strings", path), `write it like {"anthropic": "KEY"}`)
	}
	for name, key := range raw {
		keys[name] = secret.New(strings.TrimSpace(key))
	}
	return keys, nil
}
