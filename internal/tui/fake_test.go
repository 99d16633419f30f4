package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/agent"
	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
)

// hostile is text as a malicious server would write it: every way to act on a terminal.
const hostile = "a\x1b[2J\x1b]52;c;QUJD\x07\x1b]8;;http://evil\x1b\\b\x1b]8;;\x1b\\\x9b31m\x90q\x9c\r\nover\rwritten\u202egnp\u200b\U000e0041\x00\x07\x7fz"

// fakeWorld is what Mission Control talks to in tests: servers and a model that do what the prompt says.
type fakeWorld struct {
	mu       sync.Mutex
	release  chan struct{} // the servers are ready when it is closed
	steps    chan string   // lets a turn go on, for "wait" prompts
	fail     []*mcp.Error
	startErr error
	openErr  error
	prompts  []string
	answers  []permission.Answer
	approved map[string]bool
	stale    bool
	closed   []string
	model    string
	servers  []mcp.Status
	entries  []approval.Entry
	history  []session.Entry
}

func newWorld() *fakeWorld {
	w := &fakeWorld{release: make(chan struct{}), steps: make(chan string), approved: map[string]bool{}, model: "offline/planner"}
	w.servers = []mcp.Status{
		{Name: "files", Type: "stdio", State: mcp.Ready, Took: 310 * time.Millisecond, Protocol: "2025-06-18", ServerName: "filesystem", ServerVersion: "1.2.0", Timeout: 30 * time.Second,
			Tools: []mcp.ToolInfo{{Name: "read_file", Description: "Read a file"}, {Name: "list_dir", Description: "List a folder"}}},
		{Name: "github", Type: "http", State: mcp.Ready, Took: 820 * time.Millisecond, Protocol: "2025-03-26", ServerName: "github-mcp", ServerVersion: "0.9",
			Tools: []mcp.ToolInfo{{Name: "create_issue", Description: "Create an issue in a repository"}}, Omitted: []mcp.OmittedTool{{Name: "bad.name", Reason: "its name holds a dot"}}},
	}
	w.entries = []approval.Entry{
		{Server: definition.Server{Name: "files", Source: "/home/me/.magi-code/.mcp.json", Scope: definition.Global, Type: definition.Stdio, Command: "node", Args: []string{"${MCP_DIR}/server.js"}, Env: []definition.Pair{{Name: "ROOT", Value: "${ROOT:-/tmp}"}}, Timeout: 30}, State: approval.IsApproved},
		{Server: definition.Server{Name: "github", Source: "/home/me/app/.mcp.json", Scope: definition.Project, Type: definition.HTTP, URL: "https://mcp.example.com/mcp?k=v", Headers: []definition.Pair{{Name: "Authorization", Value: "Bearer ${TOKEN}"}}, Timeout: 30}, State: approval.IsApproved},
		{Server: definition.Server{Name: "notes", Source: "/home/me/app/.mcp.json", Scope: definition.Project, Type: definition.Stdio, Command: "notes-mcp", Args: []string{"--safe\u202e"}, Timeout: 30}, State: approval.NeverApproved},
	}
	return w
}

// options wires the world up.
func (w *fakeWorld) options() Options {
	return Options{
		Version: "0.1.0", Dir: "/home/me/app", Home: "/home/me", Model: w.model, Servers: []string{"files", "github"},
		Start:           w.start,
		NewConversation: w.open,
		Entries: func(context.Context) ([]approval.Entry, []string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			out := append([]approval.Entry(nil), w.entries...)
			for i := range out {
				if a, ok := w.approved[out[i].Server.Name]; ok {
					out[i].State = approval.Revoked
					if a {
						out[i].State = approval.IsApproved
					}
				}
			}
			return out, nil, nil
		},
		Review: func(_ context.Context, d definition.Server) (approval.View, error) {
			return approval.View{Server: d, Fingerprint: strings.Repeat("0123456789abcdef", 4)}, nil
		},
		Approve: func(_ context.Context, v approval.View) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.stale {
				w.stale = false
				return &approval.StaleError{Server: v.Server.Name, Source: v.Server.Source}
			}
			w.approved[v.Server.Name] = true
			return nil
		},
		Revoke: func(_ context.Context, _, name string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.approved[name] = false
			return nil
		},
		Sessions: func(context.Context) ([]session.Info, error) {
			return []session.Info{{ID: "s1", Title: "Fix the parser", Messages: 12, Modified: time.Now().Add(-2 * time.Hour)}, {ID: "s2", Title: "Write docs", Messages: 4, Modified: time.Now().Add(-50 * time.Hour)}}, nil
		},
		Models: func(context.Context) ([]string, error) {
			return []string{"anthropic/claude-sonnet", "offline/planner", "openai/gpt"}, nil
		},
		Permissions: func(context.Context) ([]Rule, error) {
			return []Rule{{"mcp__github__*", permission.Ask, "settings.json"}, {"bash", permission.Deny, "flag"}, {"read", permission.Allow, "built in"}}, nil
		},
		Tools: func(context.Context) ([]ToolRow, error) {
			return []ToolRow{{Name: "bash", Description: "Run a command", Direct: true}, {Name: "mcp__files__read_file", Server: "files", Description: "Read a file", Direct: true, CodeMode: true}}, nil
		},
		Exclude: func(context.Context, string, ExclusionList, bool) error { return nil },
		Files: func(_ context.Context, q string) []string {
			var out []string
			for _, f := range []string{"README.md", "internal/", "internal/tui/run.go", "main.go"} {
				if strings.Contains(f, q) {
					out = append(out, f)
				}
			}
			return out
		},
		Shell: func(_ context.Context, c string) (string, bool, error) { return "ran " + c + "\n", c == "false", nil },
		Edit: func(_ context.Context, t string, _ io.Reader, _ io.Writer) (string, error) {
			return t + " edited\n", nil
		},
		Report: func(text string) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.closed = append(w.closed, "report:"+text)
			return "/tmp/report.txt", nil
		},
	}
}

func (w *fakeWorld) start(ctx context.Context, onStatus func(mcp.Status)) (Servers, error) {
	for _, s := range w.servers {
		onStatus(mcp.Status{Name: s.Name, State: mcp.Starting, Phase: mcp.PhaseInitialize, Since: time.Now()})
	}
	select {
	case <-w.release:
	case <-ctx.Done():
	}
	if w.startErr != nil {
		return Servers{}, w.startErr
	}
	for _, s := range w.servers {
		onStatus(s)
	}
	return Servers{
		Status:   func() []mcp.Status { return w.servers },
		Failures: func() []*mcp.Error { return w.fail },
		Close:    func(context.Context) error { w.note("servers"); return nil },
	}, nil
}

func (w *fakeWorld) said() []permission.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.answers)
}

func (w *fakeWorld) ran() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.prompts)
}

func (w *fakeWorld) ended() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.closed)
}

func (w *fakeWorld) note(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = append(w.closed, s)
}

func (w *fakeWorld) open(_ context.Context, emit func(agent.Event), ask permission.Asker, resume string) (Conversation, error) {
	if w.openErr != nil {
		return Conversation{}, w.openErr
	}
	c := Conversation{ID: "session-1", Model: w.model, Send: func(ctx context.Context, p []provider.Block) (agent.Turn, error) {
		w.mu.Lock()
		text := p[len(p)-1].Text
		w.prompts = append(w.prompts, text)
		w.mu.Unlock()
		emit(agent.Event{Kind: agent.EventTurnStart, Text: text})
		stop, err := w.turn(ctx, text, emit, ask)
		u := provider.Usage{Input: 1200, CacheRead: 3400, Output: 256}
		emit(agent.Event{Kind: agent.EventTurnEnd, Stop: stop, Usage: u})
		return agent.Turn{Stop: stop, Usage: u}, err
	}, SetModel: func(_ context.Context, m string) error {
		if m == "bad" {
			return errors.New("no such model")
		}
		return nil
	}, Close: func(context.Context) error { w.note("conversation"); return nil }}
	if resume != "" {
		c.Entries = w.history
		c.ID = resume
	}
	return c, nil
}

const answerText = "Here is what I found.\n\n## Two things\n\n- the parser **drops** the last line\n- `main.go` has no test\n\n```go\nfunc main() {\n\tos.Exit(cli.Main()) // the one place\n}\n```\n\n| file | lines |\n|---|--:|\n| main.go | 10 |\n| cli/wire.go | 150 |\n\nSee [the docs](https://example.com/docs)."

// turn acts out a prompt: each word is a thing to do.
func (w *fakeWorld) turn(ctx context.Context, prompt string, emit func(agent.Event), ask permission.Asker) (agent.StopReason, error) {
	for _, word := range strings.Fields(prompt) {
		switch word {
		case "think":
			emit(agent.Event{Kind: agent.EventThinking, Text: "The user wants to know.\nI look at the files first."})
		case "answer":
			for _, r := range answerText {
				emit(agent.Event{Kind: agent.EventText, Text: string(r)})
			}
			emit(agent.Event{Kind: agent.EventAnswer, Text: answerText})
		case "long":
			for i := range 400 {
				emit(agent.Event{Kind: agent.EventText, Text: fmt.Sprintf("Line %d of a long answer.\n\n", i)})
			}
		case "hostile":
			w.hostileTurn(ctx, emit, ask)
		case "tool", "ask", "edit", "badtool":
			if !w.toolTurn(ctx, word, emit, ask) {
				return agent.StopInterrupted, nil
			}
		case "notice":
			emit(agent.Event{Kind: agent.EventNotice, Text: "github: 2 tools added (close_issue, list_issues), 1 removed (old)"})
		case "retry":
			emit(agent.Event{Kind: agent.EventText, Text: "half an ans"})
			emit(agent.Event{Kind: agent.EventRetry, Text: "the provider is overloaded: trying again in 2 s"})
		case "fail":
			return agent.StopFailed, &provider.Error{Provider: "anthropic", Message: "the key was refused", Hint: "set ANTHROPIC_API_KEY, or run /model"}
		case "panic":
			panic("planted: secret-token")
		case "hang":
			emit(agent.Event{Kind: agent.EventText, Text: "still at it "})
			<-ctx.Done()
			return agent.StopInterrupted, nil
		case "wait":
			select {
			case s := <-w.steps:
				emit(agent.Event{Kind: agent.EventText, Text: s})
			case <-ctx.Done():
				return agent.StopInterrupted, nil
			}
		}
	}
	return agent.StopDone, nil
}

func (w *fakeWorld) toolTurn(ctx context.Context, word string, emit func(agent.Event), ask permission.Asker) bool {
	call := &agent.CallInfo{ID: "c-" + word, Tool: "mcp__github__create_issue", Server: "github", Remote: "create_issue", Intent: "File the bug that the user described",
		Input: jsontext.Value(`{"intent":"File the bug","arguments":{"owner":"me","repo":"app","title":"Parser drops the last line","labels":["bug"]}}`)}
	result, diff := "created issue #12\nhttps://github.com/me/app/issues/12\nstate: open\nlabels: bug\nassignee: none", ""
	if word == "edit" {
		call = &agent.CallInfo{ID: "c-edit", Tool: "edit", Intent: "Keep the last line", Input: jsontext.Value(`{"intent":"x","path":"parser.go","old":"a","new":"b"}`)}
		result, diff = "edited parser.go", "--- parser.go\n+++ parser.go\n@@ -1,3 +1,3 @@\n func parse() {\n-\treturn lines[:n-1]\n+\treturn lines[:n]\n }\n"
	}
	emit(agent.Event{Kind: agent.EventCall, Call: call})
	if word == "ask" || word == "edit" {
		emit(agent.Event{Kind: agent.EventAsk, Call: call})
		a, err := ask(ctx, permission.Question{Tool: call.Tool, Server: call.Server, Remote: call.Remote, Intent: call.Intent, Input: call.Input, Diff: diff})
		w.mu.Lock()
		w.answers = append(w.answers, a)
		w.mu.Unlock()
		if err != nil {
			return false
		}
		if a == permission.No {
			emit(agent.Event{Kind: agent.EventResult, Call: call, IsError: true, Text: "the user said no"})
			return true
		}
	}
	emit(agent.Event{Kind: agent.EventRunning, Call: call})
	bad := word == "badtool"
	if bad {
		result = "HTTP 404: no such repository"
	}
	emit(agent.Event{Kind: agent.EventResult, Call: call, Text: result, Diff: diff, Took: 1234 * time.Millisecond, IsError: bad})
	return true
}

// hostileTurn puts hostile text everywhere that a server or model can put text.
func (w *fakeWorld) hostileTurn(ctx context.Context, emit func(agent.Event), ask permission.Asker) {
	for _, r := range []byte(hostile + "\n\n```\x1b\n" + hostile + "\n```\n\n| " + hostile + " |\n|---|\n| " + hostile + " |\n") {
		emit(agent.Event{Kind: agent.EventText, Text: string([]byte{r})})
	}
	emit(agent.Event{Kind: agent.EventAnswer, Text: hostile + "\n\n[" + hostile + "](" + hostile + ")"})
	emit(agent.Event{Kind: agent.EventThinking, Text: hostile})
	in, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(hostile, "?"))
	call := &agent.CallInfo{ID: "h", Tool: "mcp__x__" + hostile, Server: hostile, Remote: hostile, Intent: hostile, Input: jsontext.Value(`{"arguments":{"a":` + string(in) + `}}`)}
	emit(agent.Event{Kind: agent.EventCall, Call: call, Path: []string{hostile}})
	emit(agent.Event{Kind: agent.EventAsk, Call: call, Path: []string{hostile}})
	_, _ = ask(ctx, permission.Question{Tool: call.Tool, Server: hostile, Remote: hostile, Intent: hostile, Input: call.Input, Diff: "+" + hostile, Path: []string{hostile}})
	emit(agent.Event{Kind: agent.EventResult, Call: call, Path: []string{hostile}, Text: hostile, IsError: true, Hint: hostile, Diff: "+" + hostile})
	emit(agent.Event{Kind: agent.EventNotice, Text: hostile, Hint: hostile})
	emit(agent.Event{Kind: agent.EventSubagent, Path: []string{hostile}, Text: hostile})
}

const exitFrozen = 42 // the demo's exit code when Run gave up on the terminal

// demo runs Mission Control over the fake world on this process's terminal: the child of the pty tests.
func demo(scenario string) int {
	w := newWorld()
	o := w.options()
	o.In, o.Out, o.Environ = os.Stdin, os.Stdout, os.Environ()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP) // as cli does
	defer cancel()
	switch scenario {
	case "slow":
		go func() { // until the test says that the servers are ready
			c := make(chan os.Signal, 1)
			signal.Notify(c, os.Interrupt)
			<-c
			close(w.release)
		}()
	case "fail":
		w.fail = []*mcp.Error{{Server: "files", Phase: mcp.PhaseConnect, Text: "the program ended with exit status 3", Hint: "look at its stderr"}}
		go func() {
			c := make(chan os.Signal, 1)
			signal.Notify(c, os.Interrupt)
			<-c
			close(w.release)
		}()
	case "never":
	default:
		close(w.release)
	}
	o.Prompt = os.Getenv("TUI_PROMPT")
	exit, err := Run(ctx, o)
	if scenario == "frozen" { // nothing can be printed
		if slices.Contains(exit.Unfinished, "the terminal takes no output") {
			return exitFrozen
		}
		return exit.Code
	}
	fmt.Printf("EXIT code=%d failures=%d prompts=%q crashed=%v report=%q closed=%q err=%v\n", exit.Code, len(exit.Failures), exit.Prompts, exit.Crashed, exit.Report, w.closed, err)
	return exit.Code
}
