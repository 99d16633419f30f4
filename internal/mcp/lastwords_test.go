package mcp

import (
	"errors"
	"strings"
	"testing"
)

// TestLastWords: a run hears the end of a dead server's stderr in the error itself, bounded and as one line (R-T5).
func TestLastWords(t *testing.T) {
	cause := errors.New("gone")
	err := withLastWords(&Error{Server: "s", Phase: PhaseCall, Text: "it ended", Stderr: strings.Repeat("é", 1000) + "\nfatal:\x1b[31m no disk\n", Cause: cause})
	text := err.Error()
	if !strings.HasPrefix(text, `server "s": call: it ended; its last words on stderr: `) || !strings.HasSuffix(text, "fatal: no disk") || len(text) > maxLastWords+100 || strings.ContainsAny(text, "\n\x1b") {
		t.Errorf("%q", text)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if quiet := (&Error{Server: "s", Text: "x"}); withLastWords(quiet) != error(quiet) || withLastWords(nil) != nil {
		t.Error("an error without stderr changed")
	}
}
