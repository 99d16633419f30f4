package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"magi-code/internal/agent"
	"magi-code/internal/provider"
	"magi-code/internal/untrusted"
)

// maxPrompt bounds a prompt from arguments and stdin together, in bytes.
const maxPrompt = 4 << 20

// slowStdin is how long stdin may stay open before the user is told what is waited for.
const slowStdin = 2 * time.Second

// turnWait bounds the end of a conversation; it waits for tools that were interrupted.
const turnWait = 2 * time.Second

func newRun(a *app) *cobra.Command {
	var o conversationFlags
	var asJSON bool
	var maxTurns int
	c := &cobra.Command{
		Use:   `run [PROMPT|-]`,
		Short: "Run one turn without a terminal interface and print the answer",
		Long: `Starts all approved servers, runs one turn with PROMPT, prints the answer as it streams, and ends everything.
A pipe on stdin is added to the prompt; "-" reads the prompt from stdin alone. What the agent does goes to stderr.
Nobody can be asked: a tool that needs asking is refused, unless --allow or permissions.allow allows it.`,
		Example: `  magi-code run "what does this folder hold?"
  git diff | magi-code run "review this change" --allow 'mcp__github__*'
  magi-code run --json "list the open tasks" | jq -r 'select(.type == "turn_end") | .text'
  magi-code run --continue "and now the tests"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("max-turns") && maxTurns < 1 {
				return usage("--max-turns is at least 1")
			}
			return a.run(cmd.Context(), o, args, asJSON, maxTurns)
		},
	}
	o.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one event per line as JSON (docs/json-events.md)")
	c.Flags().IntVar(&maxTurns, "max-turns", 0, "at most `N` round trips to the provider (default: max_turns of settings.json, else 100)")
	return c
}

func (a *app) run(ctx context.Context, o conversationFlags, args []string, asJSON bool, maxTurns int) error {
	prompt, err := a.prompt(ctx, args)
	if err != nil {
		return err
	}
	f, err := a.folders()
	if err != nil {
		return err
	}
	w, err := a.workshop(f, o)
	if err != nil {
		return err
	}
	if maxTurns > 0 {
		w.settings.MaxTurns = maxTurns
	}
	a.warn(w.config.Warnings)
	for _, text := range w.warnings {
		a.say("warning: %s", untrusted.Line(text))
	}
	if text := w.undecided(); text != "" {
		a.say("note: %s", text)
	}
	sess, err := w.openSession(ctx, o)
	if err != nil {
		return err
	}
	id := ""
	if sess != nil {
		id = sess.ID()
		defer sess.Close()
	}
	if text := w.moved(sess); text != "" {
		a.say("note: %s", text)
	}
	m, err := a.startServers(ctx, w, nil)
	if err != nil {
		return err
	}
	defer closeManager(ctx, m)
	for _, text := range w.announceTools(ctx, m) {
		a.say("note: %s", untrusted.Line(text))
	}
	events := a.textEvents()
	if asJSON {
		events = a.jsonEvents(id)
	}
	c := w.conversation(these(m), sess, nil, events)
	turn, err := c.Send(ctx, []provider.Block{{Kind: provider.Text, Text: prompt}})
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnWait)
	defer cancel()
	return errors.Join(turnError(turn, err), c.Close(end))
}

// turnError is the exit of a turn.
func turnError(t agent.Turn, err error) error {
	switch {
	case t.Stop == agent.StopInterrupted:
		return context.Canceled
	case err != nil:
		return err
	case t.Stop == agent.StopMaxTurns:
		return hinted(exitIncomplete, fmt.Errorf("the turn ended at the limit of provider round trips"), "raise --max-turns, or go on with magi-code run --continue \"go on\"")
	case t.Stop == agent.StopMaxTokens:
		return hinted(exitIncomplete, fmt.Errorf("the answer ended at the model's limit of tokens"), "go on with magi-code run --continue \"go on\"")
	case t.Stop == agent.StopRefusal:
		return hinted(exitIncomplete, fmt.Errorf("the model refused to answer"), "say it in other words")
	}
	return nil
}

// prompt is made of the arguments and of what is piped in.
func (a *app) prompt(ctx context.Context, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" || a.piped() {
		defer a.exitOnInterrupt(ctx)()
		defer time.AfterFunc(slowStdin, func() { a.say("note: waiting for the end of stdin, which is part of the prompt") }).Stop()
		b, err := io.ReadAll(io.LimitReader(a.in, maxPrompt+1))
		if err != nil {
			return "", fmt.Errorf("stdin cannot be read: %w", err)
		}
		if len(b) > maxPrompt {
			return "", usage("the prompt on stdin is longer than %d bytes", maxPrompt)
		}
		if text == "-" {
			text = ""
		}
		text = strings.TrimSpace(text + "\n\n" + strings.ToValidUTF8(string(b), "\uFFFD"))
	}
	if strings.TrimSpace(text) == "" {
		return "", hinted(exitUsage, usage("run needs a prompt"), `for example: magi-code run "what does this folder hold?"`)
	}
	return text, nil
}

// piped reports whether stdin is a pipe or a file with something to read, as opposed to a terminal or /dev/null.
func (a *app) piped() bool {
	f, ok := a.in.(*os.File)
	if !ok || a.inTTY {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular() && info.Size() > 0)
}
