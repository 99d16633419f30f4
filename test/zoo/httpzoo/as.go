package httpzoo

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// AS is an authorization server. Its Mode is a list of features, separated by spaces; without any it serves RFC 8414
// metadata at its root, registers clients, demands PKCE, rotates refresh tokens, and revokes a whole family of tokens
// when one refresh token comes twice.
//
// Metadata: meta-openid, meta-tenant (issuer with a path, RFC 8414 insertion), meta-tenant-openid, meta-tenant-append,
// meta-none, meta-html (web pages instead of misses), issuer-other, issuer-slash, no-s256, silent-pkce, grants-other,
// iss, iss-wrong, iss-missing, iss-slash, offline.
// Resource: prm-named (in the challenge, at an odd place), prm-header, prm-root, prm-none, prm-mismatch, prm-foreign,
// scope-header, scope-list, no-challenge.
// Registration: no-registration, registration-null, registration-200, registration-error, auth-basic, auth-post,
// secret-huge.
// Tokens: expires-string, expires-0, expires-none, expires-odd, error-200, form, form-plain, no-type, no-access,
// type-mac, bad-token, scope-odd, no-refresh, keep-refresh, token-503, denied.
// Redirects to Target: redirect-meta, redirect-register, redirect-token.
type AS struct {
	Mode     string
	Target   string
	Lifetime int      // seconds of access tokens; 0 is an hour
	Scopes   []string // scopes_supported of the resource, and in the challenge with scope-header
	Need     []string // scopes that tools/call needs
	Delay    time.Duration

	mu       sync.Mutex
	log      []Request
	codes    map[string]url.Values // code -> authorization request
	access   map[string]token
	refresh  map[string]token
	spent    map[string]token
	serial   int
	refusals int
	srv      *httptest.Server
}

type token struct {
	family int
	scope  string
}

// StartAS serves a mode on loopback until Close.
func StartAS(mode string) *AS { return StartASWith(&AS{Mode: mode}) }

// StartASWith serves a, whose fields may be set.
func StartASWith(a *AS) *AS {
	a.codes, a.access, a.refresh, a.spent = map[string]url.Values{}, map[string]token{}, map[string]token{}, map[string]token{}
	a.srv = httptest.NewServer(a)
	return a
}

// Close ends the server.
func (a *AS) Close() {
	a.srv.CloseClientConnections()
	a.srv.Close()
}

// Origin is scheme, host and port.
func (a *AS) Origin() string { return a.srv.URL }

func (a *AS) is(feature string) bool { return slices.Contains(strings.Fields(a.Mode), feature) }

// Issuer is the issuer as the resource names it.
func (a *AS) Issuer() string {
	if strings.Contains(a.Mode, "meta-tenant") {
		return a.srv.URL + "/tenant1"
	}
	return a.srv.URL
}

// SetMode changes the features of a server that runs.
func (a *AS) SetMode(mode string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Mode = mode
}

// Requests returns what was recorded so far.
func (a *AS) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.log)
}

// Count is how many requests there were to a path.
func (a *AS) Count(path string) (n int) {
	for _, r := range a.Requests() {
		if r.Path == path {
			n++
		}
	}
	return n
}

// Refusals is how many refreshes were refused.
func (a *AS) Refusals() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refusals
}

// Mint gives out tokens without a login.
func (a *AS) Mint(scope string) (access, refresh string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serial++
	return a.mint(token{family: a.serial, scope: scope})
}

// mint makes the tokens of a family. The caller holds the lock.
func (a *AS) mint(t token) (access, refresh string) {
	a.serial++
	access, refresh = fmt.Sprintf("zoo-access-%d", a.serial), fmt.Sprintf("zoo-refresh-%d", a.serial)
	a.access[access], a.refresh[refresh] = t, t
	return access, refresh
}

// Revoke makes every access token void; refresh tokens stay.
func (a *AS) Revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
}

// ServeHTTP serves metadata, registration, authorization and tokens.
func (a *AS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = append(a.log, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Host, r.Header.Clone(), string(body), "", time.Now()})
	switch r.URL.Path {
	case "/authorize":
		a.authorize(w, r)
	case "/token":
		a.token(w, r, string(body))
	case "/register":
		a.register(w, body)
	default:
		a.metadata(w, r)
	}
}

func (a *AS) redirect(w http.ResponseWriter, feature string) bool {
	if !a.is(feature) {
		return false
	}
	w.Header().Set("Location", a.Target)
	w.WriteHeader(http.StatusTemporaryRedirect)
	return true
}

func (a *AS) metadata(w http.ResponseWriter, r *http.Request) {
	if a.redirect(w, "redirect-meta") {
		return
	}
	place := "/.well-known/oauth-authorization-server"
	switch {
	case a.is("meta-openid"):
		place = "/.well-known/openid-configuration"
	case a.is("meta-tenant"):
		place += "/tenant1"
	case a.is("meta-tenant-openid"):
		place = "/.well-known/openid-configuration/tenant1"
	case a.is("meta-tenant-append"):
		place = "/tenant1/.well-known/openid-configuration"
	case a.is("meta-none"):
		place = ""
	}
	if r.URL.Path != place {
		if a.is("meta-html") {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><p>Welcome")
			return
		}
		http.NotFound(w, r)
		return
	}
	write(w, http.StatusOK, a.describe())
}

// describe is the metadata document.
func (a *AS) describe() map[string]any {
	issuer := a.Issuer()
	switch {
	case a.is("issuer-other"):
		issuer = "https://other.example.com"
	case a.is("issuer-slash"):
		issuer += "/"
	}
	doc := map[string]any{
		"issuer": issuer, "authorization_endpoint": a.srv.URL + "/authorize", "token_endpoint": a.srv.URL + "/token",
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported": []string{"plain", "S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		"authorization_response_iss_parameter_supported": a.is("iss") || a.is("iss-missing") || a.is("iss-wrong") || a.is("iss-slash"),
	}
	switch {
	case a.is("auth-basic"):
		doc["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	case a.is("auth-post"):
		doc["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
	}
	switch {
	case a.is("no-s256"):
		doc["code_challenge_methods_supported"] = []string{"plain"}
	case a.is("silent-pkce"):
		delete(doc, "code_challenge_methods_supported")
	case a.is("grants-other"):
		doc["grant_types_supported"] = []string{"client_credentials"}
	}
	switch {
	case a.is("registration-null"):
		doc["registration_endpoint"] = nil
	case !a.is("no-registration"):
		doc["registration_endpoint"] = a.srv.URL + "/register"
	}
	if a.is("offline") {
		doc["scopes_supported"] = []string{"a", "offline_access"}
	}
	return doc
}

func (a *AS) register(w http.ResponseWriter, body []byte) {
	if a.redirect(w, "redirect-register") {
		return
	}
	if a.is("registration-error") {
		write(w, http.StatusBadRequest, map[string]any{"error": "invalid_redirect_uri", "error_description": "not \x1b[31mthat\x1b[0m one"})
		return
	}
	var ask map[string]any
	_ = json.Unmarshal(body, &ask)
	out := map[string]any{"client_id": "zoo-client", "redirect_uris": ask["redirect_uris"]}
	if a.is("auth-basic") || a.is("auth-post") {
		out["client_secret"] = "zoo-client-secret+/="
	}
	if a.is("secret-huge") {
		out["client_secret"] = strings.Repeat("zoo-secret", 50<<10)
	}
	code := http.StatusCreated
	if a.is("registration-200") {
		code = http.StatusOK
	}
	write(w, code, out)
}

// authorize consents at once and goes back to the redirect URI.
func (a *AS) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	to, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("response_type") != "code" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if a.is("denied") {
		back.Set("error", "access_denied")
		back.Set("error_description", "the user \x1b[31msaid\x1b[0m <b>no</b>")
	} else {
		a.serial++
		code := fmt.Sprintf("zoo-code-%d", a.serial)
		a.codes[code] = q
		back.Set("code", code)
	}
	switch {
	case a.is("iss"):
		back.Set("iss", a.Issuer())
	case a.is("iss-wrong"):
		back.Set("iss", "https://evil.example.com")
	case a.is("iss-slash"):
		back.Set("iss", a.Issuer()+"/")
	}
	to.RawQuery = back.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

func (a *AS) token(w http.ResponseWriter, r *http.Request, body string) {
	if a.redirect(w, "redirect-token") {
		return
	}
	if a.Delay > 0 {
		<-time.After(a.Delay)
	}
	q, _ := url.ParseQuery(body)
	id, pass, basic := r.BasicAuth()
	switch {
	case a.is("token-503"):
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case a.is("auth-basic") && (!basic || id != "zoo-client" || pass != url.QueryEscape("zoo-client-secret+/=")),
		a.is("auth-post") && q.Get("client_secret") != "zoo-client-secret+/=":
		a.refuse(w, "invalid_client")
		return
	}
	var t token
	switch q.Get("grant_type") {
	case "authorization_code":
		asked, ok := a.codes[q.Get("code")]
		delete(a.codes, q.Get("code"))
		sum := sha256.Sum256([]byte(q.Get("code_verifier")))
		if !ok || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != q.Get("redirect_uri") ||
			asked.Get("resource") != q.Get("resource") || asked.Get("client_id") != q.Get("client_id") && !basic {
			a.refuse(w, "invalid_grant")
			return
		}
		a.serial++
		t = token{family: a.serial, scope: asked.Get("scope")}
	case "refresh_token":
		old := q.Get("refresh_token")
		if again, ok := a.spent[old]; ok { // a token that came twice was stolen: nobody of its family is trusted any more
			revoke(a.access, again.family)
			revoke(a.refresh, again.family)
		}
		found, ok := a.refresh[old]
		if !ok {
			a.refusals++
			a.refuse(w, "invalid_grant")
			return
		}
		t = found
		if !a.is("keep-refresh") {
			delete(a.refresh, old)
			a.spent[old] = t
		}
	default:
		a.refuse(w, "unsupported_grant_type")
		return
	}
	a.grant(w, t, q.Get("grant_type") == "refresh_token")
}

func revoke(m map[string]token, family int) {
	for k, t := range m {
		if t.family == family {
			delete(m, k)
		}
	}
}

func (a *AS) refuse(w http.ResponseWriter, code string) {
	write(w, http.StatusBadRequest, map[string]any{"error": code})
}
