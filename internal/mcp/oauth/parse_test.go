package oauth

import (
	"strings"
	"testing"
	"time"
)

// TestParseToken: B34.
func TestParseToken(t *testing.T) {
	for _, c := range []struct {
		in       string
		ok       bool
		access   string
		lifetime time.Duration
		code     string
	}{
		{`{"access_token":"a","expires_in":60}`, true, "a", time.Minute, ""},
		{`{"access_token":"a","expires_in":"60"}`, true, "a", time.Minute, ""},
		{`{"access_token":"a","expires_in":60.7}`, true, "a", time.Minute, ""},
		{`{"access_token":"a","expires_in":1e300}`, true, "a", maxExpires * time.Second, ""},
		{`{"access_token":"a","expires_in":-5}`, true, "a", 0, ""},
		{`{"access_token":"a","expires_in":null}`, true, "a", 0, ""},
		{`{"access_token":"a","expires_in":"soon"}`, true, "a", 0, ""},
		{`{"access_token":"a","expires_in":{"x":1}}`, true, "a", 0, ""},
		{`{"access_token":7}`, true, "", 0, ""},
		{`{"error":"x","access_token":"a"}`, true, "a", 0, "x"},
		{`{"error":{"message":"m"}}`, true, "", 0, "error"},
		{`{"error":null,"access_token":"a"}`, true, "a", 0, ""},
		{`{"access_token":"a","access_token":"b"}`, false, "", 0, ""},
		{`access_token=a&expires_in=60`, true, "a", time.Minute, ""},
		{`error=x`, true, "", 0, "x"},
		{`<html>a=b</html>`, false, "", 0, ""},
		{`just=this`, false, "", 0, ""},
		{``, false, "", 0, ""},
		{`[]`, false, "", 0, ""},
	} {
		got, ok := parseToken([]byte(c.in))
		if ok != c.ok || got.access.Reveal() != c.access || got.lifetime != c.lifetime || got.code != c.code {
			t.Errorf("%s: %v %q %v %q", c.in, ok, got.access.Reveal(), got.lifetime, got.code)
		}
	}
}

// FuzzToken: no answer breaks the parser or gives a token that cannot stand in a header.
func FuzzToken(f *testing.F) {
	for _, s := range []string{`{"access_token":"a","expires_in":"60","scope":["x"]}`, `access_token=a&scope=b%20c`, `{"error":{"message":1}}`, `{`, "\xef\xbb\xbf{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := parseToken(b)
		if !ok {
			return
		}
		if a.lifetime < 0 || a.lifetime > maxExpires*time.Second {
			t.Errorf("lifetime %v", a.lifetime)
		}
		if v := a.access.Reveal(); validToken(v) && strings.ContainsAny(v, "\r\n \x00") {
			t.Errorf("token %q", v)
		}
	})
}

// FuzzMetadata: no document breaks discovery, and no endpoint of a plan is anything but https or loopback.
func FuzzMetadata(f *testing.F) {
	for _, s := range []string{
		`{"issuer":"https://a.example","authorization_endpoint":"https://a.example/a","token_endpoint":"https://a.example/t","registration_endpoint":null}`,
		`{"issuer":1,"authorization_endpoint":["x"],"code_challenge_methods_supported":"S256"}`,
		`{"authorization_endpoint":"javascript:x","token_endpoint":"https://u:p@a.example/"}`, `{`, `<html>`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, ok := parseDocument(b)
		if !ok {
			return
		}
		fe := &fetcher{server: mustURL(t, "https://mcp.example.com/mcp")}
		var p plan
		if fe.useMetadata(&p, d) == nil && (p.authorize.Scheme != "https" || p.token.Scheme != "https" || p.register != nil && p.register.Scheme != "https") {
			t.Errorf("%s", b)
		}
		_ = fe.checkResource(d.text("resource"))
		_ = validScopes(d.list("scopes_supported"))
		if strings.ContainsAny(showIssuer(d.text("issuer")), "\x1b\n") {
			t.Errorf("issuer %q", showIssuer(d.text("issuer")))
		}
	})
}
