package oauth

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/endpoint"
	"magi-code/internal/secret"
)

const (
	maxDocument  = 1 << 20          // bytes of a metadata document or answer, after decompression
	fetchTimeout = 10 * time.Second // of one document
	maxFetches   = 24               // of one login: all well-known places of a server and of a few issuers
)

// fetcher sends the requests of one login or refresh. It follows no redirect, for it works on the round tripper, and
// sends no configured header.
type fetcher struct {
	rt     http.RoundTripper
	own    *endpoint.Transport
	server *url.URL // the MCP endpoint: it decides which addresses may be contacted
	pinned string   // origin of the configured authorization server: the user's word lets it be anywhere
	left   int
	limit  time.Duration // of one fetch
}

func newFetcher(o Options) (*fetcher, error) {
	u, err := endpoint.Parse(o.Server.URL.Reveal())
	if err != nil {
		return nil, &Error{Text: err.Error()}
	}
	f := &fetcher{rt: o.HTTP, server: u, left: maxFetches, limit: fetchTimeout}
	if o.Server.AuthorizationServer != "" {
		as, err := endpoint.Parse(o.Server.AuthorizationServer)
		if err != nil {
			return nil, &Error{Text: `"authorization_server" cannot be used: ` + err.Error()}
		}
		f.pinned = endpoint.Origin(as)
	}
	if f.rt == nil {
		f.own = endpoint.NewTransport()
		f.rt = f.own
	}
	return f, nil
}

func (f *fetcher) close() {
	if f.own != nil {
		f.own.CloseIdleConnections()
	}
}

// parse checks a URL that the server or a document named: https, or loopback when the server itself is there; no address
// inside networks that the server is not in itself.
func (f *fetcher) parse(raw string) (*url.URL, error) {
	u, err := endpoint.Parse(raw)
	if err != nil {
		return nil, err
	}
	if endpoint.Origin(u) == f.pinned {
		return u, nil
	}
	if endpoint.IsLoopback(u) && !endpoint.IsLoopback(f.server) {
		return nil, errors.New("the URL points to this machine, and the server is not on it")
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return u, nil
	}
	a = a.Unmap().WithZone("")
	own, _ := netip.ParseAddr(f.server.Hostname())
	switch {
	case a.IsLoopback() && endpoint.IsLoopback(f.server):
		return u, nil
	case a.IsLinkLocalUnicast(), a.IsUnspecified(), a.IsMulticast(), a.IsLoopback():
		return nil, errors.New("the URL points to an address that no authorization server has")
	case a.IsPrivate() && !own.IsPrivate() && !endpoint.IsLoopback(f.server):
		return nil, errors.New("the URL points into a private network, and the server is not in one")
	}
	return u, nil
}

// answer is a whole HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
	to     string // target of a redirect, for display
}

func (f *fetcher) do(ctx context.Context, req *http.Request) (answer, error) {
	if f.left--; f.left < 0 {
		return answer{}, &Error{Text: "the login needs more requests than any server should"}
	}
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "magi-code")
	}
	resp, err := f.rt.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return answer{}, &Error{Text: endpoint.Show(req.URL) + ": " + endpoint.Describe(err)}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if endpoint.IsRedirect(a.status) {
		a.to = endpoint.Redirect(resp, req.URL)
	}
	if a.body, err = endpoint.ReadBody(resp, maxDocument); err != nil {
		return a, &Error{Text: endpoint.Show(req.URL) + ": " + endpoint.Describe(err)}
	}
	return a, nil
}

func newRequest(method string, u *url.URL, contentType string, body []byte) *http.Request {
	r := &http.Request{
		Method: method, URL: u, Host: u.Host, Header: http.Header{"Accept": {"application/json"}},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if body != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

// document fetches a JSON object. Every kind of miss is an error with a short reason.
func (f *fetcher) document(ctx context.Context, u *url.URL) (document, error) {
	a, err := f.do(ctx, newRequest(http.MethodGet, u, "", nil))
	var ours *Error
	switch {
	case errors.As(err, &ours):
		return nil, ours
	case a.to != "":
		return nil, &Error{Text: endpoint.Show(u) + ": redirects to " + a.to + ", and redirects are not followed"}
	case a.status != http.StatusOK:
		return nil, &Error{Text: endpoint.Show(u) + ": HTTP " + strconv.Itoa(a.status)}
	}
	d, ok := parseDocument(a.body)
	if !ok {
		return nil, &Error{Text: endpoint.Show(u) + ": no JSON object"}
	}
	return d, nil
}

// document is a JSON object from a server. Members of another type than expected count as absent: a metadata document
// with one odd member is of use all the same.
type document map[string]jsontext.Value

func parseDocument(b []byte) (document, bool) {
	var d document
	b = bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\xef\xbb\xbf"))
	if len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &d) != nil {
		return nil, false
	}
	return d, true
}

func (d document) text(name string) (s string) {
	if v := d[name]; v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

func (d document) list(name string) (out []string) {
	var parts []jsontext.Value
	if v := d[name]; v.Kind() != '[' || json.Unmarshal(v, &parts) != nil {
		return nil
	}
	for _, p := range parts[:min(len(parts), 256)] {
		var s string
		if p.Kind() == '"' && json.Unmarshal(p, &s) == nil {
			out = append(out, s)
		}
	}
	return out
}

func (d document) isTrue(name string) bool { return d[name].Kind() == 't' }

// basic is the Authorization header of client_secret_basic: both halves form-encoded first (RFC 6749, 2.3.1).
func basic(id string, password secret.String) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(password.Reveal())))
}
