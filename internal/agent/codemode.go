package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/codemode"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

const (
	// maxIndex is the size in bytes of the list of hidden tools in the description of code_mode: about two thousand
	// tokens, paid once per conversation because it is cached.
	maxIndex = 8 << 10
	// maxIndexLine is the size in bytes of one line of that list.
	maxIndexLine = 160
	// maxIndented is the size in bytes up to which a script's value is shown with indentation.
	maxIndented = 8 << 10
)

const codeModeDescription = `Run a JavaScript function body that calls tools. Use it to make many calls, to filter or join large results, or to reach tools that are not advertised directly: only what the script returns comes back to you.

API (all synchronous, no await):
- tools.call(name, input) -> {success: true, content} or {success: false, error}. input is the whole call, as for a direct one: built-ins {intent, ...fields}, mcp__ tools {intent, arguments: {...}}. content is a string, or an object when the tool gives structured data. It does not throw when the tool fails.
- tools.callAll([{name, input}, ...]) -> results in the same order; the calls overlap.
- tools.list() -> [{name, description}]; tools.search(query, limit) -> the best matches; tools.describe(name) -> {name, description, inputSchema}
- tools.budget() -> {callsLeft, millisecondsLeft}
- console.log(...) is shown to you after the value.

End with "return value" (JSON). Limits: 64 KiB of source, 200 calls, 60 s, 32 MiB, 1 MiB per result, 256 KiB returned. There are no files, network, processes, timers or modules besides the tools. Every call passes the same permissions as a direct one; code_mode itself cannot be called.`

// codeModeTool makes the tool that runs scripts. hidden are the tools that only scripts reach.
func (r *run) codeModeTool(hidden tool.Set) tool.Tool {
	return tool.Tool{
		Name:        codeModeName,
		Description: codeModeDescription + index(hidden),
		Schema: jsontext.Value(`{"type":"object","properties":{` +
			`"intent":{"type":"string","description":"why this script is needed now, one short sentence"},` +
			`"code":{"type":"string","description":"the function body"}` +
			`},"required":["intent","code"],"additionalProperties":false}`),
		Origin: tool.Builtin,
		Run:    r.runCodeMode,
	}
}

// index lists hidden tools in a bounded text: name and first sentence, then how many are left.
func index(hidden tool.Set) string {
	if hidden.Len() == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nTools that only scripts can call:")
	for i, t := range hidden.All() {
		line := untrusted.Head("\n- "+t.Name+": "+firstSentence(t.Description), maxIndexLine)
		if b.Len()+len(line) > maxIndex {
			fmt.Fprintf(&b, "\n... and %d more: find them with tools.search and tools.describe", hidden.Len()-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// firstSentence returns the beginning of a description, as one line.
func firstSentence(s string) string {
	s = strings.TrimSpace(untrusted.Line(untrusted.Head(s, 4*maxIndexLine)))
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return s
}

// maxShownField bounds in bytes how much of a wrong field's place an error repeats.
const maxShownField = 80

// misfit says which field of a call does not fit the schema, in words for the model instead of the decoder's for Go programmers.
func misfit(err error) error {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return errors.New("the input does not fit the schema: it is not one JSON object with unique members")
	}
	field := untrusted.Line(untrusted.Head(strings.TrimPrefix(string(semantic.JSONPointer), "/"), maxShownField))
	if errors.Is(err, json.ErrUnknownName) {
		return fmt.Errorf("the input does not fit the schema: there is no field %q", field)
	}
	kind := "of another type"
	if semantic.GoType != nil {
		switch semantic.GoType.Kind() {
		case reflect.String:
			kind = "a string"
		case reflect.Slice:
			kind = "a list"
		case reflect.Struct:
			kind = "an object"
		}
	}
	return fmt.Errorf("the input does not fit the schema: %q must be %s", field, kind)
}

// runCodeMode runs one script. Its calls enter at the door of all calls.
func (r *run) runCodeMode(ctx context.Context, call tool.Call) (tool.Result, error) {
	var input struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(call.Arguments, &input, json.RejectUnknownMembers(true)); err != nil {
		return tool.ErrorResult(misfit(err).Error()), nil
	}
	if strings.TrimSpace(input.Code) == "" {
		return tool.ErrorResult("code is missing"), nil
	}
	var calls atomic.Int64
	host := codemode.Host{
		Call: func(ctx context.Context, name string, arguments jsontext.Value) codemode.Outcome {
			id := fmt.Sprintf("%s.%d", call.ID, calls.Add(1))
			return scriptOutcome(r.dispatch(ctx, request{id: id, under: call.ID, name: name, input: arguments, script: true}))
		},
	}
	for _, t := range r.kit.script.All() {
		host.Tools = append(host.Tools, codemode.ToolInfo{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	value, console, err := r.t.c.scripts.Run(ctx, input.Code, host, codemode.DefaultLimits())
	text := ""
	if err != nil {
		text = "the script failed: " + err.Error()
	} else {
		text = showValue(value)
		if text == "null" && console == "" && !strings.Contains(input.Code, "return") {
			text = "the script ended without a result: give back with return what you want to see"
		}
	}
	if console != "" {
		text += "\n\nconsole:\n" + strings.TrimRight(console, "\n")
	}
	if err != nil {
		return tool.ErrorResult(text), nil
	}
	return tool.TextResult(text), nil
}

// scriptOutcome turns a result into what a script gets: structured data when there is any, else text.
func scriptOutcome(result tool.Result) codemode.Outcome {
	if result.IsError {
		return codemode.Outcome{Error: result.Plain()}
	}
	if len(result.Structured) > 0 {
		return codemode.Outcome{Success: true, Content: result.Structured}
	}
	text, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(result.Plain(), "\uFFFD"))
	if err != nil {
		return codemode.Outcome{Error: "the result is not text"}
	}
	return codemode.Outcome{Success: true, Content: text}
}

// showValue writes what a script returned for a model: a string as it is, small values indented.
func showValue(v jsontext.Value) string {
	if v.Kind() == '"' {
		var s string
		if json.Unmarshal(v, &s) == nil {
			return s
		}
	}
	if len(v) <= maxIndented {
		indented := v.Clone()
		if indented.Indent(jsontext.WithIndent("  ")) == nil {
			return string(indented)
		}
	}
	return string(v)
}
