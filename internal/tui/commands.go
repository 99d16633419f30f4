package tui

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// command is something that begins with /.
type command struct {
	name, about string
	run         func(m *model, arg string) tea.Cmd
}

// commands returns all of them, in the order in which they are shown.
func commands() []command {
	return []command{
		{"/help", "keys and commands", func(m *model, _ string) tea.Cmd { m.openHelp(); return nil }},
		{"/mcp", "servers: approve, revoke, state", func(m *model, _ string) tea.Cmd { m.openServers(); return nil }},
		{"/new", "start a new conversation", func(m *model, _ string) tea.Cmd { m.newConversation(); return nil }},
		{"/model", "choose the model", func(m *model, arg string) tea.Cmd { m.chooseModel(arg); return nil }},
		{"/sessions", "go on with an earlier conversation", func(m *model, _ string) tea.Cmd { m.openSessions(); return nil }},
		{"/permissions", "what may run without asking", func(m *model, _ string) tea.Cmd { m.openPermissions(); return nil }},
		{"/tools", "what the model and scripts are offered", func(m *model, _ string) tea.Cmd { m.openTools(); return nil }},
		{"/edit", "write the prompt in your editor", func(m *model, arg string) tea.Cmd { return m.edit(arg) }},
		{"/mouse", "wheel and selection here, or the terminal's own", func(m *model, _ string) tea.Cmd { m.toggleMouse(); return nil }},
		{"/quit", "leave", func(m *model, _ string) tea.Cmd { return m.quit() }},
	}
}

func commandCandidates(word string) []candidate {
	var list []candidate
	for _, c := range commands() {
		if strings.HasPrefix(c.name, word) {
			list = append(list, candidate{c.name, c.about})
		}
	}
	return list
}

// runCommand runs a line that begins with /; ok is false when it is no command and may be a prompt.
func (m *model) runCommand(text string) (cmd tea.Cmd, ok bool) {
	name, arg, _ := strings.Cut(strings.TrimSpace(text), " ")
	if name == "/exit" {
		name = "/quit"
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i >= 0 {
		return all[i].run(m, strings.TrimSpace(arg)), true
	}
	if strings.Contains(text, "\n") || strings.Contains(name[1:], "/") || name == "/" {
		return nil, false // a path, or a text about one
	}
	hint := "type / to see the commands"
	if best := nearest(name, all); best != "" {
		hint = "did you mean " + best + "?"
	}
	m.say("no command " + line(name, 24) + ": " + hint)
	return nil, true
}

// nearest is the command that shares the longest beginning with name.
func nearest(name string, all []command) string {
	best := slices.MaxFunc(all, func(a, b command) int { return cmp.Compare(shared(a.name, name), shared(b.name, name)) })
	if shared(best.name, name) < 3 {
		return ""
	}
	return best.name
}

func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (m *model) newConversation() {
	if m.talk.running {
		m.say("interrupt the turn first: esc")
		return
	}
	m.freshTranscript()
	m.openConversation("")
}

func (m *model) freshTranscript() {
	m.tr.clear()
	m.focus, m.shell = nil, nil
	m.sel = selection{}
	m.tr.add(&welcomeItem{m: m}, 0)
}

func (m *model) toggleMouse() {
	m.mouse = !m.mouse
	if m.mouse {
		m.say("mouse: wheel scrolls, dragging selects and copies")
	} else {
		m.say("mouse: left to the terminal")
	}
}

// edit opens the prompt in the user's editor; the terminal is the editor's meanwhile.
func (m *model) edit(arg string) tea.Cmd {
	if m.o.Edit == nil {
		m.say("no editor: set VISUAL or EDITOR")
		return nil
	}
	if arg != "" {
		m.ed.set(arg)
	}
	run := &editorRun{ctx: m.ctx, edit: m.o.Edit, text: m.ed.String()}
	return tea.Exec(run, func(err error) tea.Msg { return editedMsg{run.got, err} })
}
