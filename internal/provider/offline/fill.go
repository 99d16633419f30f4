package offline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/tool"
)

const (
	// maxDepth bounds how deep nested arguments are filled.
	maxDepth = 4
	// maxMade bounds how many items of a list are made up because a schema wants them.
	maxMade = 4
)

// schema is the part of a JSON Schema that the planner understands.
type schema struct {
	Type       jsontext.Value            `json:"type"` // a string, or a list of them
	Properties map[string]jsontext.Value `json:"properties"`
	Required   []string                  `json:"required"`
	Enum       []jsontext.Value          `json:"enum"`
	Default    jsontext.Value            `json:"default"`
	Const      jsontext.Value            `json:"const"`
	Minimum    *float64                  `json:"minimum"`
	Items      jsontext.Value            `json:"items"`
	MinItems   int                       `json:"minItems"`
}

func readSchema(v jsontext.Value) schema {
	var s schema
	if v.Kind() == '{' && json.Unmarshal(v, &s, jsontext.AllowInvalidUTF8(true)) != nil {
		return schema{}
	}
	return s
}

func (s schema) kind() string {
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return one
	}
	var several []string
	if json.Unmarshal(s.Type, &several) == nil {
		for _, k := range several {
			if k != "null" {
				return k
			}
		}
	}
	switch {
	case len(s.Properties) > 0:
		return "object"
	case s.Items != nil:
		return "array"
	}
	return "string"
}

// fill makes the arguments of a tool from a prompt: required ones always, others when the prompt has name=value.
func fill(t tool.Tool, prompt string) map[string]any {
	s := readSchema(t.Schema)
	if t.Origin == tool.MCP {
		s = readSchema(s.Properties["arguments"])
	}
	src := newSource(prompt, t)
	out := src.object(s, 0)
	if t.Origin == tool.Builtin {
		delete(out, "intent")
	}
	return out
}

// source holds what a prompt offers, each to be used once.
type source struct {
	prompt  string
	pairs   map[string]string
	quoted  []string
	numbers []float64
	paths   []string
	rest    string // the prompt without the words that chose the tool
}

func newSource(prompt string, t tool.Tool) *source {
	s := &source{prompt: strings.TrimSpace(prompt), pairs: map[string]string{}}
	bare := s.takeQuoted(prompt)
	name := slices.Concat(tokens(t.Name), tokens(t.Remote), tokens(t.Server))
	var rest []string
	for _, f := range strings.Fields(bare) {
		trimmed := strings.Trim(f, ",;:!?()")
		if k, v, ok := strings.Cut(trimmed, "="); ok && k != "" && v != "" {
			s.pairs[k] = v
			continue
		}
		if n, err := strconv.ParseFloat(trimmed, 64); err == nil {
			s.numbers = append(s.numbers, n)
		} else if trimmed = strings.TrimRight(trimmed, "."); isPath(trimmed) {
			s.paths = append(s.paths, trimmed)
		}
		if w := strings.ToLower(trimmed); !has(name, w) && (len(rest) > 0 || !common(w)) {
			rest = append(rest, f)
		}
	}
	s.rest = strings.Join(rest, " ")
	return s
}

// takeQuoted collects the quoted parts of a text and returns it without them. An apostrophe within a word is none.
func (s *source) takeQuoted(text string) string {
	var bare strings.Builder
	for i := 0; i < len(text); {
		q := text[i]
		if strings.IndexByte("\"'`", q) < 0 || i > 0 && text[i-1] != ' ' && text[i-1] != '\n' && text[i-1] != '(' && text[i-1] != '=' {
			bare.WriteByte(q)
			i++
			continue
		}
		end := strings.IndexByte(text[i+1:], q)
		if end < 0 {
			bare.WriteByte(q)
			i++
			continue
		}
		value := text[i+1 : i+1+end]
		if before := strings.Fields(bare.String()); len(before) > 0 && strings.HasSuffix(bare.String(), "=") {
			s.pairs[strings.TrimSuffix(before[len(before)-1], "=")] = value
		} else {
			s.quoted = append(s.quoted, value)
		}
		i += end + 2
	}
	return bare.String()
}

func isPath(s string) bool {
	if strings.ContainsAny(s, `/\`) || s == "." || strings.HasPrefix(s, "~") {
		return true
	}
	dot := strings.LastIndexByte(s, '.')
	return dot > 0 && dot < len(s)-1
}

func (s *source) object(sc schema, depth int) map[string]any {
	out := map[string]any{}
	if depth > maxDepth {
		return out
	}
	for _, name := range sc.Required {
		if name == "intent" && depth == 0 {
			continue
		}
		p := readSchema(sc.Properties[name])
		if v, ok := s.pairs[name]; ok {
			out[name] = typed(p, v)
			continue
		}
		out[name] = s.value(name, p, depth)
	}
	for name, raw := range sc.Properties {
		if v, ok := s.pairs[name]; ok && !slices.Contains(sc.Required, name) {
			out[name] = typed(readSchema(raw), v)
		}
	}
	return out
}

func (s *source) value(name string, p schema, depth int) any {
	switch {
	case p.Const != nil:
		return p.Const
	case len(p.Enum) > 0:
		return s.oneOf(p.Enum)
	}
	switch p.kind() {
	case "integer", "number":
		return s.number(p)
	case "boolean":
		return strings.Contains(strings.ToLower(s.prompt), strings.ToLower(name))
	case "array":
		return s.list(name, p, depth)
	case "object":
		return s.object(p, depth+1)
	case "null":
		return nil
	}
	return s.text(name, p)
}

func (s *source) oneOf(enum []jsontext.Value) any {
	said := tokens(s.prompt)
	for _, v := range enum {
		var text string
		if json.Unmarshal(v, &text) == nil && slices.Contains(said, strings.ToLower(text)) {
			return v
		}
	}
	return enum[0]
}

func (s *source) number(p schema) any {
	n := 1.0
	switch {
	case len(s.numbers) > 0:
		n, s.numbers = s.numbers[0], s.numbers[1:]
	case p.Default.Kind() == '0':
		return p.Default
	case p.Minimum != nil:
		n = *p.Minimum
	}
	if p.kind() == "integer" {
		return int64(n)
	}
	return n
}

func (s *source) list(name string, p schema, depth int) any {
	out := []any{}
	item := readSchema(p.Items)
	for len(out) < maxRepeat {
		k := item.kind()
		number := k == "integer" || k == "number"
		more := number && len(s.numbers) > 0 || k == "string" && len(s.quoted)+len(s.paths) > 0 && len(item.Enum) == 0
		if !more && len(out) >= min(max(p.MinItems, 1), maxMade) {
			break
		}
		if !more && depth >= maxDepth {
			break
		}
		out = append(out, s.value(name, item, depth+1))
	}
	return out
}

// text is the quoted text, path or address that suits the argument's name, else what the prompt says besides the
// words that chose the tool.
func (s *source) text(name string, p schema) any {
	lower := strings.ToLower(name)
	wantsPath := false
	for _, w := range []string{"path", "file", "dir", "folder", "url", "uri"} {
		wantsPath = wantsPath || strings.Contains(lower, w)
	}
	take := func(from *[]string) (any, bool) {
		if len(*from) == 0 {
			return nil, false
		}
		v := (*from)[0]
		*from = (*from)[1:]
		return v, true
	}
	first, second := &s.quoted, &s.paths
	if wantsPath {
		first, second = second, first
	}
	if v, ok := take(first); ok {
		return v
	}
	if v, ok := take(second); ok {
		return v
	}
	switch {
	case p.Default.Kind() == '"':
		return p.Default
	case wantsPath:
		return "."
	case s.rest != "":
		return s.rest
	}
	return s.prompt
}

// typed reads the value of a name=value pair as the schema wants it.
func typed(p schema, v string) any {
	switch p.kind() {
	case "integer":
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	case "number":
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return n
		}
	case "boolean":
		return v == "true" || v == "yes" || v == "1"
	case "array":
		out := []any{}
		for part := range strings.SplitSeq(v, ",") {
			out = append(out, typed(readSchema(p.Items), part))
		}
		return out
	}
	return v
}
