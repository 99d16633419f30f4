package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// maxCallInput bounds the arguments read from stdin.
const maxCallInput = 4 << 20

func newCall(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "call SERVER TOOL [JSON|-]",
		Short: "Call one tool of a server and print its result",
		Long: `Starts the approved server SERVER, calls TOOL with the arguments JSON (default {}; "-" reads them from
stdin), prints the result and ends the server. Exit code 7 means that the tool reported an error.`,
		Example: `  magi-code mcp call filesystem read_text_file '{"path": "README.md"}'
  echo '{"a": 1, "b": 2}' | magi-code mcp call everything get-sum -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return hinted(exitUsage, usage("%s takes 2 or 3 arguments, not %d", cmd.CommandPath(), len(args)), "usage: "+cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: a.completeCall,
		RunE: func(cmd *cobra.Command, args []string) error {
			input := "{}"
			if len(args) == 3 {
				input = args[2]
			}
			return a.call(cmd.Context(), args[0], args[1], input, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the whole result as JSON")
	return c
}

func (a *app) call(ctx context.Context, server, name, input string, asJSON bool) error {
	if input == "-" {
		b, err := io.ReadAll(io.LimitReader(a.in, maxCallInput+1))
		if err != nil {
			return err
		}
		if len(b) > maxCallInput {
			return usage("the arguments on stdin are longer than %d bytes", maxCallInput)
		}
		input = string(b)
	}
	arguments := jsontext.Value(strings.TrimSpace(input))
	if !arguments.IsValid() || arguments.Kind() != '{' {
		return hinted(exitUsage, usage("the arguments are not one JSON object"), `write them like '{"path": "README.md"}'`)
	}
	return a.withServer(ctx, server, func(ctx context.Context, m *mcp.Manager) error {
		r, err := m.Call(ctx, server, name, arguments)
		if err != nil {
			return err
		}
		return a.printResult(server, name, r, asJSON)
	})
}

// withServer runs one approved server around f. A server that is not ready is f's error.
func (a *app) withServer(ctx context.Context, name string, f func(context.Context, *mcp.Manager) error) error {
	s, err := a.loadServers()
	if err != nil {
		return err
	}
	proof, err := s.approved(name)
	if err != nil {
		return err
	}
	m, err := mcp.Open(ctx, a.managerOptions(s.folders, []approval.Approved{proof}))
	if err != nil {
		return err
	}
	defer closeManager(ctx, m)
	if failures := m.Failures(); len(failures) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return failures[0]
	}
	return f(ctx, m)
}

func (a *app) printResult(server, name string, r tool.Result, asJSON bool) error {
	failed := silent(exitTool, fmt.Errorf("the tool reported an error"))
	if asJSON {
		if err := a.printJSON(r); err != nil || !r.IsError {
			return err
		}
		return failed
	}
	if !r.IsError {
		fmt.Fprintln(a.out, untrusted.Text(r.Plain()))
		return nil
	}
	a.say("error: server %q: call: tool %q reported an error: %s", server, untrusted.Line(name), or(indented(untrusted.Text(r.Plain())), "it says nothing more"))
	return failed
}

// indented sets the lines of a foreign text after its first apart from ours, which begin with "error:" and "hint:".
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// completeCall completes the server, then its tools by asking it.
func (a *app) completeCall(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completeServers(cmd, args, prefix)
	}
	var names []cobra.Completion
	_ = a.withServer(cmd.Context(), args[0], func(_ context.Context, m *mcp.Manager) error { // no tools are no completions
		for _, st := range m.Status() {
			for _, t := range st.Tools {
				names = append(names, cobra.CompletionWithDesc(untrusted.Line(t.Name), untrusted.Head(untrusted.Line(t.Description), 60)))
			}
		}
		return nil
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
