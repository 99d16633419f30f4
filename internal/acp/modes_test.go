package acp

import (
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"magi-code/internal/permission"
)

// TestModes: no mode answers for the person where a call touches what decides what may run. R-G3
func TestModes(t *testing.T) {
	for _, c := range []struct {
		mode   sdk.SessionModeId
		q      permission.Question
		answer permission.Answer
		ok     bool
	}{
		{modeAsk, permission.Question{Tool: "write"}, permission.No, false},
		{modeEdits, permission.Question{Tool: "write"}, permission.Once, true},
		{modeEdits, permission.Question{Tool: "edit"}, permission.Once, true},
		{modeEdits, permission.Question{Tool: "edit", Protected: true}, permission.No, false},
		{modeEdits, permission.Question{Tool: "bash"}, permission.No, false},
		{modeEdits, permission.Question{Tool: "write", Server: "s"}, permission.No, false},
		{modeRead, permission.Question{Tool: "write", Protected: true}, permission.No, true},
	} {
		if answer, ok := answerOf(c.mode, c.q); answer != c.answer || ok != c.ok {
			t.Errorf("%s %+v: %v, %v", c.mode, c.q, answer, ok)
		}
	}
}
