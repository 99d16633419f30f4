package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"magi-code/internal/safefile"
)

// newMan writes the manual pages; the release build calls it.
func newMan(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write a manual page for each command into a folder",
		Hidden: true,
		Args:   exactArgs("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeMan(cmd.Root(), args[0])
		},
	}
}

func writeMan(c *cobra.Command, dir string) error {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return nil
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	if err := safefile.Write(filepath.Join(dir, name+".1"), []byte(manPage(c, name)), 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if err := writeMan(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manPage is one command in the man macros of roff.
func manPage(c *cobra.Command, name string) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`.TH "%s" "1" "" "magi-code %s" "magi-code"`, strings.ToUpper(name), roff(buildVersion()))
	p(".SH NAME\n%s \\- %s", roff(name), roff(c.Short))
	p(".SH SYNOPSIS\n.B %s", roff(c.UseLine()))
	if c.Long != "" {
		p(".SH DESCRIPTION\n%s", roff(c.Long))
	}
	flags := false
	each := func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if !flags {
			p(".SH OPTIONS")
			flags = true
		}
		long := "--" + f.Name
		if f.Shorthand != "" {
			long = "-" + f.Shorthand + ", " + long
		}
		kind, text := pflag.UnquoteUsage(f)
		if kind != "" {
			long += " " + kind
		}
		p(".TP\n.B %s\n%s", roff(long), roff(text))
	}
	c.InitDefaultHelpFlag()
	c.NonInheritedFlags().VisitAll(each)
	c.InheritedFlags().VisitAll(each)
	if c.Example != "" {
		p(".SH EXAMPLES\n.nf\n%s\n.fi", roff(c.Example))
	}
	var see []string
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
			see = append(see, fmt.Sprintf("%s(1)", roff(name+"-"+sub.Name())))
		}
	}
	if c.HasParent() {
		see = append(see, fmt.Sprintf("%s(1)", roff(strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))))
	}
	if len(see) > 0 {
		p(".SH SEE ALSO\n%s", strings.Join(see, ", "))
	}
	return b.String()
}

// roff escapes a text, line by line.
func roff(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	s = strings.ReplaceAll(s, "-", `\-`)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
