package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"magi-code/internal/tool"
)

const (
	bashDescription = "Run a shell command in the workspace and return its output and exit code. " +
		"No terminal and no input. Processes left in the background are ended with the command."
	bashSchema = `{"type":"object","properties":{` + intentProperty + `,` +
		`"command":{"type":"string"},` +
		`"timeout_ms":{"type":"integer","description":"Default 120000, at most 600000."},` +
		`"cwd":{"type":"string","description":"Folder to run in; default the workspace."}},` +
		`"required":["intent","command"],"additionalProperties":false}`

	defaultTimeoutMs = 120_000
	maxTimeoutMs     = 600_000
	maxCommand       = 100 << 10 // bytes: Linux takes 128 KiB as one argument
	syntaxTimeout    = 5 * time.Second
	// maxParsed is the bytes of a command that our own parser reads: it recurses, and thousands of brackets in each other
	// would take hundreds of megabytes of stack.
	maxParsed    = 16 << 10
	maxSyntaxErr = 1 << 10 // bytes of what the shell says about a mistake
)

type bashArgs struct {
	Command   string `json:"command"`
	TimeoutMs number `json:"timeout_ms"`
	Cwd       string `json:"cwd"`
}

func (t *toolset) bash(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := arguments[bashArgs](c)
	if err != nil {
		return failed(err)
	}
	switch {
	case strings.TrimSpace(a.Command) == "":
		return failed(errors.New("command is empty"))
	case len(a.Command) > maxCommand:
		return failed(fmt.Errorf("the command has %d bytes, more than %d; write a script file instead", len(a.Command), maxCommand))
	case strings.ContainsRune(a.Command, 0):
		return failed(errors.New("the command contains a NUL character"))
	}
	timeout := a.TimeoutMs.or(defaultTimeoutMs)
	if err := within("timeout_ms", timeout, 1, maxTimeoutMs); err != nil {
		return failed(err)
	}
	dir, err := t.folder(a.Cwd)
	if err != nil {
		return failed(err)
	}
	shell, isBash, err := findShell()
	if err != nil {
		return failed(err)
	}
	if err := t.checkSyntax(ctx, shell, isBash, a.Command); err != nil {
		return failed(err)
	}
	cmd := exec.Command(shell, "-c", "--", a.Command)
	cmd.Dir, cmd.Env = dir, t.o.Env
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would mean everything we have, keys included
	}
	out := newEnds(outputKept)
	took := time.Duration(timeout) * time.Millisecond
	o, err := runGroup(ctx, cmd, took, out)
	if err != nil {
		return failed(fmt.Errorf("the shell could not be started: %w", err))
	}
	return report(out.String(), o, took), nil
}

// folder returns the absolute folder that a cwd argument names.
func (t *toolset) folder(path string) (string, error) {
	if path == "" {
		path = "."
	}
	at, err := t.o.locate(path)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(at.abs)
	if err != nil {
		return "", explain(err, path)
	}
	if !st.IsDir() {
		return "", fmt.Errorf("cwd %q is not a folder", clip(path, maxShownPath))
	}
	return at.abs, nil
}

// checkSyntax finds mistakes before half of a command has run. Our parser does not know every corner of the language,
// so the shell itself has the last word; it has the only one about long commands.
func (t *toolset) checkSyntax(ctx context.Context, shell string, isBash bool, command string) error {
	mistake := ""
	if len(command) <= maxParsed {
		lang := syntax.LangPOSIX
		if isBash {
			lang = syntax.LangBash
		}
		_, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(command), "")
		if err == nil {
			return nil
		}
		mistake = err.Error()
	}
	cmd := exec.Command(shell, "-n", "-c", "--", command)
	cmd.Dir, cmd.Env = t.o.Dir, []string{}
	out := newEnds(maxSyntaxErr)
	if o, err := runGroup(ctx, cmd, syntaxTimeout, out); err != nil || o.why != finished || o.state == nil || o.state.Success() {
		return nil // at worst the shell finds the mistake when it comes to it
	}
	if mistake == "" {
		mistake = strings.TrimSpace(out.String())
	}
	return fmt.Errorf("syntax error, nothing was run: %s", clip(mistake, maxSyntaxErr))
}

// report is the result of a command: its output, then how it ended in brackets of ours.
func report(output string, o outcome, timeout time.Duration) tool.Result {
	var text strings.Builder
	text.WriteString(output)
	if output != "" && !strings.HasSuffix(output, "\n") {
		text.WriteByte('\n')
	}
	ok := false
	switch {
	case o.why == timedOut:
		fmt.Fprintf(&text, "[ended after the timeout of %d ms]", timeout.Milliseconds())
	case o.why == interrupted:
		text.WriteString("[interrupted]")
	case o.state == nil:
		text.WriteString("[the process could not be ended]")
	case o.state.Success():
		ok = true
		if output == "" {
			text.WriteString("(no output)\n")
		}
		text.WriteString("[exit code 0]")
	case o.state.ExitCode() >= 0:
		fmt.Fprintf(&text, "[exit code %d]", o.state.ExitCode())
	default:
		fmt.Fprintf(&text, "[%s]", o.state.String())
	}
	if o.left {
		text.WriteString("\n[processes left in the background were ended]")
	}
	r := tool.TextResult(text.String())
	r.IsError = !ok
	return r
}
