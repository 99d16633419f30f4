package definition

import (
	"slices"
	"strconv"
	"strings"

	"magi-code/internal/jsondoc"
	"magi-code/internal/untrusted"
)

// DefaultTimeout is the timeout of a definition that names none, in seconds.
const DefaultTimeout = 30

// parser finds the structure of one file and everything that is wrong with it.
type parser struct {
	*file
	places *jsondoc.Places
	scope  Scope
	server string // the entry being read
}

// serversKey is the one top-level name that is ours.
const serversKey = "mcpServers"

// fail records a structural error at a byte offset.
func (p *parser) fail(offset int, field, text, hint string) {
	line, column := p.places.Position(offset)
	p.errs = append(p.errs, &Error{
		Source: p.path, Line: line, Column: column, Server: p.server, Field: field, Text: text, Hint: hint,
	})
}

// warn records something ignored.
func (p *parser) warn(field, text string) {
	p.warnings = append(p.warnings, Warning{Source: p.path, Server: untrusted.Visible(p.server), Field: shown(field), Text: text})
}

// shown makes a foreign name fit for a line.
func shown(name string) string { return untrusted.Visible(untrusted.Head(name, shownName)) }

// document reads the top level.
func (p *parser) document(root *jsondoc.Value) {
	if root.Kind != '{' {
		p.fail(root.Start, "", "the file must hold an object and holds "+root.TypeName(), `write {"mcpServers": {...}}`)
		return
	}
	for _, m := range root.Members {
		switch {
		case m.Name == serversKey:
			p.serverList(m.Value)
		case strings.EqualFold(m.Name, serversKey):
			p.fail(m.NameStart, m.Name, "the name differs from mcpServers in case alone", "write mcpServers")
		case m.Name == "servers" && root.Get(serversKey) == nil:
			p.warn(m.Name, "ignored; servers are defined under mcpServers: rename it")
		default:
			p.warn(m.Name, "unknown, ignored")
		}
	}
}

// serverList reads all entries.
func (p *parser) serverList(v *jsondoc.Value) {
	if v.Kind != '{' {
		p.fail(v.Start, serversKey, "must be an object and is "+v.TypeName(), "give each server a name: {\"name\": {...}}")
		return
	}
	folded := map[string]string{} // names that are good are ASCII, where lower case is all there is to fold
	for _, m := range v.Members {
		p.server = m.Name
		if earlier, twin := folded[strings.ToLower(m.Name)]; twin {
			p.fail(m.NameStart, "", "its name differs from that of server "+strconv.Quote(earlier)+" in case alone", "rename one of the two")
		} else {
			folded[strings.ToLower(m.Name)] = m.Name
		}
		p.names = append(p.names, m.Name)
		before := len(p.errs)
		s := p.entry(m)
		if len(p.errs) == before {
			p.servers = append(p.servers, s)
		}
		p.server = ""
	}
}

// The name of a tool is mcp__<server>__<tool> within 64 bytes, so a longer server name leaves no room for any tool.
const maxNameBytes = 64 - len("mcp__") - len("__") - 1

// CheckName says why name cannot be a server's name; "" when it can.
func CheckName(name string) string {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-') {
			return "a server name has only ASCII letters, digits, _ and -"
		}
	}
	switch {
	case name == "":
		return "a server name must not be empty"
	case strings.Contains(name, "__"):
		return "a server name must not contain __, which separates server and tool"
	case strings.HasSuffix(name, "_"):
		return "a server name must not end with _, which separates server and tool"
	case len(name) > maxNameBytes:
		return "a server name has at most " + strconv.Itoa(maxNameBytes) + " bytes"
	}
	return ""
}

// knownFields are the fields of an entry.
func knownFields() []string {
	return []string{"type", "command", "args", "env", "url", "headers", "oauth", "timeout", "enabled"}
}

// entry reads one definition.
func (p *parser) entry(m jsondoc.Member) Server {
	s := Server{Name: m.Name, Source: p.path, Scope: p.scope, Timeout: DefaultTimeout}
	s.line, s.column = p.places.Position(m.NameStart)
	if why := CheckName(m.Name); why != "" {
		p.fail(m.NameStart, "", why, "rename it")
	}
	v := m.Value
	if v.Kind != '{' {
		p.fail(v.Start, "", "a definition must be an object and is "+v.TypeName(), "")
		return s
	}
	p.unknown(v, "", knownFields())
	s.Type = p.transport(v)
	if s.Type == Stdio {
		s.Command = p.text(v, "command")
		s.Args = p.texts(v, "args", "args")
		s.Env = p.pairs(v, "env")
	}
	if s.Type == HTTP {
		s.URL = p.text(v, "url")
		s.Headers = p.pairs(v, "headers")
		p.checkHeaderNames(v.Get("headers"))
		s.OAuth = p.oauth(v, s.Headers)
	}
	s.Timeout, s.oddTimeout = p.timeout(v)
	return s
}

// unknown warns of fields nobody knows, and refuses those that look like a known one: what a person reads as
// "command" must not be something that we ignore.
func (p *parser) unknown(v *jsondoc.Value, prefix string, known []string) {
	for _, m := range v.Members {
		if slices.Contains(known, m.Name) {
			if m.Name == "enabled" {
				p.warn("enabled", "has no effect; a server runs when it is approved")
			}
			continue
		}
		i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, m.Name) })
		if i >= 0 {
			p.fail(m.NameStart, prefix+m.Name, "the name differs from "+known[i]+" in case alone", "write "+known[i])
			continue
		}
		p.warn(prefix+m.Name, "unknown, ignored")
	}
}

// transport reads the type and refuses the fields of the other one. It returns "" when that cannot be told.
func (p *parser) transport(v *jsondoc.Value) Transport {
	t := v.Get("type")
	if t == nil {
		return p.stdioUnlessURL(v)
	}
	if t.Kind != '"' {
		p.fail(t.Start, "type", "must be a string and is "+t.TypeName(), `write "stdio" or "http"`)
		return ""
	}
	switch Transport(t.Text) {
	case Stdio:
		p.foreign(v, "a stdio", "url", "headers", "oauth")
		p.required(v, "command")
		return Stdio
	case HTTP:
		p.foreign(v, "an http", "command", "args", "env")
		p.required(v, "url")
		return HTTP
	}
	text, hint := "the type is neither stdio nor http", `write "stdio" for a command or "http" for a URL`
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(t.Text)) {
	case "stdio":
		hint = `write "type": "stdio"`
	case "http", "https", "streamablehttp", "streamable", "httpstream":
		text, hint = "the type is not spelled http", `Streamable HTTP is "type": "http"`
	case "sse", "httpsse":
		text, hint = "the old SSE transport is not supported", `if the server also speaks Streamable HTTP, write "type": "http" and its URL for that`
	case "websocket", "ws", "wss":
		text, hint = "WebSocket is no transport of this program", `if the server also speaks Streamable HTTP, write "type": "http" and its https URL`
	case "local":
		hint = `a local command is "type": "stdio"`
	case "remote":
		hint = `a remote server is "type": "http"`
	}
	p.fail(t.Start, "type", text, hint)
	return ""
}

// stdioUnlessURL is the transport of an entry without type: stdio, and a hint for a URL alone.
func (p *parser) stdioUnlessURL(v *jsondoc.Value) Transport {
	if u := v.Get("url"); u != nil && v.Get("command") == nil {
		p.fail(u.Start, "url", "the entry has no type and so is a stdio server, which has no url", `add "type": "http"`)
		return ""
	}
	p.foreign(v, "a stdio", "url", "headers", "oauth")
	p.required(v, "command")
	return Stdio
}

// foreign refuses fields of the other transport.
func (p *parser) foreign(v *jsondoc.Value, kind string, fields ...string) {
	for _, m := range v.Members {
		if slices.Contains(fields, m.Name) {
			p.fail(m.NameStart, m.Name, kind+" server has no such field", "remove it, or change the type")
		}
	}
}

// required refuses an entry without a field.
func (p *parser) required(v *jsondoc.Value, field string) {
	if v.Get(field) == nil {
		p.fail(v.Start, field, "is missing", "add "+strconv.Quote(field))
	}
}
