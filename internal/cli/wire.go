package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"magi-code/internal/agent"
	"magi-code/internal/builtin"
	"magi-code/internal/hook"
	"magi-code/internal/mcp"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/secret"
	"magi-code/internal/session"
	"magi-code/internal/settings"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// conversationFlags are those that run, Mission Control and serve have in common.
type conversationFlags struct {
	provider, model string
	allow           []string
	resume          string
	cont, noSession bool
	interactive     bool // a provider can be chosen later
}

func (o *conversationFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.provider, "provider", "", "`NAME` of the provider: anthropic, openai, offline, or an endpoint of settings.json")
	f.StringVar(&o.model, "model", "", "`NAME` of the model")
	f.StringArrayVar(&o.allow, "allow", nil, "allow tools whose names match `PATTERN` without asking, e.g. 'mcp__github__*' (repeatable)")
	f.BoolVar(&o.cont, "continue", false, "go on with the newest session of this folder")
	f.StringVar(&o.resume, "resume", "", "go on with the session of this `ID`, or of a unique beginning of it")
	f.BoolVar(&o.noSession, "no-session", false, "keep no history on disk")
	c.PreRunE = oneOf("continue", "resume", "no-session")
}

// oneOf is cobra's check of flags that exclude each other, with our exit code.
func oneOf(flags ...string) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		given := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return !c.Flags().Changed(f) })
		if len(given) > 1 {
			return hinted(exitUsage, usage("--%s cannot be used together", strings.Join(given, " and --")), "leave one of them out")
		}
		return nil
	}
}

// workshop is everything a conversation is made of but the servers: settings, provider, gate, hooks, session store.
type workshop struct {
	servers
	settings settings.Settings
	scrub    *secret.Scrubber
	provider provider.Provider
	model    string
	gate     *agent.Gate
	hooks    *hook.Runner
	profiles []agent.Profile
	sessions *session.Store
	builtin  builtin.Options
	warnings []string
	told     *told
}

// workshop reads all configuration and chooses the provider. Nothing is started.
func (a *app) workshop(f folders, o conversationFlags) (*workshop, error) {
	s, err := loadServers(f)
	if err != nil {
		return nil, err
	}
	set, ws, err := settings.Load(s.globalSettings(), s.projectSettings())
	if err != nil {
		return nil, hinted(exitConfig, err, "")
	}
	w := &workshop{servers: s, settings: set, scrub: a.scrub, sessions: session.NewStore(s.sessionsDir()), told: &told{}}
	for _, x := range ws {
		w.warnings = append(w.warnings, fmt.Sprintf("%s: %s: %s", x.Path, x.Key, x.Text))
	}
	for _, p := range o.allow {
		if err := permission.Valid(p); err != nil {
			return nil, hinted(exitUsage, usage("--allow %q: %w", p, err), "a pattern is a tool name in which * stands for any characters")
		}
	}
	if w.provider, w.model, err = a.provider(w, o); err != nil {
		return nil, err
	}
	rules := permission.Rules{Allow: append(slices.Clone(set.Allow), o.allow...), Ask: set.Ask, Deny: set.Deny}
	w.gate = agent.NewGate(rules, func(ctx context.Context, pattern string) error {
		return allowAlways(ctx, s.globalSettings(), pattern)
	})
	var hooks []hook.Hook
	for _, h := range set.Hooks {
		hooks = append(hooks, hook.Hook{Event: hook.Event(h.Event), Tools: h.Tools, Command: h.Command, Timeout: time.Duration(h.TimeoutMs) * time.Millisecond, Block: h.OnFailure == "block"})
	}
	env := a.childEnviron(set)
	w.hooks = hook.NewRunner(hooks, s.cwd, env)
	profiles, pw := agent.LoadProfiles(filepath.Join(s.home, "subagents"))
	w.profiles, w.warnings = profiles, append(w.warnings, pw...)
	w.builtin = builtin.Options{
		Dir: s.cwd, ExtraRoots: set.WorkspaceRoots, Env: env,
		Protected: []string{s.home, s.projectMCP(), filepath.Dir(s.projectSettings())},
	}
	return w, nil
}

// childEnviron is the environment of bash and hooks: ours without the keys of providers.
func (a *app) childEnviron(set settings.Settings) []string {
	keys := keyVariables()
	for _, e := range set.Endpoints {
		keys = append(keys, e.APIKeyEnv)
	}
	return slices.DeleteFunc(slices.Clone(a.environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(keys, name)
	})
}

// allowAlways adds a pattern to permissions.allow of the global settings.
func allowAlways(ctx context.Context, path, pattern string) error {
	return settings.Update(ctx, path, []string{"permissions", "allow"}, func(old jsontext.Value) (jsontext.Value, error) {
		var list []string
		if old != nil {
			if err := json.Unmarshal(old, &list); err != nil {
				return nil, fmt.Errorf("permissions.allow in %s is no list of patterns: %w", path, err)
			}
		}
		if slices.Contains(list, pattern) {
			return old, nil
		}
		return json.Marshal(append(list, pattern))
	})
}

// startServers opens all approved servers. Any failure is an error for each failed server, after all have ended.
func (a *app) startServers(ctx context.Context, w *workshop, onStatus func(mcp.Status)) (*mcp.Manager, error) {
	o := a.managerOptions(w.folders, w.proofs())
	o.OnStatus = onStatus
	m, err := mcp.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	failures := m.Failures()
	if len(failures) == 0 && ctx.Err() == nil {
		return m, nil
	}
	closeManager(ctx, m)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, failedStart(failures)
}

// failedStart is an error for each server that did not start, with both cures.
func failedStart(failures []*mcp.Error) error {
	var all []error
	for _, f := range failures {
		hint := "fix it, or disable it with magi-code mcp revoke " + f.Server
		if f.Hint != "" {
			hint = f.Hint + "; or disable it with magi-code mcp revoke " + f.Server
		}
		all = append(all, hinted(phaseCode(f.Phase), f, hint))
	}
	return errors.Join(all...)
}

// conversation makes one conversation on the servers, which running returns once a turn begins. sess may be nil.
func (w *workshop) conversation(running func() (*mcp.Manager, error), sess *session.Session, ask permission.Asker, emit func(agent.Event), extra ...tool.Tool) *agent.Conversation {
	var last mcp.Snapshot
	first := true
	return agent.New(agent.Config{
		Provider: w.provider, Model: w.model, Dir: w.cwd,
		Tools: func(ctx context.Context) (tool.Set, []string, error) {
			m, err := running()
			if err != nil {
				return tool.Set{}, nil, err
			}
			if first {
				first, last = false, w.told.last()
			}
			snapshot, changes := m.Prepare(ctx, last)
			last = snapshot
			w.told.set(snapshot)
			all := append(snapshot.Tools().All(), builtin.Tools(w.builtin)...)
			set, err := tool.NewSet(append(all, extra...)...)
			return set, changeNotices(changes), err
		},
		Gate: w.gate, Ask: ask, Hooks: w.hooks, Session: sess,
		Preview:       func(ctx context.Context, c tool.Call) string { return builtin.Preview(ctx, w.builtin, c) },
		AlwaysAsk:     func(c tool.Call) bool { return builtin.TouchesProtected(w.builtin, c) },
		ExcludeDirect: w.settings.ExcludeDirect, ExcludeCodeMode: w.settings.ExcludeCodeMode,
		Profiles: w.profiles, MaxTurns: w.settings.MaxTurns, ResultLimit: w.settings.ResultLimit,
		Scrub: w.scrub, Emit: emit,
	})
}

// maxNamedTools bounds the names in a notice; /mcp shows them all.
const maxNamedTools = 12

// changeNotices says in one line per server how its tools changed.
func changeNotices(changes []mcp.Change) (out []string) {
	for _, c := range changes {
		var parts []string
		for _, p := range []struct {
			what  string
			names []string
		}{{"added", c.Added}, {"removed", c.Removed}, {"changed", c.Changed}} {
			if len(p.names) > 0 {
				shown, more := p.names, ""
				if len(shown) > maxNamedTools {
					shown, more = shown[:maxNamedTools], fmt.Sprintf(" and %d more", len(p.names)-maxNamedTools)
				}
				parts = append(parts, p.what+" "+strings.Join(shown, ", ")+more)
			}
		}
		out = append(out, untrusted.Line(fmt.Sprintf("the tools of server %q changed: %s", c.Server, strings.Join(parts, "; "))))
	}
	return out
}

// these are servers that run already.
func these(m *mcp.Manager) func() (*mcp.Manager, error) {
	return func() (*mcp.Manager, error) { return m, nil }
}

// moved tells that a session began in another folder than the one it goes on in, and is empty otherwise.
func (w *workshop) moved(s *session.Session) string {
	if s == nil || s.Dir() == "" || s.Dir() == w.cwd {
		return ""
	}
	return fmt.Sprintf("this session began in %s; its tools now work in %s", untrusted.Line(s.Dir()), untrusted.Line(w.cwd))
}

// openSession opens or creates the session that the flags ask for; nil for --no-session.
func (w *workshop) openSession(ctx context.Context, o conversationFlags) (*session.Session, error) {
	if o.noSession {
		return nil, nil
	}
	id := o.resume
	if o.cont {
		latest, err := w.sessions.Latest(w.cwd)
		if err != nil {
			return nil, err
		}
		if latest == "" {
			return nil, hinted(exitConfig, fmt.Errorf("there is no session of this folder to continue"), "leave --continue out to start one")
		}
		id = latest
	}
	if id == "" {
		return w.sessions.Create(w.cwd)
	}
	s, err := w.sessions.Open(ctx, id)
	if err != nil {
		return nil, hinted(exitConfig, err, "")
	}
	return s, nil
}
