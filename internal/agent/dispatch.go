package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/codemode"
	"magi-code/internal/hook"
	"magi-code/internal/permission"
	"magi-code/internal/session"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// request is a call as a model or a script wrote it.
type request struct {
	id, under string
	name      string
	input     []byte
	script    bool // made by code_mode
}

// dispatch is the one door to every tool, for direct calls, calls of scripts and calls of subagents. It returns the whole
// result without known secrets; the caller cuts it to what its reader may have. It never panics and may be called
// concurrently.
func (r *run) dispatch(ctx context.Context, q request) (result tool.Result) {
	info := &CallInfo{ID: q.id, Under: q.under, Tool: untrusted.Head(q.name, 2*maxNameShown), Input: r.shown(q.input)}
	defer func() {
		if p := recover(); p != nil {
			result = r.conclude(info, 0, tool.ErrorResult(r.t.c.cfg.Scrub.Text(fmt.Sprintf("the call failed inside magi-code: %v", p))))
		}
	}()
	t, call, refusal := r.resolve(q, info)
	r.emit(Event{Kind: EventCall, Call: info})
	// A call that is not in the session does not run: history must never know less than the world.
	if err := r.t.out.record(session.Entry{Kind: session.Call, CallID: q.id, Under: q.under, Tool: info.Tool, Input: info.Input}); err != nil {
		return r.conclude(info, 0, tool.ErrorResult("the call was not run, because it could not be recorded: "+err.Error()))
	}
	if refusal == "" {
		refusal = r.permission(ctx, t, call, info)
	}
	if refusal == "" {
		refusal = r.hooks(ctx, hook.BeforeTool, info, tool.Result{})
	}
	if refusal == "" && ctx.Err() != nil {
		refusal = interruptedBefore
	}
	if refusal != "" {
		return r.conclude(info, 0, tool.ErrorResult(r.t.c.cfg.Scrub.Text(refusal)))
	}
	r.emit(Event{Kind: EventRunning, Call: info})
	began := time.Now()
	result = scrubResult(r.t.c.cfg.Scrub, perform(ctx, t, call))
	took := time.Since(began)
	r.hooks(ctx, hook.AfterTool, info, result)
	return r.conclude(info, took, result)
}

// shown is the input as people, hooks and the session get it. One that is too large for any call is refused later; its
// beginning will do.
func (r *run) shown(input []byte) jsontext.Value {
	if len(input) > tool.MaxInput {
		input = []byte(untrusted.Head(string(input), maxOversized))
	}
	return scrubJSON(r.t.c.cfg.Scrub, input)
}

// maxOversized is how many bytes are kept of an input that is too large to be a call.
const maxOversized = 1 << 10

// interruptedBefore is the result of a call that was interrupted when nothing had run yet.
const interruptedBefore = "interrupted before it ran"

// resolve finds the tool in the frozen kit and validates the input. It completes info for people.
func (r *run) resolve(q request, info *CallInfo) (t tool.Tool, call tool.Call, refusal string) {
	t, found := r.kit.all.Get(q.name)
	if !found {
		among := r.kit.direct
		if q.script {
			among = r.kit.script
		}
		return t, call, unknown(q.name, among)
	}
	info.Server, info.Remote = t.Server, t.Remote
	if sentence := r.barred(t, q.script); sentence != "" {
		return t, call, sentence
	}
	call, err := tool.Parse(t, q.id, q.input)
	if err != nil {
		return t, call, err.Error()
	}
	info.Intent = r.t.c.cfg.Scrub.Text(call.Intent)
	return t, call, ""
}

// perform runs the tool. A panic or an error of its Run is a failed result.
func perform(ctx context.Context, t tool.Tool, call tool.Call) (result tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			result = tool.ErrorResult(fmt.Sprintf("%s failed inside magi-code: %v", t.Name, p))
		}
	}()
	result, err := t.Run(ctx, call)
	switch {
	case err == nil:
		return result
	case ctx.Err() != nil:
		return tool.ErrorResult(interruptedText)
	default:
		return tool.ErrorResult(err.Error())
	}
}

// conclude records and tells the end of a call.
func (r *run) conclude(info *CallInfo, took time.Duration, result tool.Result) tool.Result {
	text, _ := untrusted.Cut(result.Plain(), r.t.c.cfg.ResultLimit)
	err := r.t.out.record(session.Entry{
		Kind: session.Result, CallID: info.ID, Under: info.Under, Tool: info.Tool, Text: text, IsError: result.IsError,
	})
	if err != nil {
		r.emit(Event{Kind: EventNotice, Text: "a result could not be recorded: " + err.Error()})
	}
	r.emit(Event{Kind: EventResult, Call: info, Text: text, IsError: result.IsError, Took: took, Diff: result.Diff})
	return result
}

// hookGrace is how long the hooks after a call have when the turn was interrupted: the call itself took its time to end, and Ctrl-C is
// answered within a second.
const hookGrace = 500 * time.Millisecond

// hooks runs the hooks of one event and returns the refusal of a call. Hooks after a call run even when the turn was
// interrupted meanwhile, for what happened has happened.
func (r *run) hooks(ctx context.Context, event hook.Event, info *CallInfo, result tool.Result) (refusal string) {
	cfg := &r.t.c.cfg
	if cfg.Hooks == nil {
		return ""
	}
	p := hook.Payload{
		Event: event, Dir: cfg.Dir, CallID: info.ID, Tool: info.Tool, Server: info.Server, Path: r.path, Input: info.Input,
	}
	if cfg.Session != nil {
		p.Session = cfg.Session.ID()
	}
	if event == hook.AfterTool {
		p.Result, _ = untrusted.Cut(result.Plain(), cfg.ResultLimit)
		p.IsError = result.IsError
		if ctx.Err() != nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), hookGrace)
			defer cancel()
		}
	}
	warnings, refusal := cfg.Hooks.Run(ctx, p)
	for _, w := range warnings {
		r.emit(Event{Kind: EventNotice, Text: cfg.Scrub.Text(w)})
	}
	if refusal != "" {
		return "refused by a hook: " + refusal
	}
	return ""
}

// permission decides about a call, by rule or by a question. It returns the refusal, "" when the call may run.
func (r *run) permission(ctx context.Context, t tool.Tool, call tool.Call, info *CallInfo) (refusal string) {
	cfg := &r.t.c.cfg
	always := cfg.AlwaysAsk != nil && cfg.AlwaysAsk(call)
	switch cfg.Gate.decide(t) {
	case permission.Deny:
		return fmt.Sprintf("%s is denied by the permission rule %q", t.Name, cfg.Gate.deniedBy(t.Name))
	case permission.Allow:
		if !always {
			return ""
		}
	}
	if cfg.Ask == nil {
		return nobodyToAsk(t.Name, always, cfg.Gate.askedBy(t.Name))
	}
	defer codemode.Hold(ctx)()
	// One question at a time: a person decides about what stands on the screen.
	select {
	case r.t.c.asking <- struct{}{}:
		defer func() { <-r.t.c.asking }()
	case <-ctx.Done():
		return interruptedBefore
	}
	if !always && cfg.Gate.decide(t) == permission.Allow { // granted by the answer to the question before
		return ""
	}
	if ctx.Err() != nil {
		return interruptedBefore
	}
	return r.question(ctx, t, call, info, always)
}

// nobodyToAsk is the refusal of a call that needs a person where there is none; rule is the ask rule that demands it, if any.
func nobodyToAsk(name string, always bool, rule string) string {
	if always {
		return name + " would touch files that decide what magi-code may do; that needs a person's answer each time, and nobody can be asked here"
	}
	if rule != "" { // no allow rule and no --allow would help
		return fmt.Sprintf("%s is asked about by the permission rule %q and nobody can be asked here; to allow it, remove that rule from permissions.ask", name, rule)
	}
	return fmt.Sprintf("%s needs permission and nobody can be asked here; to allow it, run with --allow '%s' or add %q to permissions.allow in $MC_HOME/settings.json", name, name, name)
}

// question puts one call to the person.
func (r *run) question(ctx context.Context, t tool.Tool, call tool.Call, info *CallInfo, always bool) (refusal string) {
	cfg := &r.t.c.cfg
	q := permission.Question{
		Tool: t.Name, Server: t.Server, Remote: t.Remote, Intent: call.Intent, Input: call.Input,
		Diff: r.preview(ctx, call), Path: r.path, Protected: always,
	}
	r.emit(Event{Kind: EventAsk, Call: info})
	answer, err := cfg.Ask(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			return interruptedBefore
		}
		return "the person could not be asked: " + err.Error()
	}
	switch answer {
	case permission.Once:
	case permission.Session, permission.Always:
		if always {
			r.emit(Event{Kind: EventNotice, Text: t.Name + " was allowed this once: it touches files that are asked about each time"})
			break
		}
		r.grant(ctx, t.Name, answer)
	default:
		return "the person declined this call"
	}
	return ""
}

// grant keeps an answer that holds for more than one call.
func (r *run) grant(ctx context.Context, name string, answer permission.Answer) {
	gate, scrub := r.t.c.cfg.Gate, r.t.c.cfg.Scrub
	if answer == permission.Session {
		gate.Grant(name)
		return
	}
	if err := gate.grantAlways(ctx, name); err != nil {
		r.emit(Event{Kind: EventNotice, Text: fmt.Sprintf("%s is allowed until magi-code ends, but the rule was not saved: %s", name, scrub.Text(err.Error()))})
		return
	}
	if rule := gate.askedBy(name); rule != "" {
		r.emit(Event{Kind: EventNotice, Text: fmt.Sprintf("%s is allowed until magi-code ends; later it is asked about again, because of the ask rule %q", name, rule)})
	}
}

// preview is the diff that the call would make, "" when there is none to show.
func (r *run) preview(ctx context.Context, call tool.Call) (diff string) {
	if r.t.c.cfg.Preview == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			diff = ""
		}
	}()
	return strings.TrimRight(r.t.c.cfg.Preview(ctx, call), "\n")
}
