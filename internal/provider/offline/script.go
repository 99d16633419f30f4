package offline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/provider"
	"magi-code/internal/tool"
)

// directive is one line of a script.
type directive struct {
	verb  string
	count int // parallel, slow
	name  string
	text  string // everything behind
}

// parse reads the answers that a script asks for; none when the prompt is no script.
func parse(prompt string) [][]directive {
	var answers [][]directive
	var current []directive
	for line := range strings.Lines(prompt) {
		line = strings.TrimSpace(line)
		if line == "" {
			if len(current) > 0 {
				answers, current = append(answers, current), nil
			}
			continue
		}
		if d, ok := parseLine(line); ok {
			current = append(current, d)
		}
	}
	if len(current) > 0 {
		answers = append(answers, current)
	}
	return answers
}

func parseLine(line string) (directive, bool) {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	d := directive{verb: verb, count: 1, text: rest}
	switch verb {
	case "call", "parallel":
		if verb == "parallel" {
			var n string
			n, rest, _ = strings.Cut(rest, " ")
			if d.count = number(n); d.count == 0 {
				return directive{}, false
			}
		}
		d.name, d.text, _ = strings.Cut(strings.TrimSpace(rest), " ")
		d.text = strings.TrimSpace(d.text)
		// "call the tool" is English: what follows the name of a scripted call is JSON or nothing.
		return d, d.name != "" && (d.text == "" || strings.HasPrefix(d.text, "{") || strings.HasPrefix(d.text, "["))
	case "slow":
		n, text, _ := strings.Cut(rest, " ")
		d.count, d.text = number(n), strings.TrimSpace(text)
		return d, d.count > 0
	case "wait":
		return d, rest == ""
	case "say", "think", "fail", "retry":
		return d, rest != ""
	}
	return directive{}, false
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxRepeat {
		return 0
	}
	return n
}

// follow does what a line says.
func (a *answer) follow(d directive, tools []tool.Tool) {
	switch d.verb {
	case "call", "parallel":
		t, problem := find(d.name, tools)
		if problem != "" {
			a.say(problem)
			return
		}
		for range d.count {
			a.call(t, input(t, d.text))
		}
	case "say":
		a.say(d.text)
	case "think":
		a.stream(provider.ThinkingDelta, provider.Thinking, pieces(d.text), 0)
	case "slow":
		a.stream(provider.TextDelta, provider.Text, repeat(d.text, d.count), slowWait)
	case "wait":
		<-a.ctx.Done()
		a.fail(&provider.Error{Provider: Name, Message: "the request was cancelled", Cause: a.ctx.Err()})
	case "retry":
		a.send(provider.Event{Kind: provider.Retrying, Text: d.text})
	case "fail":
		a.fail(&provider.Error{Provider: Name, Message: d.text})
	}
}

// repeat makes n words of a text, starting over at its end.
func repeat(text string, n int) []string {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		fields = []string{"word"}
	}
	out := make([]string, n)
	for i := range out {
		out[i] = fields[i%len(fields)] + " "
	}
	return out
}

func (a *answer) call(t tool.Tool, input jsontext.Value) {
	id := fmt.Sprintf("offline_%d_%d", a.turn, a.calls)
	a.calls++
	a.usage.Output += 1 + words(string(input))
	a.send(provider.Event{Kind: provider.BlockDone, Block: provider.Block{
		Kind: provider.ToolCall, CallID: id, Name: t.Name, Input: input}})
}

// find finds the tool of that name, or the only one whose own name on its server it is, or the only one whose name
// contains it.
func find(name string, tools []tool.Tool) (found tool.Tool, problem string) {
	var remote, partial []tool.Tool
	for _, t := range tools {
		switch {
		case t.Name == name:
			return t, ""
		case t.Remote == name:
			remote = append(remote, t)
		}
		if strings.Contains(strings.ToLower(t.Name), strings.ToLower(name)) {
			partial = append(partial, t)
		}
	}
	switch {
	case len(remote) == 1:
		return remote[0], ""
	case len(partial) == 1:
		return partial[0], ""
	case len(partial) == 0:
		return found, fmt.Sprintf("The offline planner knows no tool named %q. %s", name, list(tools))
	}
	return found, fmt.Sprintf("The offline planner knows several tools with %q in their name. %s", name, list(partial))
}

func list(tools []tool.Tool) string {
	if len(tools) == 0 {
		return "There are no tools that it could call."
	}
	var names []string
	for _, t := range tools[:min(len(tools), maxListed)] {
		names = append(names, t.Name)
	}
	text := "It can call: " + strings.Join(names, ", ")
	if more := len(tools) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "."
}

// input makes the input of a call from what a script wrote: whole inputs stay as they are, arguments are wrapped for
// MCP tools, and a missing intent is added.
func input(t tool.Tool, written string) jsontext.Value {
	if written == "" {
		written = "{}"
	}
	v := jsontext.Value(written)
	var members map[string]jsontext.Value
	if v.Kind() != '{' || json.Unmarshal(v, &members) != nil {
		return provider.Input(written) // as a model that writes nonsense
	}
	_, hasIntent := members["intent"]
	switch t.Origin {
	case tool.MCP:
		if inner := members["arguments"]; inner.Kind() == '{' && (len(members) == 1 || hasIntent && len(members) == 2) {
			return withIntent(v, hasIntent)
		}
		return jsontext.Value(`{"intent":"` + intent + `","arguments":` + written + `}`)
	case tool.Builtin:
		return withIntent(v, hasIntent)
	}
	return v
}

func withIntent(object jsontext.Value, has bool) jsontext.Value {
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(object)), "{"))
	switch {
	case has:
		return object
	case rest == "}":
		return jsontext.Value(`{"intent":"` + intent + `"}`)
	}
	return jsontext.Value(`{"intent":"` + intent + `",` + rest)
}
