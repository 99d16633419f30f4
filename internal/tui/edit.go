package tui

import (
	"context"
	"io"

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

// Run returns when the editor has ended.
func (e *editorRun) Run() error {
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
