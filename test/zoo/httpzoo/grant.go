package httpzoo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

func write(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// grant answers a token request in the form of the mode.
func (a *AS) grant(w http.ResponseWriter, t token, again bool) {
	access, refresh := a.mint(t)
	life := a.Lifetime
	if life == 0 {
		life = 3600
	}
	out := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": life, "refresh_token": refresh}
	if t.scope != "" {
		out["scope"] = t.scope
	}
	if a.is("no-refresh") || a.is("keep-refresh") && again {
		delete(out, "refresh_token")
	}
	switch {
	case a.is("expires-string"):
		out["expires_in"] = fmt.Sprint(life)
	case a.is("expires-0"):
		out["expires_in"] = 0
	case a.is("expires-none"):
		delete(out, "expires_in")
	case a.is("expires-odd"):
		out["expires_in"] = "3600abc"
	case a.is("no-type"):
		delete(out, "token_type")
	case a.is("no-access"):
		out["access_token"] = ""
	case a.is("type-mac"):
		out["token_type"] = "mac"
	case a.is("bad-token"):
		out["access_token"] = "a\r\nX-Evil: 1"
	case a.is("scope-odd"):
		out["scope"] = "basic e\x1b[2Jvil \u202eevil " + strings.Repeat(" "+strings.Repeat("long", 256), 200)
	case a.is("error-200"):
		out["error"], out["error_description"] = "bad_verification_code", "expired "+access
	case a.is("form"), a.is("form-plain"):
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
		if a.is("form-plain") {
			w.Header().Set("Content-Type", "text/plain")
		}
		q := url.Values{}
		for k, v := range out {
			q.Set(k, fmt.Sprint(v))
		}
		fmt.Fprint(w, q.Encode())
		return
	}
	write(w, http.StatusOK, out)
}

// resource serves the protected-resource documents on the MCP server, and with meta-none the fixed paths of 2025-03-26.
func (a *AS) resource(w http.ResponseWriter, r *http.Request, origin string) bool {
	if a.is("meta-none") && (r.URL.Path == "/authorize" || r.URL.Path == "/token" || r.URL.Path == "/register") {
		a.ServeHTTP(w, r)
		return true
	}
	if !strings.HasPrefix(r.URL.Path, "/.well-known/") && r.URL.Path != "/odd/place.json" {
		return false
	}
	place := "/.well-known/oauth-protected-resource/mcp"
	switch {
	case a.is("prm-named"):
		place = "/odd/place.json"
	case a.is("prm-root"):
		place = "/.well-known/oauth-protected-resource"
	case a.is("prm-none"):
		place = ""
	}
	if r.URL.Path != place {
		if a.is("meta-html") {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><p>Welcome")
			return true
		}
		http.NotFound(w, r)
		return true
	}
	doc := map[string]any{"resource": origin + "/mcp", "authorization_servers": []string{a.Issuer()}}
	if a.is("prm-root") {
		doc["resource"] = origin
	}
	if a.is("prm-mismatch") {
		doc["resource"] = "https://evil.example.com/mcp"
	}
	if a.is("scope-list") {
		doc["scopes_supported"] = a.Scopes
	}
	write(w, http.StatusOK, doc)
	return true
}

// allowed lets requests with a good token pass, and answers the others.
func (a *AS) allowed(w http.ResponseWriter, r *http.Request, origin, rpc string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	value, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	t, good := a.access[value]
	if !ok || !good {
		w.Header().Set("WWW-Authenticate", a.challenge(origin))
		write(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
		return false
	}
	if rpc != "tools/call" {
		return true
	}
	for _, s := range a.Need {
		if !strings.Contains(" "+t.scope+" ", " "+s+" ") {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, strings.Join(a.Need, " ")))
			w.WriteHeader(http.StatusForbidden)
			return false
		}
	}
	return true
}

func (a *AS) challenge(origin string) string {
	c := `Bearer realm="zoo"`
	switch {
	case a.is("no-challenge"):
		return `Basic realm="zoo"`
	case a.is("prm-named"):
		c += `, resource_metadata="` + origin + `/odd/place.json"`
	case a.is("prm-header"):
		c += `, resource_metadata="` + origin + `/.well-known/oauth-protected-resource/mcp"`
	case a.is("prm-foreign"):
		c += `, resource_metadata="` + a.Target + `"`
	}
	if a.is("scope-header") {
		c += fmt.Sprintf(`, scope=%q`, strings.Join(a.Scopes, " "))
	}
	return c
}
