package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/untrusted"
)

func newTest(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "test NAME",
		Short: "Start one server, show who it is and what it offers, and end it",
		Long: `Starts the approved server NAME alone, runs initialize and tools/list, prints its name, version, protocol
and tools with their whole descriptions as the model would see them, and ends it. Hidden characters in a
description are shown as escapes.`,
		Example:           "  magi-code mcp test filesystem\n  magi-code mcp test filesystem --json",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.test(cmd.Context(), args[0], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) test(ctx context.Context, name string, asJSON bool) error {
	s, err := a.loadServers()
	if err != nil {
		return err
	}
	proof, err := s.approved(name)
	if err != nil {
		return err
	}
	st, err := mcp.Probe(ctx, a.managerOptions(s.folders, []approval.Approved{proof}))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if asJSON {
		if jerr := a.printJSON(testJSON(st, err)); jerr != nil {
			return jerr
		}
		return err
	}
	if err != nil {
		return err
	}
	a.printStatus(st)
	return nil
}

// testedTool is a tool in the output of mcp test --json.
type testedTool struct {
	Name        string `json:"name"`
	Qualified   string `json:"qualified"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description"`
	Hidden      bool   `json:"hiddenCharacters,omitempty"`
}

func testJSON(st mcp.Status, err error) map[string]any {
	tools := []testedTool{}
	for _, t := range st.Tools {
		tools = append(tools, testedTool{t.Name, "mcp__" + st.Name + "__" + t.Name, untrusted.Line(t.Title), visibleLines(t.Description), untrusted.HasHidden(t.Description)})
	}
	omitted := []map[string]string{}
	for _, o := range st.Omitted {
		omitted = append(omitted, map[string]string{"name": untrusted.Line(o.Name), "reason": untrusted.Line(o.Reason)})
	}
	out := map[string]any{
		"ok": err == nil, "name": st.Name, "type": st.Type,
		"serverName": untrusted.Line(st.ServerName), "serverVersion": untrusted.Line(st.ServerVersion), "protocol": st.Protocol,
		"milliseconds": st.Took.Milliseconds(), "timeoutSeconds": int(st.Timeout.Seconds()),
		"tools": tools, "omitted": omitted, "skippedLines": st.Skipped, "droppedReplies": st.DroppedReplies,
	}
	if st.Instructions != "" {
		out["instructions"] = visibleLines(st.Instructions)
	}
	if st.Err != nil {
		out["phase"], out["error"], out["hint"], out["stderr"] = st.Err.Phase, untrusted.Line(st.Err.Text), untrusted.Line(st.Err.Hint), untrusted.Text(st.Err.Stderr)
	}
	return out
}

func (a *app) printStatus(st mcp.Status) {
	p := func(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }
	p("server    %s", st.Name)
	p("identity  %s %s", or(untrusted.Line(st.ServerName), "(no name given)"), untrusted.Line(st.ServerVersion))
	p("protocol  %s over %s", st.Protocol, st.Type)
	p("ready in  %d ms (timeout %d s per request)", st.Took.Milliseconds(), int(st.Timeout.Seconds()))
	if st.Instructions != "" {
		p("instructions")
		p("%s", indent(visibleLines(st.Instructions), "    "))
	}
	p("tools     %d", len(st.Tools))
	for _, t := range st.Tools {
		p("  %s", untrusted.Visible(t.Name))
		if t.Description != "" {
			p("%s", indent(visibleLines(t.Description), "      "))
		}
		if untrusted.HasHidden(t.Description) {
			p("      (the description has hidden characters, shown as escapes)")
		}
	}
	if len(st.Omitted) > 0 {
		p("left out  %d", len(st.Omitted))
		for _, o := range st.Omitted {
			p("  %s: %s", or(untrusted.Line(o.Name), "(no name)"), untrusted.Line(o.Reason))
		}
	}
	if st.Skipped > 0 {
		p("skipped   %s on stdout that are no messages, the first: %s", count(st.Skipped, "line"), untrusted.Line(st.SkippedSample))
	}
	if st.DroppedReplies > 0 {
		p("dropped   %d answers to the server's requests, over 32 in a second", st.DroppedReplies)
	}
}

// visibleLines is Visible for each line, so that a person sees the line breaks as such.
func visibleLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = untrusted.Visible(strings.ReplaceAll(l, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

func indent(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }
