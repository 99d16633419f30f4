package cli

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"magi-code/internal/acp"
	"magi-code/internal/builtin"
	"magi-code/internal/mcp"
	"magi-code/internal/permission"
	"magi-code/internal/safefile"
	"magi-code/internal/session"
	"magi-code/internal/untrusted"
)

func newServe(a *app) *cobra.Command {
	var o conversationFlags
	var stdio bool
	c := &cobra.Command{
		Use:   "serve --stdio",
		Short: "Be the agent inside an editor, over the Agent Client Protocol",
		Long: `Speaks the Agent Client Protocol on stdin and stdout, for editors that start their agents (docs/editors.md).
The same approvals count as everywhere; nothing is ever asked about MCP approval here. Ends when stdin closes.`,
		Example: "  magi-code serve --stdio",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return hinted(exitUsage, usage("serve speaks over stdin and stdout only"), "magi-code serve --stdio")
			}
			return a.serve(cmd.Context(), o)
		},
	}
	c.Flags().BoolVar(&stdio, "stdio", false, "speak over stdin and stdout")
	c.Flags().StringVar(&o.provider, "provider", "", "`NAME` of the provider: anthropic, openai, offline, or an endpoint of settings.json")
	c.Flags().StringVar(&o.model, "model", "", "`NAME` of the model")
	c.Flags().StringArrayVar(&o.allow, "allow", nil, "allow tools whose names match `PATTERN` without asking (repeatable)")
	return c
}

// fleet are the servers of one folder, shared by all its sessions.
type fleet struct {
	mu      sync.Mutex // held while the servers start
	shop    *workshop
	manager *mcp.Manager
}

// office holds the fleets of serve, by folder.
type office struct {
	a   *app
	o   conversationFlags
	ctx context.Context // ends with the service

	mu     sync.Mutex
	fleets map[string]*fleet
}

func (a *app) serve(ctx context.Context, o conversationFlags) error {
	of := &office{a: a, o: o, ctx: ctx, fleets: map[string]*fleet{}}
	defer of.close()
	return acp.Serve(ctx, acp.Options{
		In: a.in, Out: a.out, Version: buildVersion(),
		Ready: of.ready, Open: of.open, Sessions: of.sessions,
		Explain: func(err error) (string, string) {
			text, hint, _ := explain(flatten(err)[0])
			return untrusted.Line(text), untrusted.Line(hint)
		},
		Reserved: []string{"read", "list_files", "find", "grep", "write", "edit", "bash", "subagents", "code_mode"},
	})
}

// ready reports whether a provider is set up; it starts nothing.
func (of *office) ready() error {
	f, err := of.a.folders()
	if err != nil {
		return err
	}
	_, err = of.a.workshop(f, of.o)
	return err
}

func (of *office) sessions(dir string) ([]session.Info, error) {
	f, err := of.a.folders()
	if err != nil {
		return nil, err
	}
	return session.NewStore(f.sessionsDir()).List(dir)
}

// fleet returns the running servers of a folder, starting them when they do not run: the first session pays, others
// wait for it. A failed start is tried again by the next session.
func (of *office) fleet(ctx context.Context, dir string) (*workshop, *mcp.Manager, error) {
	of.mu.Lock()
	fl := of.fleets[dir]
	if fl == nil {
		fl = &fleet{}
		of.fleets[dir] = fl
	}
	of.mu.Unlock()
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.manager != nil {
		return fl.shop, fl.manager, nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, nil, hinted(exitConfig, fmt.Errorf("the session's folder is no folder that can be read: %s", untrusted.Visible(dir)), "open an existing folder")
	}
	f, err := of.a.foldersOf(dir)
	if err != nil {
		return nil, nil, err
	}
	w, err := of.a.workshop(f, of.o)
	if err != nil {
		return nil, nil, err
	}
	m, err := of.a.startServers(ctx, w, nil)
	if err != nil {
		return nil, nil, err
	}
	fl.shop, fl.manager = w, m
	return w, m, nil
}

func (of *office) open(ctx context.Context, c acp.Config) (acp.Opened, error) {
	w, m, err := of.fleet(ctx, c.Dir)
	if err != nil {
		return acp.Opened{}, err
	}
	mine := *w // settings, gate and servers are shared; where files are read is not
	if c.ReadText != nil || c.WriteText != nil {
		mine.builtin.Files = buffers{c.ReadText, c.WriteText}
	}
	sess, err := mine.openSession(ctx, conversationFlags{resume: c.Resume})
	if err != nil {
		return acp.Opened{}, err
	}
	notices := mine.announceTools(ctx, m)
	for _, text := range []string{mine.moved(sess), mine.undecided()} {
		if text != "" {
			notices = append(notices, text)
		}
	}
	for _, warning := range w.warnings {
		notices = append(notices, untrusted.Line(warning))
	}
	var ask permission.Asker = c.Ask
	conv := mine.conversation(these(m), sess, ask, c.Emit, c.Tools...)
	return acp.Opened{ID: sess.ID(), Entries: sess.Entries(), Conversation: conv, Notices: notices}, nil
}

// close ends all servers of all folders at once, hurriedly: the editor has gone.
func (of *office) close() {
	of.mu.Lock()
	defer of.mu.Unlock()
	gone, cancel := context.WithCancel(context.WithoutCancel(of.ctx))
	cancel()
	var wg sync.WaitGroup
	for _, fl := range of.fleets {
		wg.Go(func() {
			fl.mu.Lock()
			defer fl.mu.Unlock()
			if fl.manager != nil {
				closeManager(gone, fl.manager)
			}
		})
	}
	wg.Wait()
}

// maxBuffer bounds a file that is read from disk for an editor that offers only writing, in bytes.
const maxBuffer = 16 << 20

// buffers read and write an editor's unsaved text; what it does not offer goes to the disk.
type buffers struct {
	read  func(context.Context, string) (string, error)
	write func(context.Context, string, string) error
}

var _ builtin.Files = buffers{}

func (b buffers) ReadText(ctx context.Context, path string) (string, error) {
	if b.read == nil {
		data, err := safefile.Read(path, maxBuffer)
		return string(data), err
	}
	return b.read(ctx, path)
}

func (b buffers) WriteText(ctx context.Context, path, text string) error {
	if b.write == nil {
		return safefile.Write(path, []byte(text), 0o644)
	}
	return b.write(ctx, path, text)
}
