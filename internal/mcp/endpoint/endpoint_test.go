package endpoint

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"syscall"
	"testing"
)

// TestParse: S14, R-C8.
func TestParse(t *testing.T) {
	for raw, ok := range map[string]bool{
		"https://example.com/mcp":          true,
		"https://EXAMPLE.com:8443/mcp?k=v": true,
		"http://localhost/":                true,
		"http://LOCALHOST:3000/mcp":        true,
		"hTTp://localhost/":                true,
		"http://127.0.0.1:1/":              true,
		"http://127.9.8.7/":                true,
		"http://[::1]:80/":                 true,
		"http://example.com/":              false,
		"hTTp://evil.example/":             false,
		"http://localhost.evil/":           false,
		"http://localhost./":               false,
		"http://127.0.0.1.nip.io/":         false,
		"http://0.0.0.0/":                  false,
		"http://[::]/":                     false,
		"http://[::ffff:127.0.0.1]/":       false,
		"http://[::1%25lo]/":               false,
		"http://2130706433/":               false,
		"http://0x7f.1/":                   false,
		"http://127.1/":                    false,
		"http://127.0.0.01/":               false,
		"http://127.0.0.1@evil.example/":   false,
		"https://user:pw@example.com/":     false,
		"https://user@example.com/":        false,
		"https:///mcp":                     false,
		"https:example.com":                false,
		"https://:443/":                    false,
		"file:///etc/passwd":               false,
		"javascript:alert(1)":              false,
		"ws://localhost/":                  false,
		"//example.com/":                   false,
		"/mcp":                             false,
		"":                                 false,
		" https://example.com/":            false,
		"https://example.com/\nX":          false,
		"https://example.com/\x00":         false,
		"https://exa mple.com/":            false,
		"https://[::1/":                    false,
		"https://example.com/%zz":          false,
		"https://a.example/" + strings.Repeat("x", MaxURL): false,
	} {
		u, err := Parse(raw)
		if (err == nil) != ok {
			t.Errorf("%.60q: %v", raw, err)
		}
		if err == nil && (u.Fragment != "" || u.Host != strings.ToLower(u.Host)) {
			t.Errorf("%q: %+v", raw, u)
		}
	}
	if u, err := Parse("https://example.com/a#frag"); err != nil || u.String() != "https://example.com/a" {
		t.Error(u, err)
	}
	if _, err := Parse("https://example.com/%zz?canary"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
}

// FuzzParse: what is accepted is https or loopback, and neither its display nor its error tells a query or an escape.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"https://a.example/x?y#z", "http://localhost:1", "http://[::1]/", "https://u:p@h/", "https://h/\x1b[31m", "https://\xd2\xd2", "https://\u212a.example/",
		"https://" + strings.Repeat("é", MaxURL/3)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := Parse(raw)
		if err != nil {
			if len(raw) > 12 && strings.Contains(err.Error(), raw) {
				t.Errorf("the error tells the URL: %v", err)
			}
			return
		}
		if u.Scheme != "https" && (u.Scheme != "http" || !IsLoopback(u)) || u.User != nil || u.Fragment != "" {
			t.Errorf("%q accepted as %q", raw, u)
		}
		if s := Show(u); strings.ContainsAny(s, "?#\x1b\n\r\x00") {
			t.Errorf("shown as %q", s)
		}
		if again, err := Parse(u.String()); err != nil || again.Host != u.Host {
			t.Errorf("%q: %v", u, err)
		}
	})
}

// TestOrigin: default ports and case do not matter.
func TestOrigin(t *testing.T) {
	for raw, want := range map[string]string{
		"https://A.example:443/x": "https://a.example", "https://a.example:8443": "https://a.example:8443", "http://localhost:80/": "http://localhost", "https://[FD00::1]:444/": "https://[fd00::1]:444",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := Origin(u); got != want {
			t.Errorf("%s: %s", raw, got)
		}
	}
}

// TestSameOrigin: only this machine has several names.
func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"https://a.example/x", "https://A.example:443/y", true},
		{"http://localhost:3000/", "http://127.0.0.1:3000/mcp", true},
		{"http://[::1]/", "http://localhost:80/", true},
		{"http://localhost:3000/", "http://127.0.0.1:3001/", false},
		{"http://localhost:443/", "https://127.0.0.1/", false},
		{"https://a.example/", "https://b.example/", false},
		{"https://a.example/", "http://a.example/", false},
		{"https://localhost.evil/", "https://localhost/", false},
	} {
		a, _ := url.Parse(c.a)
		b, _ := url.Parse(c.b)
		if SameOrigin(a, b) != c.same || SameOrigin(b, a) != c.same {
			t.Errorf("%s and %s", a, b)
		}
	}
}

// TestOnlyLoopback: localhost that resolves elsewhere is refused before a byte is sent. S14.
func TestOnlyLoopback(t *testing.T) {
	for addr, ok := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "127.8.8.8:1": true, "93.184.216.34:80": false, "[2001:db8::1]:80": false, "0.0.0.0:80": false, "10.0.0.1:80": false, "nonsense": false} {
		if err := onlyLoopback("tcp", addr, nil); (err == nil) != ok || err != nil && !errors.Is(err, ErrOffLoopback) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// TestTransport: a refused URL causes no request, a redirect is only an answer. R-H5, S14, S15.
func TestTransport(t *testing.T) {
	hits := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		http.Redirect(w, r, "/other?secret=canary#x", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	tr := NewTransport()
	defer tr.CloseIdleConnections()
	u, _ := url.Parse(srv.URL)
	for _, raw := range []string{"http://example.com/", "http://user@" + u.Host + "/"} {
		bad, _ := url.Parse(raw)
		if _, err := tr.RoundTrip((&http.Request{Method: "POST", URL: bad, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x"))}).WithContext(t.Context())); err == nil || hits != 0 {
			t.Errorf("%s: %v", raw, err)
		}
	}
	u.Host = strings.Replace(u.Host, "127.0.0.1", "localhost", 1)
	resp, err := tr.RoundTrip((&http.Request{Method: "GET", URL: u, Host: u.Host, Header: http.Header{}}).WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if to := Redirect(resp, u); !IsRedirect(resp.StatusCode) || hits != 1 || to != "http://"+u.Host+"/other" {
		t.Errorf("%d to %q, %d hits", resp.StatusCode, to, hits)
	}
}

// TestRedirect: whatever stands in Location is shown without its query, or not at all.
func TestRedirect(t *testing.T) {
	from, _ := url.Parse("https://a.example/mcp?k=canary")
	for location, want := range map[string]string{
		"/mcp/": "https://a.example/mcp/", "https://b.example/x?canary": "https://b.example/x", "https://u:canary@b.example/": "https://b.example/", "": "a place that is no URL", "::": "a place that is no URL",
		"javascript:canary": "a place that is no URL",
	} {
		if got := Redirect(&http.Response{Header: http.Header{"Location": {location}}}, from); got != want {
			t.Errorf("%q: %q", location, got)
		}
	}
}

// TestReadBody: the bound is on what comes out, not on what comes in. R-H7, X6.
func TestReadBody(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb", "/zip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			if r.URL.Path == "/bomb" {
				_, _ = z.Write(bytes.Repeat([]byte("x"), 1<<20))
			}
			_, _ = z.Write([]byte("end"))
			_ = z.Close()
		case "/br":
			w.Header().Set("Content-Encoding", "br")
		case "/long":
			_, _ = w.Write(bytes.Repeat([]byte("x"), 2000))
		case "/chunked":
			for range 20 {
				_, _ = w.Write(bytes.Repeat([]byte("x"), 100))
				_ = http.NewResponseController(w).Flush()
			}
		default:
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1000))
		}
	}))
	defer srv.Close()
	tr := NewTransport()
	defer tr.CloseIdleConnections()
	for path, want := range map[string]error{"/": nil, "/zip": nil, "/bomb": ErrTooLarge, "/long": ErrTooLarge, "/chunked": ErrTooLarge, "/br": errEncoding} {
		u, _ := url.Parse(srv.URL + path)
		resp, err := tr.RoundTrip((&http.Request{Method: "GET", URL: u, Host: u.Host, Header: http.Header{}}).WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := ReadBody(resp, 1000); !errors.Is(err, want) || len(b) > 1000 {
			t.Errorf("%s: %d bytes, %v", path, len(b), err)
		}
		_ = resp.Body.Close()
	}
}

// TestMedia: B25.
func TestMedia(t *testing.T) {
	for v, want := range map[string]string{
		"application/json": "application/json", "Application/JSON;Charset=UTF-8": "application/json", "text/event-stream ; x": "text/event-stream", "text/html; charset": "text/html", "": "", "; q=1": "", "text": "text",
	} {
		if got := Media(http.Header{"Content-Type": {v}}); got != want {
			t.Errorf("%q: %q", v, got)
		}
	}
}

// TestDescribe: the errors of net/http hold URLs and proxies; ours do not. Rule 10.
func TestDescribe(t *testing.T) {
	op := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("strange \x1b[31mthing")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&url.Error{Op: "Post", URL: "https://a.example/?canary", Err: io.EOF}, "closed the connection"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "timed out"},
		{context.Canceled, "canceled"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "refused"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "reset"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "canary.example", IsNotFound: true}}, "does not resolve"},
		{&net.OpError{Op: "dial", Err: ErrOffLoopback}, "not loopback"},
		{op, "dial: strange thing"},
		{&net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, "the proxy: connection refused"},
		{fmt.Errorf("transport connection broken: %w", textproto.ProtocolError(`malformed MIME header line: "Location: https://a.example/?canary"`)), "not valid HTTP"},
		{errors.New(strings.Repeat("x", 5000)), "xxx"},
	} {
		if got := Describe(c.err); !strings.Contains(got, c.want) || strings.Contains(got, "canary") || strings.Contains(got, "\x1b") || len(got) > 400 {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}

// TestChallenges: what can be understood is, whatever stands beside it.
func TestChallenges(t *testing.T) {
	for _, c := range []struct {
		in   []string
		want string // parameters of the bearer challenge, as fmt prints a map
	}{
		{[]string{`Bearer`}, "map[]"},
		{[]string{`Bearer realm="x", scope="a b", resource_metadata="https://a/b"`}, "map[realm:x resource_metadata:https://a/b scope:a b]"},
		{[]string{`bearer SCOPE=a,error=insufficient_scope`}, "map[error:insufficient_scope scope:a]"},
		{[]string{`Basic realm="a, Bearer scope=x", Bearer scope="y"`}, "map[scope:y]"},
		{[]string{`Negotiate YWJj==, Bearer scope="y"`}, "map[scope:y]"},
		{[]string{`Basic realm="x"`, `Bearer scope="y"`}, "map[scope:y]"},
		{[]string{`Bearer scope="a\"b"`}, `map[scope:a"b]`},
		{[]string{`Bearer scope="open`}, "map[scope:open]"},
		{[]string{`Bearer scope = "a" , x = y`}, "map[scope:a x:y]"},
		{[]string{`Bearer scope="first", scope="second"`}, "map[scope:first]"},
		{[]string{`,,, Bearer ,,scope=a,,`}, "map[scope:a]"},
		{[]string{`"odd" Bearer scope=a`}, "map[scope:a]"},
		{[]string{`Basic realm="x"`}, "map[]"},
		{[]string{``}, "map[]"},
		{nil, "map[]"},
	} {
		if got := fmt.Sprint(Bearer(c.in)); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
}

// FuzzChallenge: no header breaks the parser or makes it keep more than it was given.
func FuzzChallenge(f *testing.F) {
	for _, s := range []string{`Bearer realm="x", scope="a b"`, `Basic a==, Bearer b="\"`, `,=,"`, "Bearer \x00=\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		kept := 0
		for _, c := range ParseChallenges([]string{s, s}) {
			kept += len(c.Scheme)
			for k, v := range c.Params {
				kept += len(k) + len(v)
				if k != strings.ToLower(k) {
					t.Errorf("name %q", k)
				}
			}
		}
		if kept > 4*len(s)+16 {
			t.Errorf("kept %d of %d", kept, len(s))
		}
	})
}
