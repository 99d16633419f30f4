package cli

import (
	"errors"
	"os"
	"testing"

	"magi-code/internal/provider"
	"magi-code/internal/settings"
	"magi-code/internal/tool"
)

// TestUnsetProvider: Mission Control opens without a model, since servers can be approved and a model chosen there; a
// turn then says how to set one up. Everything else fails at once (R-G1).
func TestUnsetProvider(t *testing.T) {
	a := newApp(&output{File: os.Stdout})
	a.lookup = func(string) (string, bool) { return "", false }
	w := &workshop{servers: servers{folders: folders{home: t.TempDir()}}, settings: settings.Settings{}, scrub: a.scrub}
	if _, _, err := a.provider(w, conversationFlags{}); err == nil {
		t.Error("a run starts without a provider")
	}
	p, model, err := a.provider(w, conversationFlags{interactive: true})
	if err != nil {
		t.Fatal(err)
	}
	w.provider, w.model = p, model
	if w.modelName() != noProvider {
		t.Error(w.modelName())
	}
	for _, err := range p.Stream(t.Context(), provider.Request{}) {
		var e *provider.Error
		if !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("%v", err)
		}
	}
	if _, name, err := a.namedModel(w, "offline/planner"); err != nil || name != offlineModel {
		t.Errorf("%s %v", name, err)
	}
}

// TestToolDigest: the wrapper around a server's schema is no change of its tools (S29).
func TestToolDigest(t *testing.T) {
	one := toolDigest(tool.Tool{Name: "n", Description: "d", Schema: []byte(`{"intent":"old","arguments":{"type":"object"}}`)})
	same := toolDigest(tool.Tool{Name: "n", Description: "d", Schema: []byte(`{"intent":"new","arguments":{"type":"object"}}`)})
	other := toolDigest(tool.Tool{Name: "n", Description: "d", Schema: []byte(`{"intent":"old","arguments":{"type":"array"}}`)})
	if one != same || one == other {
		t.Error(one, same, other)
	}
}
