package hook

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"magi-code/internal/untrusted"
)

// verdict is what one hook said. Its zero value is that the call may go on.
type verdict struct {
	refused     bool
	interrupted bool
	reason      string // of a refusal
	failure     string // of the hook itself
}

// text says who refused or failed and why, "" for a verdict that lets the call go on. The words of the hook are made safe
// to show.
func (v verdict) text(h Hook) string {
	name := "(no command)"
	if len(h.Command) > 0 {
		const maxName = 64 // bytes
		name = untrusted.Head(untrusted.Line(filepath.Base(h.Command[0])), maxName)
	}
	switch {
	case v.interrupted:
		return name + " was interrupted"
	case v.failure != "":
		return name + " failed: " + safe(v.failure)
	case v.refused && strings.TrimSpace(v.reason) == "":
		return name + " gave no reason"
	case v.refused:
		return name + ": " + safe(v.reason)
	}
	return ""
}

func safe(s string) string {
	return untrusted.Head(strings.TrimSpace(untrusted.Text(s)), maxReason)
}

// read makes a verdict of how a hook ended. code is -1 when a signal ended it.
func read(code int, status string, stdout, stderr []byte) verdict {
	switch code {
	case 0:
		return decide(stdout)
	case refuse:
		return verdict{refused: true, reason: string(stderr)}
	}
	if text := strings.TrimSpace(string(stderr)); text != "" {
		return verdict{failure: status + ": " + text}
	}
	return verdict{failure: status}
}

// decide reads stdout of a hook that ended well. Hooks may print what they like, but something that looks like a decision
// has to be one: ignoring a misspelt refusal would let the call through.
func decide(stdout []byte) verdict {
	text := bytes.TrimSpace(bytes.TrimPrefix(stdout, []byte("\xef\xbb\xbf")))
	if !bytes.HasPrefix(text, []byte("{")) {
		return verdict{}
	}
	var answer struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return verdict{failure: "its output begins with { and is not a decision in JSON"}
	}
	switch answer.Decision {
	case "block":
		return verdict{refused: true, reason: answer.Reason}
	case "", "allow":
		return verdict{}
	}
	const maxWord = 32 // bytes
	return verdict{failure: fmt.Sprintf("it gave the unknown decision %+q", untrusted.Head(answer.Decision, maxWord))}
}
