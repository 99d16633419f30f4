package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"magi-code/internal/mcp/approval"
)

// TestReaderGone: a reader of stdout that goes away, as head -1 does, ends a run in order: no server and no child of one is left, not
// even one that is deaf to all but SIGKILL (R-T4).
func TestReaderGone(t *testing.T) {
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"z": {"args": []string{"grandchild"}}})
	p.approve(t, "z")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := p.command(ctx, "run", "--provider", "offline", "--json", "slow 2000 word")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReaderSize(out, 16).ReadString('\n'); err != nil {
		t.Error(err)
	}
	_ = out.Close()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitPipe {
		t.Errorf("exit code %d: %s", code, &errs)
	}
	if left := p.left(); left != nil {
		t.Errorf("left over: %v", left)
	}
}

// TestOutputLost: no command claims success when its output could not be written.
func TestOutputLost(t *testing.T) {
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"z": {}})
	for _, args := range [][]string{
		{"run", "--provider", "offline", "say x"}, {"run", "--provider", "offline", "--json", "say x"}, {"mcp", "list"}, {"mcp", "get", "z"}, {"mcp", "get", "z", "--json"},
		{"demo"}, {"--version"}, {"--help"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := p.command(t.Context(), args...)
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = full, &errs
		_ = cmd.Run()
		_ = full.Close()
		if code := cmd.ProcessState.ExitCode(); code != exitFailure || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q: exit code %d: %s", args, code, &errs)
		}
	}
}

// TestFlatten: joined errors are told one by one, one sentence that wraps two is told as it is.
func TestFlatten(t *testing.T) {
	a, b := errors.New("first"), errors.New("second")
	if n := len(flatten(errors.Join(a, errors.Join(b, a)))); n != 3 {
		t.Errorf("%d errors of 3", n)
	}
	one := fmt.Errorf("%w: %w", approval.ErrKey, b)
	if all := flatten(hinted(exitConfig, one, "")); len(all) != 1 || all[0].Error() != one.Error() {
		t.Errorf("%q", all)
	}
}
