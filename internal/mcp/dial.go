package mcp

import (
	"context"
	"strings"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/mcp/stdio"
	"magi-code/internal/mcp/streamable"
)

// dialer returns how to reach a server: the one place that knows both transports.
func (o *Options) dialer(d definition.Server, a approval.Approved) dialer {
	if d.Type == definition.HTTP {
		return func(ctx context.Context, l definition.Launch, h jsonrpc.Handler) (link, error) {
			return o.dialHTTP(ctx, l, h, a)
		}
	}
	return func(ctx context.Context, l definition.Launch, h jsonrpc.Handler) (link, error) {
		return o.dialStdio(ctx, d, l, h)
	}
}

// dialStdio starts a child. Errors name its command as the definition does: no error tells an expanded value (R-C6).
func (o *Options) dialStdio(ctx context.Context, d definition.Server, l definition.Launch, h jsonrpc.Handler) (link, error) {
	env := make([]stdio.EnvVar, len(l.Env))
	for i, v := range l.Env {
		env[i] = stdio.EnvVar{Name: v.Name, Value: v.Value}
	}
	so := stdio.Options{Command: l.Command, Args: l.Args, Env: env, Lookup: o.Lookup, Dir: o.Dir, Handler: h}
	so.ShownCommand = unexpanded(d.Command)
	for _, v := range d.Env {
		if v.Name == "PATH" {
			so.ShownPath = unexpanded(v.Value)
		}
	}
	t, err := stdio.Start(ctx, so)
	if err != nil {
		return link{}, err
	}
	return link{
		transport: t, ended: t.Ended(), stderr: t.Stderr, skipped: t.Skipped,
		dropped: func() int { return t.Stats().DroppedReplies },
	}, nil
}

// unexpanded is a value as it stands in the definition when it has references, else empty: then there is nothing to hide.
func unexpanded(raw string) string {
	if !strings.Contains(raw, "${") {
		return ""
	}
	return raw
}

// dialHTTP prepares a connection to an endpoint; initialize is the first to use it.
func (o *Options) dialHTTP(ctx context.Context, l definition.Launch, h jsonrpc.Handler, a approval.Approved) (link, error) {
	so := streamable.Options{Name: l.Name, URL: l.URL, ShowURL: l.ShowURL, HTTP: o.HTTP, Handler: h}
	for _, v := range l.Headers {
		so.Headers = append(so.Headers, streamable.Header{Name: v.Name, Value: v.Value})
	}
	if l.OAuth != nil && o.Tokens != nil {
		if t := o.Tokens(a); t != nil {
			so.Tokens = t
		}
	}
	t, err := streamable.Open(ctx, so)
	if err != nil {
		return link{}, err
	}
	k := bare(t)
	k.skipped = func() (int, string) { return t.Skipped(), "" }
	k.dropped = t.Dropped
	return k, nil
}
