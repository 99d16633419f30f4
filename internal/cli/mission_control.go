package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"magi-code/internal/agent"
	"magi-code/internal/builtin"
	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/permission"
	"magi-code/internal/safefile"
	"magi-code/internal/session"
	"magi-code/internal/settings"
	"magi-code/internal/tool"
	"magi-code/internal/tui"
	"magi-code/internal/untrusted"
)

// cockpit is what Mission Control's funcs share. They are called from several goroutines.
type cockpit struct {
	a *app
	w *workshop
	o conversationFlags

	mu      sync.Mutex
	manager *mcp.Manager
	changes []mcp.Change
	convs   []*agent.Conversation
}

// missionControl runs the terminal interface and prints what is left to say when the terminal is restored.
func (a *app) missionControl(ctx context.Context, o conversationFlags, prompt string) error {
	if !a.inTTY || !a.outTTY {
		return hinted(exitUsage, usage("Mission Control needs a terminal"), `without one, use magi-code run "PROMPT"; magi-code --help shows all commands`)
	}
	if kind, _ := a.lookup("TERM"); kind == "dumb" { // an editor's shell, say: it would show every control sequence as text
		return hinted(exitUsage, usage("Mission Control needs a terminal that can place text, and TERM is dumb"), `here, use magi-code run "PROMPT"`)
	}
	f, err := a.folders()
	if err != nil {
		return err
	}
	o.interactive = true
	w, err := a.workshop(f, o)
	if err != nil {
		return err
	}
	resume := o.resume
	if o.cont {
		if resume, err = w.sessions.Latest(w.cwd); err != nil {
			return err
		}
	}
	c := &cockpit{a: a, w: w, o: o}
	exit, err := tui.Run(ctx, c.options(prompt, resume))
	if err != nil {
		return err
	}
	return a.afterMissionControl(ctx, exit)
}

func (c *cockpit) options(prompt, resume string) tui.Options {
	userHome, _ := os.UserHomeDir() // only to show ~
	in, _ := c.a.in.(*os.File)      // a terminal, as was checked
	var out *os.File
	if o, ok := c.a.out.(*output); ok {
		out = o.File
	}
	var names []string
	for _, e := range c.w.entries {
		if _, ok := e.Approved(); ok {
			names = append(names, e.Server.Name)
		}
	}
	return tui.Options{
		In: in, Out: out, Environ: c.a.environ, Version: buildVersion(), Dir: c.w.cwd, Home: userHome,
		Model: c.w.modelName(), Prompt: prompt, Resume: resume,
		Servers: names, Waiting: len(c.w.entries) - len(names),
		Start: c.start, NewConversation: c.newConversation,
		Entries:     c.definitions,
		Review:      c.w.servers.store.Review,
		Approve:     func(ctx context.Context, v approval.View) error { return c.w.servers.store.Approve(ctx, v, c.a.lookup) },
		Revoke:      c.w.servers.store.Revoke,
		OAuth:       c.oauth,
		Changes:     c.toolChanges,
		Sessions:    func(context.Context) ([]session.Info, error) { return c.w.sessions.List(c.w.cwd) },
		Models:      c.models,
		Permissions: c.permissions, Tools: c.tools, Exclude: c.exclude,
		Files: c.files, Shell: c.shell, Edit: c.a.editor,
		Hint:        func(err error) string { _, hint, _ := explain(err); return hint },
		HistoryFile: filepath.Join(c.w.home, "prompt-history"),
		Report:      c.report,
	}
}

// afterMissionControl prints what did not end, failures with their cures, and at last every prompt that was not run, so
// that it stands where the next thing is typed.
func (a *app) afterMissionControl(ctx context.Context, exit tui.Exit) error {
	for _, text := range exit.Unfinished {
		a.say("warning: %s", untrusted.Line(text))
	}
	if exit.Report != "" {
		a.say("a report of the crash was written to %s", untrusted.Line(exit.Report))
	}
	err := exit.Err
	if err == nil && len(exit.Failures) > 0 {
		err = failedStart(exit.Failures)
	}
	code := max(exit.Code, a.report(ctx, err))
	for _, p := range exit.Prompts {
		a.say("not run: %s", untrusted.Text(p))
	}
	if exit.Session != "" {
		a.say("go on with: magi-code --resume %s", untrusted.Line(exit.Session))
	}
	if code != exitOK {
		return silent(code, fmt.Errorf("mission control failed"))
	}
	return nil
}

func (c *cockpit) start(ctx context.Context, onStatus func(mcp.Status)) (tui.Servers, error) {
	o := c.a.managerOptions(c.w.folders, c.w.proofs())
	o.OnStatus = onStatus
	m, err := mcp.Open(ctx, o)
	if err != nil {
		return tui.Servers{}, err
	}
	c.mu.Lock()
	c.manager = m
	c.mu.Unlock()
	return tui.Servers{Status: m.Status, Failures: m.Failures, Close: m.Close}, nil
}

func (c *cockpit) newConversation(ctx context.Context, emit func(agent.Event), ask permission.Asker, resume string) (tui.Conversation, error) {
	sess, err := c.w.openSession(ctx, conversationFlags{resume: resume, noSession: c.o.noSession && resume == ""})
	if err != nil {
		return tui.Conversation{}, err
	}
	if text := c.w.moved(sess); text != "" {
		emit(agent.Event{Kind: agent.EventNotice, Text: text})
	}
	conv := c.w.conversation(c.servers, sess, ask, emit)
	out := tui.Conversation{Model: c.w.modelName(), Send: conv.Send, Close: conv.Close}
	if sess != nil {
		out.ID, out.Entries = sess.ID(), sess.Entries()
	}
	out.SetModel = func(_ context.Context, name string) error {
		p, model, err := c.a.namedModel(c.w, name)
		if err != nil {
			return err
		}
		conv.SetModel(p, model)
		return nil
	}
	c.mu.Lock()
	c.convs = append(c.convs, conv)
	c.mu.Unlock()
	return out, nil
}

// servers are those that run; a conversation may be there before them, its turns may not.
func (c *cockpit) servers() (*mcp.Manager, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manager == nil {
		return nil, errors.New("the servers are not started yet")
	}
	return c.manager, nil
}

// definitions reads both files again: /mcp shows what is there now.
func (c *cockpit) definitions(context.Context) ([]approval.Entry, []string, error) {
	config, err := definition.Load(c.w.home, c.w.cwd)
	var warnings []string
	for _, w := range config.Warnings {
		warnings = append(warnings, strings.Trim(fmt.Sprintf("%s: %s: %s: %s", w.Source, w.Server, w.Field, w.Text), ": "))
	}
	entries, checkErr := c.w.servers.store.Check(config.Servers)
	return entries, warnings, errors.Join(err, checkErr)
}

// oauth is the login state of a server that was approved when the program started.
func (c *cockpit) oauth(_ context.Context, d definition.Server) string {
	for _, e := range c.w.entries {
		if e.Server.Name == d.Name && e.Server.Source == d.Source {
			return c.a.oauthState(c.w.folders, e)
		}
	}
	return ""
}

// toolChanges is how the servers' tools differ from those of the last run. It is asked for once the servers are ready.
func (c *cockpit) toolChanges() []mcp.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manager == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), knownWait)
	defer cancel()
	if c.changes == nil {
		changes, _ := c.w.compareTools(ctx, c.manager) // not remembering costs a repeated notice at most
		c.changes = slices.Clip(append([]mcp.Change{}, changes...))
	}
	return c.changes
}

func (c *cockpit) models(context.Context) ([]string, error) {
	names := []string{"anthropic/" + anthropicModel, "openai/" + openaiModel, "offline/" + offlineModel}
	for name, e := range c.w.settings.Endpoints {
		names = append(names, name+"/"+e.Model)
	}
	if current := c.w.modelName(); c.w.model != "" && !slices.Contains(names, current) {
		names = append(names, current)
	}
	slices.Sort(names)
	return names, nil
}

func (c *cockpit) permissions(context.Context) ([]tui.Rule, error) {
	var rules []tui.Rule
	add := func(d permission.Decision, from string, patterns []string) {
		for _, p := range patterns {
			rules = append(rules, tui.Rule{Pattern: p, Decision: d, From: from})
		}
	}
	add(permission.Deny, "settings.json", c.w.settings.Deny)
	add(permission.Ask, "settings.json", c.w.settings.Ask)
	add(permission.Allow, "your answer", c.w.gate.Granted())
	add(permission.Allow, "--allow", c.o.allow)
	add(permission.Allow, "settings.json", c.w.settings.Allow)
	return rules, nil
}

func (c *cockpit) tools(ctx context.Context) ([]tui.ToolRow, error) {
	c.mu.Lock()
	m, direct, scripts := c.manager, c.w.settings.ExcludeDirect, c.w.settings.ExcludeCodeMode
	c.mu.Unlock()
	all := builtin.Tools(c.w.builtin)
	if m != nil {
		snapshot, _ := m.Prepare(ctx, mcp.Snapshot{})
		all = append(all, snapshot.Tools().All()...)
	}
	excluded := func(name string, patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return permission.Match(p, name) })
	}
	var rows []tui.ToolRow
	for _, t := range all {
		rows = append(rows, tui.ToolRow{Name: t.Name, Server: t.Server, Description: t.Description, Direct: !excluded(t.Name, direct), CodeMode: !excluded(t.Name, scripts)})
	}
	slices.SortFunc(rows, func(a, b tui.ToolRow) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

// exclude writes one of the two lists into the global settings; open conversations have it from their next turn on.
func (c *cockpit) exclude(ctx context.Context, name string, list tui.ExclusionList, excluded bool) error {
	keys := []string{"capabilities", "tools", "disabled"}
	if list == tui.CodeModeList {
		keys = []string{"capabilities", "tools", "code_mode", "disabled"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := &c.w.settings.ExcludeDirect
	if list == tui.CodeModeList {
		mine = &c.w.settings.ExcludeCodeMode
	}
	next := slices.DeleteFunc(slices.Clone(*mine), func(p string) bool { return p == name })
	if excluded {
		next = append(next, name)
	} else if slices.ContainsFunc(next, func(p string) bool { return permission.Match(p, name) }) {
		return fmt.Errorf("a pattern in %s of settings.json excludes it; change it there", strings.Join(keys, "."))
	}
	value, err := json.Marshal(nonNil(next))
	if err != nil {
		return err
	}
	if err := settings.Patch(ctx, c.w.globalSettings(), keys, value); err != nil {
		return err
	}
	*mine = next
	for _, conv := range c.convs {
		conv.SetExclusions(c.w.settings.ExcludeDirect, c.w.settings.ExcludeCodeMode)
	}
	return nil
}

// shell runs a command of the user's own on the same path as the bash tool.
func (c *cockpit) shell(ctx context.Context, command string) (string, bool, error) {
	input, err := json.Marshal(map[string]string{"intent": "the user typed it", "command": command})
	if err != nil {
		return "", false, err
	}
	for _, t := range builtin.Tools(c.w.builtin) {
		if t.Name == "bash" {
			call, err := tool.Parse(t, "shell", input)
			if err != nil {
				return "", false, err
			}
			r, err := t.Run(ctx, call)
			return r.Plain(), r.IsError, err
		}
	}
	return "", false, fmt.Errorf("there is no shell")
}

// report writes a crash report beside the sessions.
func (c *cockpit) report(text string) (string, error) {
	dir := filepath.Join(c.w.home, "crashes")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000Z")+".txt")
	return path, safefile.Create(path, []byte(c.a.scrub.Text(text)), 0o600)
}
