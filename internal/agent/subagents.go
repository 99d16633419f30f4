package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/codemode"
	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

const (
	// maxTasks is how many tasks one subagents call may have.
	maxTasks = 10
	// maxParallel is how many children of one run work at once, whichever calls started them, and as many more of its scripts.
	maxParallel = 4
	// maxDepth is how deep subagents nest: children may start children, those may not.
	maxDepth = 2
	// maxTaskName is the length in bytes of a task's name as people see it.
	maxTaskName = 40
	// maxPatterns is how many tool patterns a task may name.
	maxPatterns = 100
)

// task is one job of a subagents call.
type task struct {
	Name    string   `json:"name"`
	Prompt  string   `json:"prompt"`
	Mode    string   `json:"mode"`
	Profile string   `json:"profile"`
	Tools   []string `json:"tools"`

	profile *Profile
}

// taskResult is what a task gave, as a script sees it.
type taskResult struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

// subagentsTool makes the tool that starts children of this run.
func (r *run) subagentsTool() tool.Tool {
	return tool.Tool{
		Name:        subagentsName,
		Description: subagentsDescription(r.t.c.cfg.Profiles),
		Schema:      subagentsSchema(r.t.c.cfg.Profiles),
		Origin:      tool.Builtin,
		Run:         r.runSubagents,
	}
}

func subagentsDescription(profiles []Profile) string {
	var b strings.Builder
	fmt.Fprintf(&b, `Give up to %d independent tasks to subagents, of which %d work at a time. Each starts with nothing but its prompt, uses the same tools as you (or fewer), and gives back one final text. Put everything that it needs to know into the prompt.
mode "inspect" leaves only the built-in tools that read; mode "full" (the default) leaves all. "tools" narrows further, by name patterns with *. Results come in the order of the tasks; a task that fails does not end the others.`, maxTasks, maxParallel)
	if len(profiles) > 0 {
		b.WriteString("\nProfiles:")
		for _, p := range profiles {
			fmt.Fprintf(&b, "\n- %s: %s", p.Name, p.Description)
		}
	}
	return b.String()
}

func subagentsSchema(profiles []Profile) jsontext.Value {
	properties := `"name":{"type":"string","description":"short name, shown to the person"},` +
		`"prompt":{"type":"string","description":"the whole task"},` +
		`"mode":{"type":"string","enum":["inspect","full"]},` +
		`"tools":{"type":"array","items":{"type":"string"},"description":"name patterns; the child may use only tools that match one"}`
	if len(profiles) > 0 {
		var names []string
		for _, p := range profiles {
			names = append(names, `"`+p.Name+`"`)
		}
		properties += `,"profile":{"type":"string","enum":[` + strings.Join(names, ",") + `]}`
	}
	return jsontext.Value(fmt.Sprintf(`{"type":"object","properties":{`+
		`"intent":{"type":"string","description":"why these subagents are needed now, one short sentence"},`+
		`"tasks":{"type":"array","minItems":1,"maxItems":%d,"items":{"type":"object","properties":{%s},"required":["prompt"],"additionalProperties":false}}`+
		`},"required":["intent","tasks"],"additionalProperties":false}`, maxTasks, properties))
}

// parseTasks validates a call completely before anything starts.
func (r *run) parseTasks(arguments jsontext.Value) ([]task, error) {
	var input struct {
		Tasks []task `json:"tasks"`
	}
	if err := json.Unmarshal(arguments, &input, json.RejectUnknownMembers(true)); err != nil {
		return nil, misfit(err)
	}
	if n := len(input.Tasks); n == 0 || n > maxTasks {
		return nil, fmt.Errorf("tasks must hold 1 to %d tasks, not %d", maxTasks, n)
	}
	taken := map[string]bool{}
	for i := range input.Tasks {
		if err := r.checkTask(&input.Tasks[i], i+1, taken); err != nil {
			return nil, fmt.Errorf("task %d: %w", i+1, err)
		}
	}
	return input.Tasks, nil
}

func (r *run) checkTask(t *task, number int, taken map[string]bool) error {
	if strings.TrimSpace(t.Prompt) == "" {
		return errors.New("prompt is missing")
	}
	if t.Mode != "" && t.Mode != "full" && t.Mode != "inspect" {
		return errors.New(`mode must be "inspect" or "full"`)
	}
	if len(t.Tools) > maxPatterns {
		return fmt.Errorf("tools holds more than %d patterns", maxPatterns)
	}
	if t.Profile != "" {
		var names []string
		for i, p := range r.t.c.cfg.Profiles {
			names = append(names, p.Name)
			if p.Name == t.Profile {
				t.profile = &r.t.c.cfg.Profiles[i]
			}
		}
		if t.profile == nil {
			return fmt.Errorf("there is no profile %q; profiles: %s", untrusted.Head(untrusted.Line(t.Profile), maxProfileName), strings.Join(names, ", "))
		}
	}
	t.Name = untrusted.Head(strings.TrimSpace(untrusted.Line(t.Name)), maxTaskName)
	if t.Name == "" {
		t.Name = fmt.Sprintf("task %d", number)
		if t.Profile != "" {
			t.Name = t.Profile
		}
	}
	base := t.Name
	for n := 2; taken[t.Name]; n++ {
		t.Name = fmt.Sprintf("%s (%d)", base, n)
	}
	taken[t.Name] = true
	return nil
}

// runSubagents runs the tasks of one call and returns when all have ended.
func (r *run) runSubagents(ctx context.Context, call tool.Call) (tool.Result, error) {
	tasks, err := r.parseTasks(call.Arguments)
	if err != nil {
		return tool.ErrorResult(err.Error()), nil
	}
	results := make([]taskResult, len(tasks))
	places := r.children
	if codemode.Inside(ctx) {
		places = r.scripted
	}
	var work sync.WaitGroup
	for i := range tasks {
		results[i] = taskResult{Name: tasks[i].Name, Error: "interrupted before it started"}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		if ctx.Err() != nil {
			<-places
			continue
		}
		work.Go(func() {
			defer func() { <-places }()
			results[i] = r.runTask(ctx, call.ID, i+1, &tasks[i])
		})
	}
	work.Wait()
	return tasksResult(results)
}

// tasksResult is the outcome of all tasks: text for a model, the same as JSON for a script.
func tasksResult(results []taskResult) (tool.Result, error) {
	var b strings.Builder
	failed := 0
	for i, res := range results {
		state := "done"
		text := res.Text
		if !res.OK {
			failed++
			state, text = "failed: "+res.Error, res.Text
		}
		fmt.Fprintf(&b, "## %d. %s (%s)\n\n%s\n\n", i+1, res.Name, state, strings.TrimSpace(text))
	}
	structured, err := json.Marshal(results)
	if err != nil {
		return tool.Result{}, fmt.Errorf("write the results of the tasks: %w", err)
	}
	result := tool.TextResult(strings.TrimSpace(b.String()))
	result.Structured, result.IsError = structured, failed == len(results)
	return result, nil
}

// runTask runs one child to its end. Whatever happens to it is its result.
func (r *run) runTask(ctx context.Context, callID string, number int, t *task) (res taskResult) {
	path := append(append([]string(nil), r.path...), t.Name)
	tell := func(text string) { r.t.out.emit(Event{Kind: EventSubagent, Path: path, Text: text}) }
	defer func() {
		if p := recover(); p != nil {
			res = taskResult{Name: t.Name, Error: fmt.Sprintf("it failed inside magi-code: %v", p)}
		}
		if res.OK {
			tell("done")
		} else {
			tell("failed: " + res.Error)
		}
	}()
	child, err := r.child(callID, number, t, path)
	if err != nil {
		return taskResult{Name: t.Name, Error: r.t.c.cfg.Scrub.Text(err.Error())}
	}
	tell("started")
	text, stop, err := child.loop(ctx)
	res = taskResult{Name: t.Name, Text: r.t.c.cfg.Scrub.Text(text)}
	switch {
	case err != nil:
		res.Error = r.t.c.cfg.Scrub.Text(err.Error())
	case stop == StopDone:
		res.OK = true
	case stop == StopMaxTurns:
		res.Error = fmt.Sprintf("it did not finish within %d provider round trips", r.t.c.cfg.MaxTurns)
	case stop == StopMaxTokens:
		res.Error = "its answer was cut at the model's output limit"
	case stop == StopRefusal:
		res.Error = "the model refused the task"
	default:
		res.Error = "interrupted"
	}
	return res
}

// child makes the run of one task. Its ceiling is fixed and written down here, before anything of the task runs.
func (r *run) child(callID string, number int, t *task, path []string) (*run, error) {
	c := &run{
		t: r.t, path: path, depth: r.depth + 1,
		prefix: fmt.Sprintf("%s/%d/", callID, number), under: callID,
		model: r.model, history: &history{}, ids: map[string]bool{},
	}
	var profileTools []string
	if t.profile != nil {
		profileTools = t.profile.Tools
		if t.profile.Model != "" {
			c.model = t.profile.Model
		}
	}
	c.top = r.top.under(t.Mode == "inspect", profileTools, t.Tools)
	c.system = childPrompt(r.t.system, t.profile, c.top.inspect)
	if err := c.equip(); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("task %d %q: %s", number, t.Name, c.top.describe(c.kit))
	if err := r.t.out.record(session.Entry{Kind: session.Note, CallID: callID, Text: text}); err != nil {
		return nil, fmt.Errorf("record the limits of the task: %w", err)
	}
	err := c.remember(provider.Message{Role: provider.User, Blocks: []provider.Block{{Kind: provider.Text, Text: t.Prompt}}})
	return c, err
}
