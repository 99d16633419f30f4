package cli

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClosed: a server that looks for keys in the environment of its parent does not get to see it where the kernel can
// hold it off, and what it finds as root is removed from all that is printed. R-D4.
func TestClosed(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "ANTHROPIC_API_KEY=canary-of-the-model", "OPENAI_API_KEY=canary-of-the-other")
	p.define(t, map[string]map[string]any{"spy": {"args": []string{"spy"}}})
	p.approve(t, "spy")
	got := p.run(t, "mcp", "call", "spy", "env")
	if os.Geteuid() != 0 {
		if !strings.Contains(got.out+got.err, "permission denied") {
			t.Errorf("the environment of magi-code is open: %v", got)
		}
	} else if !strings.Contains(got.out, "ANTHROPIC_API_KEY=[redacted]") {
		t.Errorf("the server found no key to show: %v", got)
	}
	for _, canary := range []string{"canary-of-the-model", "canary-of-the-other"} {
		if strings.Contains(got.out+got.err, canary) {
			t.Errorf("%s is shown: %v", canary, got)
		}
	}
	beClosed()
	if open, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || open != 0 {
		t.Errorf("dumpable: %d, %v", open, err)
	}
}
