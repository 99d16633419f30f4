package mcp

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/untrusted"
)

const (
	// wantedProtocol is the version that initialize asks for, olderProtocol the other one that we speak.
	wantedProtocol = "2025-06-18"
	olderProtocol  = "2025-03-26"
	// ourProtocols names both in errors.
	ourProtocols = wantedProtocol + " and " + olderProtocol
	// codeUnsupportedVersion is the error code by which servers of later protocols refuse a version.
	codeUnsupportedVersion = -32022
	// maxShownVersions and maxShownVersion bound the versions of a server that an error repeats, in number and bytes.
	maxShownVersions = 5
	maxShownVersion  = 32

	// Bounds in bytes of what a server says about itself. Names are one line of a list; instructions are a page.
	maxServerName    = 128
	maxServerVersion = 64
	maxInstructions  = 8 << 10
)

// greeting is what a server answered to initialize.
type greeting struct {
	protocol     string
	name         string
	version      string
	instructions string
	listChanged  bool
}

// versionError is a server that speaks none of our versions.
type versionError struct{ text string }

func (e *versionError) Error() string { return e.text }

// initialize introduces us to the server and agrees on a version.
func (c *client) initialize(ctx context.Context, ourVersion string) (greeting, error) {
	params, err := json.Marshal(struct {
		ProtocolVersion string   `json:"protocolVersion"`
		Capabilities    struct{} `json:"capabilities"` // we offer none
		ClientInfo      struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
	}{ProtocolVersion: wantedProtocol, ClientInfo: struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}{"magi-code", ourVersion}}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return greeting{}, err
	}
	result, err := c.request(ctx, "initialize", params)
	if err != nil {
		return greeting{}, refusedVersion(err)
	}
	g, err := readGreeting(result)
	if err != nil {
		return g, err
	}
	c.listChanged.Store(g.listChanged)
	c.greeted.Store(true)
	c.link.Negotiated(g.protocol)
	err = c.notify(ctx, "notifications/initialized")
	var ended *jsonrpc.EndedError
	if errors.As(err, &ended) || c.over.Load() {
		return g, nil // it greeted well and is gone: the listing, which comes next, says how
	}
	return g, err
}

// readGreeting reads the result of initialize. Everything but the version may be missing or odd (B19).
func readGreeting(result jsontext.Value) (greeting, error) {
	f, ok := object(result, "protocolVersion", "capabilities", "serverInfo", "instructions")
	if !ok {
		return greeting{}, &versionError{"answered with something other than an object"}
	}
	protocol, ok := text(f["protocolVersion"])
	switch {
	case !ok || protocol == "":
		return greeting{}, &versionError{"answered without a protocol version (magi-code speaks " + ourProtocols + ")"}
	case protocol != wantedProtocol && protocol != olderProtocol:
		return greeting{}, &versionError{"answered with protocol " + shownVersion(protocol) +
			", which magi-code does not speak (it speaks " + ourProtocols + ")"}
	}
	g := greeting{protocol: protocol}
	info, _ := object(f["serverInfo"], "name", "version")
	g.name, _ = text(info["name"])
	g.version, _ = text(info["version"])
	g.instructions, _ = text(f["instructions"])
	capabilities, _ := object(f["capabilities"], "tools")
	tools, _ := object(capabilities["tools"], "listChanged")
	g.listChanged = string(tools["listChanged"]) == "true"
	return g, nil
}

// refusedVersion turns an error answer to initialize that is about the version into a sentence about it (B20).
func refusedVersion(err error) error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return err
	}
	data, _ := object(e.Data, "supported")
	var versions []string
	if data["supported"].Kind() == '[' {
		_ = elements(data["supported"], func(v jsontext.Value) bool {
			if s, ok := text(v); ok && s != "" {
				versions = append(versions, shownVersion(s))
			}
			return len(versions) < maxShownVersions
		})
	}
	switch {
	case len(versions) > 0:
		return &versionError{"server speaks only " + strings.Join(versions, ", ") + " (magi-code speaks " + ourProtocols + ")"}
	case e.Code == codeUnsupportedVersion:
		return &versionError{"server refuses protocol " + wantedProtocol + " without saying which it speaks (magi-code speaks " + ourProtocols + ")"}
	case e.Code == jsonrpc.CodeMethodNotFound:
		return &versionError{"server does not know initialize: it speaks a newer protocol or none (magi-code speaks " + ourProtocols + ")"}
	}
	return err
}

// shownVersion is a foreign version in a sentence.
func shownVersion(s string) string { return untrusted.Head(untrusted.Visible(s), maxShownVersion) }
