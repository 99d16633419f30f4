package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/settings"
	"magi-code/internal/untrusted"
)

// listed is a server in the output of mcp list --json.
type listed struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	URL      string  `json:"url,omitempty"`
	Source   string  `json:"source"`
	Scope    string  `json:"scope"`
	Approval string  `json:"approval"`
	Enabled  bool    `json:"enabled"`
	OAuth    string  `json:"oauth,omitempty"`
	Timeout  int     `json:"timeoutSeconds"`
	Result   *probed `json:"result,omitempty"` // enabled servers only
}

// probed is how the connection to a server went.
type probed struct {
	OK           bool   `json:"ok"`
	Milliseconds int64  `json:"milliseconds"`
	Tools        int    `json:"tools"`
	Omitted      int    `json:"omitted,omitempty"`
	Phase        string `json:"phase,omitempty"`
	Error        string `json:"error,omitempty"`
	Hint         string `json:"hint,omitempty"`
	Stderr       string `json:"stderr,omitempty"`
}

func newList(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Show every configured server, its approval, and whether it works",
		Long: `Shows every server of both .mcp.json files. Approved ones are started, all at once, through initialize and
tools/list, and ended again. Failures go to stderr with their phase; the exit code is 0 when the list itself ran.`,
		Example: "  magi-code mcp list\n  magi-code mcp list --json | jq '.servers[] | select(.enabled | not) | .name'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.list(cmd.Context(), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) list(ctx context.Context, asJSON bool) error {
	s, err := a.loadServers()
	if err != nil {
		return err
	}
	_, ws, err := settings.Load(s.globalSettings(), s.projectSettings())
	if err != nil {
		return hinted(exitConfig, err, "")
	}
	for _, w := range ws {
		a.say("warning: %s", untrusted.Line(w.Path+": "+w.Key+": "+w.Text))
	}
	status := a.probeAll(ctx, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var rows []listed
	for _, e := range s.entries {
		rows = append(rows, a.row(s.folders, e, status))
	}
	if asJSON {
		a.warn(s.config.Warnings)
		return a.printJSON(map[string]any{"servers": nonNil(rows), "warnings": warningTexts(s.config.Warnings)})
	}
	return a.printList(s, rows)
}

// probeAll probes all approved servers at once. Each is ended as soon as it has answered, beside the start of the others.
func (a *app) probeAll(ctx context.Context, s servers) map[string]mcp.Status {
	proofs := s.proofs()
	all := make([]mcp.Status, len(proofs))
	var wg sync.WaitGroup
	for i, p := range proofs {
		wg.Go(func() {
			all[i], _ = mcp.Probe(ctx, a.managerOptions(s.folders, []approval.Approved{p})) // the status holds the error
		})
	}
	wg.Wait()
	status := map[string]mcp.Status{}
	for _, st := range all {
		status[st.Name] = st
	}
	return status
}

func (a *app) row(f folders, e approval.Entry, status map[string]mcp.Status) listed {
	d := e.Server
	l := listed{
		Name: d.Name, Type: string(d.Type), URL: untrusted.Line(d.DisplayURL()), Source: d.Source, Scope: string(d.Scope),
		Approval: e.State.String(), Timeout: d.Timeout, OAuth: a.oauthState(f, e),
	}
	_, l.Enabled = e.Approved()
	if st, ok := status[d.Name]; ok && l.Enabled {
		p := &probed{OK: st.State == mcp.Ready || st.Err == nil, Milliseconds: st.Took.Milliseconds(), Tools: len(st.Tools), Omitted: len(st.Omitted)}
		if st.Err != nil {
			p.Phase, p.Error, p.Hint, p.Stderr = string(st.Err.Phase), untrusted.Line(st.Err.Text), untrusted.Line(st.Err.Hint), untrusted.Text(st.Err.Stderr)
		}
		l.Result = p
	}
	return l
}

func (a *app) printList(s servers, rows []listed) error {
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "no servers configured")
		a.warn(s.config.Warnings)
		a.say("hint: add one with magi-code mcp add NAME -- COMMAND [ARG...], or write %s", untrusted.Line(s.projectMCP()))
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	oauth := ""
	for _, r := range rows {
		if r.OAuth != "" {
			oauth = "\tOAUTH"
		}
	}
	fmt.Fprintln(w, "NAME\tTRANSPORT\tSTATE"+oauth+"\tSCOPE\tRESULT")
	for i, r := range rows {
		state := "disabled: " + r.Approval
		if r.Enabled {
			state = "enabled"
		}
		cells := []string{r.Name, transportText(s.entries[i].Server), state}
		if oauth != "" {
			cells = append(cells, or(r.OAuth, "-"))
		}
		fmt.Fprintln(w, strings.Join(append(cells, r.Scope, r.Result.text()), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.warn(s.config.Warnings)
	for _, r := range rows {
		if r.Result != nil && !r.Result.OK {
			a.say("error: server %q: %s: %s", r.Name, r.Result.Phase, r.Result.Error)
			if r.Result.Stderr != "" {
				a.say("stderr of %q: %s", r.Name, untrusted.Line(lastLines(r.Result.Stderr, 3)))
			}
			if r.Result.Hint != "" {
				a.say("hint: %s", r.Result.Hint)
			}
		}
	}
	return nil
}

func (p *probed) text() string {
	switch {
	case p == nil:
		return "not started"
	case !p.OK:
		return "failed: " + p.Phase
	}
	t := fmt.Sprintf("%s in %s", count(p.Tools, "tool"), (time.Duration(p.Milliseconds) * time.Millisecond).String())
	if p.Omitted > 0 {
		t += fmt.Sprintf(", %d left out", p.Omitted)
	}
	return t
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func warningTexts(ws []definition.Warning) []map[string]string {
	out := []map[string]string{}
	for _, w := range ws {
		out = append(out, map[string]string{"source": w.Source, "server": untrusted.Line(w.Server), "field": untrusted.Line(w.Field), "text": untrusted.Line(w.Text)})
	}
	return out
}
