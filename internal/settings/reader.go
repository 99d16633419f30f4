package settings

import (
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"magi-code/internal/jsondoc"
)

// reader turns one file into settings and complaints.
type reader struct {
	path     string
	project  bool
	data     []byte
	places   *jsondoc.Places // once something is wrong
	s        Settings
	warnings []Warning
	errs     []error
}

// fail records a mistake at a value.
func (r *reader) fail(offset int, key, text, hint string) {
	if r.places == nil {
		r.places = jsondoc.NewPlaces(r.data)
	}
	line, column := r.places.Position(offset)
	r.errs = append(r.errs, &Error{Path: r.path, Line: line, Column: column, Key: safe(key), Text: text, Hint: hint})
}

// warn records something ignored.
func (r *reader) warn(key, text string) {
	r.warnings = append(r.warnings, Warning{Path: r.path, Key: safe(key), Text: text})
}

// shownKey bounds the keys in messages, in bytes.
const shownKey = 120

// safe makes a key from a file fit for a line.
func safe(key string) string {
	if len(key) > shownKey {
		key = strings.ToValidUTF8(key[:shownKey], "") + "..."
	}
	quoted := strconv.Quote(key)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// field reads one key of an object.
type field struct {
	name       string
	globalOnly bool
	read       func(v *jsondoc.Value, key string)
}

// object reads the fields of an object and warns of the others.
func (r *reader) object(v *jsondoc.Value, key string, fields []field) {
	if v.Kind != '{' {
		r.fail(v.Start, key, "must be an object and is "+v.TypeName(), "")
		return
	}
	prefix := key
	if prefix != "" {
		prefix += "."
	}
	for _, m := range v.Members {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.Name })
		if i < 0 {
			r.stranger(m, prefix, fields)
			continue
		}
		if f := fields[i]; f.globalOnly && r.project {
			r.warn(prefix+m.Name, "ignored; only the global settings can set it")
		} else {
			f.read(m.Value, prefix+m.Name)
		}
	}
}

// stranger deals with a key that is none of ours.
func (r *reader) stranger(m jsondoc.Member, prefix string, fields []field) {
	for _, f := range fields {
		if strings.EqualFold(f.name, m.Name) {
			r.fail(m.NameStart, prefix+m.Name, "the name differs from "+f.name+" in case alone", "write "+f.name)
			return
		}
	}
	r.warn(prefix+m.Name, "unknown, ignored")
}

// document reads the whole file.
func (r *reader) document(root *jsondoc.Value) {
	r.object(root, "", []field{
		{"provider", false, r.text(&r.s.Provider)},
		{"model", false, r.text(&r.s.Model)},
		{"endpoints", true, r.endpoints},
		{"permissions", false, r.permissions},
		{"capabilities", false, r.capabilities},
		{"hooks", true, r.hooks},
		{"workspace", true, r.workspace},
		{"max_turns", false, r.number(&r.s.MaxTurns, 1, maxMaxTurns)},
	})
}

// text reads a string that is not empty.
func (r *reader) text(to *string) func(*jsondoc.Value, string) {
	return func(v *jsondoc.Value, key string) {
		switch {
		case v.Kind != '"':
			r.fail(v.Start, key, "must be a string and is "+v.TypeName(), "")
		case strings.TrimSpace(v.Text) == "":
			r.fail(v.Start, key, "must not be empty", "leave it out instead")
		default:
			*to = v.Text
		}
	}
}

// number reads a whole number within bounds.
func (r *reader) number(to *int, low, high int) func(*jsondoc.Value, string) {
	return func(v *jsondoc.Value, key string) {
		if v.Kind != '0' {
			r.fail(v.Start, key, "must be a number and is "+v.TypeName(), "")
			return
		}
		n, err := strconv.Atoi(string(v.Raw))
		if err != nil || n < low || n > high {
			r.fail(v.Start, key, fmt.Sprintf("must be a whole number from %d to %d", low, high), "")
			return
		}
		*to = n
	}
}

// texts reads an array of strings that are not empty.
func (r *reader) texts(to *[]string) func(*jsondoc.Value, string) {
	return func(v *jsondoc.Value, key string) {
		if v.Kind != '[' {
			r.fail(v.Start, key, "must be an array of strings and is "+v.TypeName(), `write ["one", "two"]`)
			return
		}
		for i, item := range v.Items {
			var s string
			r.text(&s)(item, key+"["+strconv.Itoa(i)+"]")
			if s != "" {
				*to = append(*to, s)
			}
		}
	}
}

// permissions reads the rules.
func (r *reader) permissions(v *jsondoc.Value, key string) {
	r.object(v, key, []field{
		{"allow", true, r.texts(&r.s.Allow)},
		{"ask", false, r.texts(&r.s.Ask)},
		{"deny", false, r.texts(&r.s.Deny)},
	})
}

// capabilities reads what is about tools. Approvals are read by their own package.
func (r *reader) capabilities(v *jsondoc.Value, key string) {
	r.object(v, key, []field{
		{"mcp_approvals", true, func(v *jsondoc.Value, key string) {
			if v.Kind != '{' {
				r.fail(v.Start, key, "must be an object and is "+v.TypeName(), "remove it and approve your servers again")
			}
		}},
		{"mcp_result_bytes", false, r.number(&r.s.ResultLimit, 1, maxResultLimit)},
		{"tools", false, func(v *jsondoc.Value, key string) {
			r.object(v, key, []field{
				{"disabled", false, r.texts(&r.s.ExcludeDirect)},
				{"code_mode", false, func(v *jsondoc.Value, key string) {
					r.object(v, key, []field{{"disabled", false, r.texts(&r.s.ExcludeCodeMode)}})
				}},
			})
		}},
	})
}

// workspace reads the extra roots.
func (r *reader) workspace(v *jsondoc.Value, key string) {
	r.object(v, key, []field{{"extra_roots", true, func(v *jsondoc.Value, key string) {
		r.texts(&r.s.WorkspaceRoots)(v, key)
		for i, item := range v.Items {
			if item.Kind == '"' && item.Text != "" && !filepath.IsAbs(item.Text) {
				r.fail(item.Start, key+"["+strconv.Itoa(i)+"]", "must be an absolute path", "")
			}
		}
	}}})
}

// endpoints reads the custom providers.
func (r *reader) endpoints(v *jsondoc.Value, key string) {
	if v.Kind != '{' {
		r.fail(v.Start, key, "must be an object and is "+v.TypeName(), `write {"name": {"base_url": "https://..."}}`)
		return
	}
	r.s.Endpoints = map[string]Endpoint{}
	for _, m := range v.Members {
		var e Endpoint
		name := key + "." + m.Name
		if m.Name == "" {
			r.fail(m.NameStart, key, "an endpoint has an empty name", "")
		}
		r.object(m.Value, name, []field{
			{"base_url", true, func(v *jsondoc.Value, key string) {
				r.text(&e.BaseURL)(v, key)
				if e.BaseURL != "" && !isServiceURL(e.BaseURL) {
					r.fail(v.Start, key, "must be an https URL, or an http one to this machine, without credentials", "")
				}
			}},
			{"api_key_env", true, func(v *jsondoc.Value, key string) {
				r.text(&e.APIKeyEnv)(v, key)
				if e.APIKeyEnv != "" && !isVariable(e.APIKeyEnv) {
					r.fail(v.Start, key, "must be the name of an environment variable, not the key itself", "")
				}
			}},
			{"model", true, r.text(&e.Model)},
		})
		if m.Value.Kind == '{' && m.Value.Get("base_url") == nil {
			r.fail(m.Value.Start, name, "base_url is missing", "")
		}
		r.s.Endpoints[m.Name] = e
	}
}

// hooks reads the commands around tools.
func (r *reader) hooks(v *jsondoc.Value, key string) {
	if v.Kind != '[' {
		r.fail(v.Start, key, "must be an array and is "+v.TypeName(), "")
		return
	}
	for i, item := range v.Items {
		name := key + "[" + strconv.Itoa(i) + "]"
		h := Hook{TimeoutMs: defaultHookTimeout, OnFailure: "warn"}
		r.object(item, name, []field{
			{"event", true, r.oneOf(&h.Event, "before_tool", "after_tool")},
			{"tools", true, r.texts(&h.Tools)},
			{"command", true, r.texts(&h.Command)},
			{"timeout_ms", true, r.number(&h.TimeoutMs, 1, maxHookTimeout)},
			{"on_failure", true, r.oneOf(&h.OnFailure, "warn", "block")},
		})
		if item.Kind != '{' {
			continue
		}
		if item.Get("event") == nil {
			r.fail(item.Start, name, "event is missing", "write before_tool or after_tool")
		}
		if c := item.Get("command"); c == nil || c.Kind == '[' && len(c.Items) == 0 {
			r.fail(item.Start, name, "command is missing", `write ["program", "argument"]`)
		}
		r.s.Hooks = append(r.s.Hooks, h)
	}
}

// oneOf reads one of some words.
func (r *reader) oneOf(to *string, words ...string) func(*jsondoc.Value, string) {
	return func(v *jsondoc.Value, key string) {
		if v.Kind != '"' || !slices.Contains(words, v.Text) {
			r.fail(v.Start, key, "must be one of "+strings.Join(words, ", "), "")
			return
		}
		*to = v.Text
	}
}

// isServiceURL reports whether an API key may be sent there.
func isServiceURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback() && !ip.Is4In6())
}

// isVariable reports whether s can be the name of an environment variable.
func isVariable(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
