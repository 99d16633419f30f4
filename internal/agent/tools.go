package agent

import (
	"fmt"
	"slices"
	"strings"

	"magi-code/internal/permission"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// kit is what one run can call. It is made when the run starts and never changes: a refresh of a server in another
// conversation does not reach it.
type kit struct {
	all    tool.Set // everything there is, to tell "there is no such tool" from "you may not"
	direct tool.Set // advertised to the model
	script tool.Set // within reach of code_mode
}

// freeze makes the common catalog of a turn: own tools' names are kept free, and no secret stands in what is advertised.
func (t *turn) freeze(set tool.Set) (notices []string, err error) {
	tools := set.All()
	kept := tools[:0]
	for _, one := range tools {
		if one.Name == codeModeName || one.Name == subagentsName {
			notices = append(notices, fmt.Sprintf("the tool %q of %s is left out: the name belongs to magi-code", one.Name, provenance(one)))
			continue
		}
		if s := t.c.cfg.Scrub; s != nil {
			one.Description, one.Schema = s.Text(one.Description), scrubSchema(s, one.Schema)
		}
		kept = append(kept, one)
	}
	t.frozen, err = tool.NewSet(kept...)
	return notices, err
}

func provenance(t tool.Tool) string {
	if t.Origin == tool.MCP {
		return fmt.Sprintf("server %q", t.Server)
	}
	return "origin " + string(t.Origin)
}

// equip makes the run's kit from the frozen catalog: rules, ceiling and the two exclusion lists, each applied here and
// asked again at dispatch.
func (r *run) equip() error {
	r.children, r.scripted = make(chan struct{}, maxParallel), make(chan struct{}, maxParallel)
	tools := r.t.frozen.All()
	if r.depth < maxDepth {
		tools = append(tools, r.subagentsTool())
	}
	base, err := tool.NewSet(tools...)
	if err != nil {
		return err
	}
	r.kit.script = base.Filter(func(t tool.Tool) bool { return r.barred(t, true) == "" })
	directly := base.Filter(func(t tool.Tool) bool { return r.barred(t, false) == "" })
	hidden := r.kit.script.Filter(func(t tool.Tool) bool { _, ok := directly.Get(t.Name); return !ok })
	if r.kit.all, err = tool.NewSet(append(tools, r.codeModeTool(hidden))...); err != nil {
		return err
	}
	r.kit.direct = r.kit.all.Filter(func(t tool.Tool) bool { return r.barred(t, false) == "" })
	return nil
}

// barred says in a sentence why this run may not call a tool at all, "" when it may.
func (r *run) barred(t tool.Tool, script bool) string {
	cfg := &r.t.c.cfg
	if !r.top.permits(t) {
		return fmt.Sprintf("%s is not among the tools of this subagent", t.Name)
	}
	if r.t.c.cfg.Gate.decide(t) == permission.Deny {
		return fmt.Sprintf("%s is denied by the permission rule %q", t.Name, cfg.Gate.deniedBy(t.Name))
	}
	if script {
		if t.Name == codeModeName {
			return codeModeName + " cannot be called from inside a script"
		}
		if p := firstMatch(r.t.excludeCodeMode, t.Name); p != "" {
			return fmt.Sprintf("%s is excluded from Code Mode by %q", t.Name, p)
		}
		return ""
	}
	if p := firstMatch(r.t.excludeDirect, t.Name); p != "" {
		sentence := fmt.Sprintf("%s is excluded from direct use by %q", t.Name, p)
		if r.barred(t, true) == "" {
			sentence += "; a script in " + codeModeName + " can call it"
		}
		return sentence
	}
	return ""
}

const (
	// maxSuggestions is how many close names an unknown name is answered with: more would be noise.
	maxSuggestions = 5
	// maxNameShown is how many bytes of a name that somebody made up come back, the length of the longest good one.
	maxNameShown = 64
)

// unknown is the answer to a name that is not there.
func unknown(name string, among tool.Set) string {
	shown := untrusted.Head(untrusted.Line(name), maxNameShown)
	close := closeNames(name, among)
	if len(close) == 0 {
		return fmt.Sprintf("there is no tool named %q", shown)
	}
	return fmt.Sprintf("there is no tool named %q; close names: %s", shown, strings.Join(close, ", "))
}

// closeNames returns the names of a set that somebody could have meant, the closest first.
func closeNames(name string, among tool.Set) []string {
	if len(name) > 2*maxNameShown {
		return nil
	}
	type scored struct {
		name string
		far  int
	}
	var found []scored
	lower := strings.ToLower(name)
	for _, t := range among.All() {
		l := strings.ToLower(t.Name)
		far := tool.Distance(lower, l)
		switch {
		case strings.EqualFold(t.Remote, name) || strings.HasSuffix(l, "__"+lower):
			far = 0
		case len(lower) >= 3 && strings.Contains(l, lower):
			far = min(far, 2)
		}
		if far <= 1+len(name)/4 {
			found = append(found, scored{t.Name, far})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return a.far - b.far })
	var names []string
	for _, f := range found[:min(len(found), maxSuggestions)] {
		names = append(names, f.name)
	}
	return names
}
