package codemode

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"modernc.org/quickjs"

	"magi-code/internal/untrusted"
)

// maxMessage bounds in bytes what a script's own error message may say.
const maxMessage = 2000

// frame is a place in a stack trace.
var frame = regexp.MustCompile(`<eval>:(\d+)(?::(\d+))?`)

// explain turns an error of the engine into a sentence with the line of the script.
func (s *script) explain(err error, source string) error {
	e, ok := errors.AsType[*quickjs.Error](err)
	if !ok {
		return fmt.Errorf("the script engine failed: %w", err)
	}
	message := e.Error()
	for _, doing := range []string{"calling ", "callback "} { // the engine's words for what the host said, or for what came of it
		message = strings.ReplaceAll(message, doing+bridgeName+": ", "")
	}
	switch {
	case message == "null" && e.Name == "": // so the engine throws when there is no room for an error
		return fmt.Errorf("the script needed more than %d MiB of memory, or it threw null", s.limits.Memory>>20)
	case strings.Contains(message, "out of memory") && (e.Name == "InternalError" || e.Name == "" || strings.Contains(message, "argument conversion error") || strings.HasPrefix(message, "InternalError: ")):
		return fmt.Errorf("%sthe script needed more than %d MiB of memory", place(e), s.limits.Memory>>20)
	case strings.Contains(message, "stack overflow") && (e.Name == "InternalError" || e.Name == "SyntaxError" || e.Name == ""):
		return fmt.Errorf("%sthe script's calls or data nest too deeply", place(e))
	case message == "":
		message = "the script threw something that cannot be shown"
	}
	text := untrusted.Head(untrusted.Text(message), maxMessage)
	if e.Name == "SyntaxError" && strings.Contains(source, "await") {
		text += " (the script is a synchronous function body: there is no await)"
	}
	return errors.New(place(e) + text)
}

// place is "line N: " when the error tells one of the script's lines, else nothing.
func place(e *quickjs.Error) string {
	if line := relative(e.LineNumber); line > 0 {
		return fmt.Sprintf("line %d: ", line)
	}
	for _, m := range frame.FindAllStringSubmatch(untrusted.Head(e.Stack, maxMessage), -1) {
		number, err := strconv.Atoi(m[1])
		if line := relative(number); err == nil && line > 0 {
			return fmt.Sprintf("line %d: ", line)
		}
	}
	return ""
}

// relative turns an engine's line into one of the script's: line 1 belongs to the prelude and to what stands before
// the source.
func relative(line int) int { return line - 1 }
