package tui

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// editorRun lets the library hand the terminal to the user's editor.
type editorRun struct {
	ctx  context.Context
	edit func(ctx context.Context, text string, in io.Reader, out io.Writer) (string, error)
	text string
	in   io.Reader
	out  io.Writer
	got  string
}

var _ tea.ExecCommand = (*editorRun)(nil)

// handOver is how long the library's drawing loop has to end before the editor starts. The library tells it to and does not
// wait; a loop that ends late stops the ticker of the next one, and after an editor that was done at once the screen stayed
// empty (bubbletea v2.1.1, startRenderer). Nobody notices this long a wait for an editor.
const handOver = 50 * time.Millisecond

// Run returns when the editor has ended.
func (e *editorRun) Run() error {
	timer := time.NewTimer(handOver)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.ctx.Done():
	}
	got, err := e.edit(e.ctx, e.text, e.in, e.out)
	e.got = got
	return err
}

// SetStdin gives the terminal's input.
func (e *editorRun) SetStdin(r io.Reader) { e.in = r }

// SetStdout gives the terminal's output.
func (e *editorRun) SetStdout(w io.Writer) { e.out = w }

// SetStderr is not needed.
func (e *editorRun) SetStderr(io.Writer) {}

func (m *model) onEdited(msg editedMsg) {
	if msg.err != nil {
		m.say("editor: " + line(msg.err.Error(), 80))
		return
	}
	m.ed.chips = nil
	m.ed.set(msg.text)
	if n := len(m.ed.text); n > 0 && m.ed.text[n-1] == '\n' {
		m.ed.text = m.ed.text[:n-1]
		m.ed.at = n - 1
	}
}
