package provider

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"magi-code/internal/secret"
	"magi-code/internal/sse"
	"magi-code/internal/untrusted"
)

// maxForeign is how many bytes of a service's own words an Error repeats: its first sentence or two.
const maxForeign = 300

// winConnRefused is how Windows numbers a refused connection (WSAECONNREFUSED); elsewhere no error has this number.
const winConnRefused = syscall.Errno(10061)

// Fail translates whatever ended an attempt into our words. Nothing of err is kept but what it means: errors of
// net/http hold the whole address.
func (e Endpoint) Fail(err error, model string) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return e.refused(f, model)
	}
	out := &Error{Provider: e.Name}
	switch {
	case errors.Is(err, errStalled):
		out.Message, out.Retryable = fmt.Sprintf("%s sent nothing for %s", e.Origin(), idleWait), true
	case errors.Is(err, errTooLarge), errors.Is(err, sse.ErrTooLarge):
		out.Message = "the answer is larger than magi-code accepts"
	case errors.Is(err, ErrBroken):
		out.Message, out.Retryable = ErrBroken.Error(), true
	default:
		e.unreachable(out, err)
	}
	return out
}

func (e Endpoint) unreachable(out *Error, err error) {
	cannot := "cannot connect to " + e.Origin()
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		out.Message, out.Retryable = cannot+": its name could not be resolved", dns.IsTimeout || dns.IsTemporary
		out.Hint = e.reachHint("check the network")
		return
	}
	_, badCert := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	plain = plain || errors.Is(err, http.ErrSchemeMismatch)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, winConnRefused):
		out.Message, out.Hint = cannot+": connection refused", e.reachHint("start the service")
	case badCert || unknown:
		out.Message, out.Hint = cannot+": its certificate is not trusted", e.reachHint("install the certificate authority")
	case plain:
		out.Message, out.Hint = cannot+": it does not speak TLS", e.urlHint("the same address with http:// if you trust the network")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		out.Message, out.Retryable = "the connection to "+e.Origin()+" broke", true
	case isNet && timeout.Timeout():
		out.Message, out.Retryable = cannot+": it did not answer in time", true
		out.Hint = e.reachHint("check the network")
	default:
		out.Message, out.Retryable = "the request to "+e.Origin()+" failed", true
		out.Hint = e.reachHint("check the network and the proxy variables")
	}
}

func (e Endpoint) reachHint(first string) string {
	if e.URLFrom == "" {
		return first
	}
	return first + ", or set " + e.URLFrom + " to the right address"
}

// refused translates what a service said.
func (e Endpoint) refused(f *Failure, model string) *Error {
	out := &Error{Provider: e.Name, Status: f.Status, RetryAfter: f.retryAfter, Retryable: f.isPassing()}
	what := ""
	switch {
	case f.location != "" || f.Status/100 == 3:
		what, out.Retryable = "the service redirects, which magi-code does not follow", false
		if f.location != "" {
			what = "the service redirects to " + f.location + ", which magi-code does not follow"
			out.Hint = e.urlHint("that address if you trust it")
		}
	case f.isOverflow():
		what, out.Retryable, out.Cause = ErrContextOverflow.Error(), false, ErrContextOverflow
		out.Hint = "start a new conversation, or choose a model with a larger context window"
	case f.Status/100 == 2 && f.Message == "":
		what, out.Retryable = fmt.Sprintf("%s answered %s instead of an event stream", e.Origin(), orUnknown(f.media)), false
		out.Hint = e.urlHint("the address of the API")
	case f.Status == 401 || f.Type == "authentication_error" || f.Code == "invalid_api_key":
		what, out.Retryable, out.Hint = "authentication failed", false, e.keyHint()
	case f.isQuota():
		what, out.Hint = "the account has no credit or quota left", "check the plan and the billing of the account"
	case f.isUnknownModel():
		what, out.Retryable = fmt.Sprintf("the model %q was not found", untrusted.Head(untrusted.Line(model), maxURL)), false
		out.Hint = "choose a model that this service has with --model or /model"
	case f.Status == 404 || f.Status == 405:
		what = e.Origin() + " has no such API"
		out.Hint = e.urlHint("the address of the API, which often ends in /v1")
	case f.Status == 403:
		what, out.Hint = "the service does not allow this", "check that the key may use this model and this API"
	case f.Status == 529 || strings.Contains(f.Type+f.Code, "overloaded"):
		what = "the service is overloaded"
	case f.Status == 429 || strings.HasPrefix(f.Type+f.Code, "rate_limit"):
		what, out.Hint = "too many requests", "wait a moment, or raise the rate limit of the account"
	case f.Status >= 500 || f.Status == 0 && out.Retryable:
		what = "the service failed"
	default:
		what = "the service refused the request"
	}
	out.Message = what
	if f.Status != 0 && f.Status/100 != 2 {
		out.Message += fmt.Sprintf(" (%d)", f.Status)
	}
	if said := e.said(f.Message); said != "" {
		out.Message += ": " + said
	}
	return out
}

func orUnknown(media string) string {
	if media == "" {
		return "something"
	}
	return untrusted.Head(untrusted.Line(media), 60)
}

// said is a service's message made safe: no key, one line, cut.
func (e Endpoint) said(message string) string {
	line := untrusted.Line(secret.NewScrubber(e.Key).Text(message))
	return untrusted.Head(strings.TrimSpace(line), maxForeign)
}

func (f *Failure) isUnknownModel() bool {
	if f.Code == "model_not_found" || f.Type == "model_not_found" {
		return true
	}
	m := strings.ToLower(f.Message)
	if f.Status == 404 {
		return strings.Contains(m, "model")
	}
	return f.Status == 400 && strings.Contains(m, "model") &&
		containsAny(m, "not found", "does not exist", "not a valid model", "no such model", "unknown model")
}
