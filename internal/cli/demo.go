package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/provider/offline"
	"magi-code/internal/safefile"
	"magi-code/internal/settings"
	"magi-code/internal/untrusted"
)

// demoPrompt is what the demo asks; the offline planner takes the quoted text as the query.
const demoPrompt = `Search the notes for "tea".`

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show what magi-code does: no key, no network, nothing of yours is touched",
		Long: `Makes a throw-away home and project, defines an MCP server in .mcp.json (a child process of this very binary),
shows the definition and its fingerprint, approves it, and runs one agent turn with the built-in offline planner:
it calls the server's tool and answers from the result. Everything is removed again.`,
		Example: "  magi-code demo",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
}

func (a *app) demo(ctx context.Context) error {
	start := time.Now()
	dir, err := os.MkdirTemp("", "magi-code-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := folders{home: filepath.Join(dir, "home"), cwd: filepath.Join(dir, "project")}
	step := func(n int, format string, args ...any) {
		fmt.Fprintf(a.out, "\n%d. %s\n", n, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(a.out, "magi-code demo: one agent turn that calls a real MCP tool. No key, no network; your files stay as they are.")
	if err := writeDemoProject(f); err != nil {
		return err
	}
	step(1, "A project defines an MCP server in .mcp.json. You may not have written that file, so nothing runs yet.")
	store := approval.NewStore(f.home)
	config, err := definition.Load(f.home, f.cwd)
	if err != nil {
		return err
	}
	view, err := store.Review(ctx, config.Servers[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "  %-10s %s, %s\n", "server", view.Server.Name, view.State)
	a.printDefinition(view.Server)
	step(2, "You look at it and approve exactly this form. The fingerprint binds file, name and every field; any change ends it.")
	fmt.Fprintf(a.out, "  %-10s %s\n", "approve", view.Fingerprint)
	if err := store.Approve(ctx, view, a.lookup); err != nil {
		return err
	}
	return a.demoTurn(ctx, f, store, config, step, start)
}

// writeDemoProject makes the two folders and the .mcp.json.
func writeDemoProject(f folders) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program's own path cannot be found: %w", err)
	}
	for _, d := range []string{f.home, f.cwd} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	doc, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{
		"notes": map[string]any{"command": self, "args": []string{"demo-server"}},
	}}, "", "  ")
	if err != nil {
		return err
	}
	return safefile.Create(f.projectMCP(), doc, 0o644)
}

func (a *app) demoTurn(ctx context.Context, f folders, store *approval.Store, config definition.Config, step func(int, string, ...any), start time.Time) error {
	entries, err := store.Check(config.Servers)
	if err != nil {
		return err
	}
	w := &workshop{
		servers:  servers{f, config, store, entries},
		settings: settings.Settings{MaxTurns: 10, ResultLimit: 1 << 16},
		scrub:    a.scrub, provider: offline.New(), model: offlineModel,
		gate: agent.NewGate(permission.Rules{Allow: []string{"mcp__notes__*"}}, nil),
	}
	w.builtin.Dir = f.cwd
	m, err := a.startServers(ctx, w, nil)
	if err != nil {
		return err
	}
	defer closeManager(ctx, m)
	for _, st := range m.Status() {
		step(3, "magi-code starts it as a child process that gets PATH and nothing else of your environment.")
		fmt.Fprintf(a.out, "  %-10s %s, protocol %s, in %d ms\n", "ready", untrusted.Line(st.ServerName), st.Protocol, st.Took.Milliseconds())
		fmt.Fprintf(a.out, "  %-10s %s\n", "tools", toolNames(st))
	}
	step(4, "One agent turn. The model here is the built-in offline planner, not an AI; a real one takes the same path.")
	fmt.Fprintf(a.out, "  %-10s %s\n", "prompt", demoPrompt)
	c := w.conversation(these(m), nil, nil, a.demoEvents())
	turn, err := c.Send(ctx, []provider.Block{{Kind: provider.Text, Text: demoPrompt}})
	if err := turnError(turn, err); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "  %-10s %s\n", "answer", strings.ReplaceAll(untrusted.Text(strings.TrimSpace(turn.Text)), "\n", "\n             "))
	fmt.Fprintf(a.out, "\nDone in %d ms. Next: cd into a project of yours, then\n", time.Since(start).Milliseconds())
	fmt.Fprint(a.out, "  magi-code mcp add NAME -- COMMAND [ARG...]   and   magi-code mcp approve NAME\n  magi-code                                    for Mission Control\n")
	return nil
}

func toolNames(st mcp.Status) string {
	var names []string
	for _, t := range st.Tools {
		names = append(names, untrusted.Line(t.Name))
	}
	return strings.Join(names, ", ")
}

// demoEvents prints the steps of the turn.
func (a *app) demoEvents() func(agent.Event) {
	return func(e agent.Event) {
		switch e.Kind {
		case agent.EventCall:
			fmt.Fprintf(a.out, "  %-10s %s %s\n", "call", callName(e.Call), untrusted.Line(string(e.Call.Input)))
		case agent.EventResult:
			fmt.Fprintf(a.out, "  %-10s %s\n", "result", strings.ReplaceAll(untrusted.Text(e.Text), "\n", "\n             "))
		}
	}
}
