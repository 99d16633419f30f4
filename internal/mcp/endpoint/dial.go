package endpoint

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	dialTimeout         = 30 * time.Second // a dead host answers nothing; the request timeout is usually shorter
	tlsTimeout          = 15 * time.Second
	pingAfter           = 30 * time.Second // of silence: else a dead HTTP/2 connection goes on to be used
	idleTimeout         = 90 * time.Second // as browsers do; a server that closes earlier is noticed at once
	idlePerHost         = 64               // overlapping calls to one server keep their connections
	maxResponseHeaders  = 256 << 10        // bytes; real ones stay below 16 KiB
	errOffLoopbackText  = "localhost resolves to an address that is not loopback"
	errProxySettingText = "the proxy setting of the environment is malformed"
)

// ErrOffLoopback refuses a dial: localhost resolved to an address that is not loopback.
var ErrOffLoopback = errors.New(errOffLoopbackText)

// ErrProxySetting stands for the error of net/http, which prints the proxy URL with its password.
var ErrProxySetting = errors.New(errProxySettingText)

// Transport is the round tripper of one client: keep-alive, HTTP/2, proxies from the environment, platform TLS. It
// follows no redirect (no RoundTripper does) and refuses every URL that Check refuses.
type Transport struct{ base *http.Transport }

// NewTransport makes a round tripper with connections of its own.
func NewTransport() *Transport {
	return &Transport{&http.Transport{
		Proxy:                  proxy,
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    tlsTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           2 * idlePerHost,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxResponseHeaderBytes: maxResponseHeaders,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: tlsTimeout},
	}}
}

// RoundTrip sends one request; the body is unzipped by net/http, so a limit on it bounds what comes out.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := Check(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return t.base.RoundTrip(r)
}

// CloseIdleConnections closes what is not in use.
func (t *Transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

func proxy(r *http.Request) (*url.URL, error) {
	if IsLoopback(r.URL) {
		return nil, nil
	}
	u, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, ErrProxySetting
	}
	return u, nil
}

// dial connects; a host called localhost must turn out to be loopback, whatever the resolver says.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	if host, _, err := net.SplitHostPort(addr); err == nil && strings.EqualFold(host, "localhost") {
		d.Control = onlyLoopback
	}
	return d.DialContext(ctx, network, addr)
}

// onlyLoopback sees the address that is about to be connected, after resolution.
func onlyLoopback(_, addr string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || !ap.Addr().Unmap().IsLoopback() {
		return ErrOffLoopback
	}
	return nil
}
