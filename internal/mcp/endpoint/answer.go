package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"magi-code/internal/untrusted"
)

// ErrTooLarge says that a body passed its bound.
var ErrTooLarge = errors.New("the answer is larger than the bound")

// errEncoding says that the server compressed with something that nobody asked for.
var errEncoding = errors.New("the answer has a content encoding that was not asked for")

// ReadBody reads at most limit bytes of a body, after decompression.
func ReadBody(r *http.Response, limit int64) ([]byte, error) {
	switch strings.ToLower(r.Header.Get("Content-Encoding")) { // net/http removes the header when it unzips
	case "", "identity":
	default:
		return nil, errEncoding
	}
	if r.ContentLength > limit {
		return nil, ErrTooLarge
	}
	var b bytes.Buffer
	if r.ContentLength > 0 {
		b.Grow(int(min(r.ContentLength, 1<<20)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r.Body, limit+1))
	if n > limit {
		return nil, ErrTooLarge
	}
	return b.Bytes(), err
}

// Media is the media type of a header, lower case, without parameters; "" when there is none.
func Media(h http.Header) string {
	v := h.Get("Content-Type")
	if m, _, err := mime.ParseMediaType(v); err == nil || errors.Is(err, mime.ErrInvalidMediaParameter) {
		return m
	}
	v, _, _ = strings.Cut(v, ";")
	return strings.ToLower(strings.TrimSpace(v))
}

// Redirect is the target of a redirect as it may be shown: origin and path only.
func Redirect(r *http.Response, from *url.URL) string {
	to, err := from.Parse(r.Header.Get("Location"))
	if err != nil || to.Host == "" || r.Header.Get("Location") == "" {
		return "a place that is no URL"
	}
	return Show(to)
}

// IsRedirect reports whether a status asks to go elsewhere.
func IsRedirect(status int) bool {
	return status >= 300 && status < 400 && status != http.StatusNotModified
}

// Describe says what went wrong on the way, without any URL: the errors of net/http may hold one whole.
func Describe(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var netErr net.Error
	var u *url.Error
	switch {
	case errors.As(err, &u):
		return Describe(u.Err)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "the proxy: " + Describe(op.Err)
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	case errors.Is(err, ErrOffLoopback):
		return errOffLoopbackText
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection before its answer was complete"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the server reset the connection"
	case errors.As(err, &dns):
		return "the host name does not resolve"
	case IsTLS(err):
		return "TLS: " + untrusted.Head(untrusted.Line(err.Error()), 200)
	case errors.As(err, &netErr) && netErr.Timeout():
		return "timed out"
	case errors.As(err, &op):
		return op.Op + ": " + untrusted.Head(untrusted.Line(op.Err.Error()), 200)
	}
	return describeText(err.Error())
}

// describeText words the errors for which net/http has no type. What it says about an answer that breaks HTTP is dropped: it is
// in the words of a programmer, and may quote the answer: a whole Location, say, with its query.
func describeText(text string) string {
	const notHTTP = "the server answered with something that is not valid HTTP"
	tooLong := fmt.Sprintf("the headers of the answer are larger than %d KiB", maxResponseHeaders>>10)
	const brokenOff = "the server broke its answer off"
	for _, known := range [][2]string{
		{"response headers exceeded", tooLong}, {"header list too large", tooLong},
		{"received from peer", brokenOff}, {"GOAWAY", brokenOff}, {"client connection lost", brokenOff},
		{"malformed", notHTTP}, {"HTTP/1.x transport connection broken", notHTTP}, {"chunk", notHTTP}, {"header line too long", notHTTP},
		{"stream error: ", notHTTP}, {"connection error: ", notHTTP},
		{"gzip: ", "the compressed answer of the server is damaged"}, {"flate: ", "the compressed answer of the server is damaged"},
	} {
		if strings.Contains(text, known[0]) {
			return known[1]
		}
	}
	return untrusted.Head(untrusted.Line(text), 200)
}

// IsTLS reports whether the TLS handshake failed.
func IsTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var alert tls.AlertError
	var ca x509.UnknownAuthorityError
	return errors.As(err, &verify) || errors.As(err, &header) || errors.As(err, &alert) || errors.As(err, &ca)
}
