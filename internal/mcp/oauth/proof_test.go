package oauth

import (
	"net/url"
	"sync"
	"testing"
)

// TestParallelLogins: two logins at once to one server both succeed, each with a verifier and a state of its own. S22.
func TestParallelLogins(t *testing.T) {
	w := newWorld(t, "")
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 2 {
		o := w.o
		o.Confirm = nil
		o.ShowURL = func(u string) {
			mu.Lock()
			defer mu.Unlock()
			q := mustURL(t, u).Query()
			seen[q.Get("code_challenge")], seen[q.Get("state")] = true, true
		}
		wg.Go(func() {
			if err := Login(t.Context(), o); err != nil {
				t.Error(text(err))
			}
		})
	}
	wg.Wait()
	if len(seen) != 4 {
		t.Errorf("challenges and states %v", seen)
	}
	verifiers := map[string]bool{}
	for _, r := range w.as.Requests() {
		if q, err := url.ParseQuery(r.Body); r.Path == "/token" && err == nil {
			verifiers[q.Get("code_verifier")] = true
		}
	}
	if len(verifiers) != 2 {
		t.Errorf("%d verifiers", len(verifiers))
	}
	if s, err := Status(w.o.Options); s != Authenticated || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// TestSharedAuthorizationServer: two servers with one authorization server have a token each, asked for by its own resource, and
// neither token goes to the other. S24.
func TestSharedAuthorizationServer(t *testing.T) {
	one := newWorld(t, "")
	two := newWorld(t, "")
	other := one.o
	other.Server.Name, other.Server.URL = "second", two.o.Server.URL
	other.Server.AuthorizationServer = one.as.Issuer() // the first one's, which knows the resource by its name alone
	if err := Login(t.Context(), one.o); err != nil {
		t.Fatal(text(err))
	}
	if err := Login(t.Context(), other); err != nil {
		t.Fatal(text(err))
	}
	first, err := NewSource(one.o.Options).Header(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewSource(other.Options).Header(t.Context())
	if err != nil || first.Reveal() == second.Reveal() {
		t.Errorf("one token for both: %v", err)
	}
	resources := map[string]int{}
	for _, r := range one.as.Requests() {
		if q, err := url.ParseQuery(r.Body); r.Path == "/token" && err == nil {
			resources[q.Get("resource")]++
		}
	}
	if resources[one.mcp.URL()] != 1 || resources[two.mcp.URL()] != 1 {
		t.Errorf("tokens for %v", resources)
	}
	mixed := other.Options
	mixed.Server.Name = one.o.Server.Name // the second's address under the first's name
	if s, _ := Status(mixed); s != NotAuthenticated {
		t.Errorf("the first's token counts for the second's address: %v", s)
	}
}
