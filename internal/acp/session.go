package acp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"magi-code/internal/agent"
	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// Modes of a session: what is asked about. They never widen what rules forbid.
const (
	modeAsk   sdk.SessionModeId = "ask"
	modeEdits sdk.SessionModeId = "accept-edits"
	modeRead  sdk.SessionModeId = "read-only"
)

// editorSession is one conversation of the editor.
type editorSession struct {
	server       *server
	id           sdk.SessionId
	dir          string
	conversation *agent.Conversation
	readText     func(context.Context, string) (string, error)
	running      chan struct{} // holds one while a turn runs

	mu      sync.Mutex
	mode    sdk.SessionModeId
	turn    context.Context  // of the prompt that runs; nil before the first
	prompts map[*prompt]bool // the one that runs, and those that wait for its end
	notices []string         // to be told at the next turn
	asked   sdk.ToolCallId   // the call that a question is about; questions come one at a time
	plan    []sdk.PlanEntry  // tasks of subagents, as the editor shows them
}

func (e *editorSession) modes() *sdk.SessionModeState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &sdk.SessionModeState{CurrentModeId: e.mode, AvailableModes: []sdk.SessionMode{
		{Id: modeAsk, Name: "Ask", Description: sdk.Ptr("ask before tools that change something")},
		{Id: modeEdits, Name: "Accept edits", Description: sdk.Ptr("write and edit files of the workspace without asking, but for those that decide what runs; ask for the rest")},
		{Id: modeRead, Name: "Read only", Description: sdk.Ptr("refuse every tool that would have to ask")},
	}}
}

func (e *editorSession) setMode(m sdk.SessionModeId) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m != modeAsk && m != modeEdits && m != modeRead {
		return false
	}
	e.mode = m
	return true
}

func (e *editorSession) interrupt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for p := range e.prompts {
		p.cancel()
	}
}

func (e *editorSession) close(ctx context.Context) {
	e.interrupt()
	_ = e.conversation.Close(ctx) // its bound has passed or it has ended; the connection is gone either way
}

// update sends one update. It blocks while the editor does not read, which holds the run back.
func (e *editorSession) update(u sdk.SessionUpdate) {
	_ = e.server.conn.SessionUpdate(e.server.ctx, sdk.SessionNotification{SessionId: e.id, Update: u}) // a gone editor ends the run by itself
}

// prompt is one that runs or waits.
type prompt struct{ cancel context.CancelFunc }

// begin makes a prompt that can be cancelled. It cancels those before it: the library does so too, but misses one that waits.
func (e *editorSession) begin(ctx context.Context) (context.Context, *prompt) {
	ctx, cancel := context.WithCancel(ctx)
	p := &prompt{cancel}
	e.mu.Lock()
	defer e.mu.Unlock()
	for other := range e.prompts {
		other.cancel()
	}
	e.prompts[p] = true
	return ctx, p
}

func (e *editorSession) end(p *prompt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.prompts, p)
	p.cancel()
}

// Prompt runs one turn. One that comes while another runs interrupts it and follows it.
func (s *server) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	begins := sync.OnceFunc(s.begins)
	defer begins()
	e, err := s.session(p.SessionId)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	blocks, err := promptBlocks(p.Prompt)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	ctx, mine := e.begin(ctx)
	defer e.end(mine)
	begins()
	select {
	case e.running <- struct{}{}:
		defer func() { <-e.running }()
	case <-ctx.Done():
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	}
	e.mu.Lock()
	e.turn = ctx
	notices := e.notices
	e.notices = nil
	e.mu.Unlock()
	for _, n := range notices {
		e.update(sdk.UpdateAgentMessageText("Note: " + n + "\n\n"))
	}
	turn, err := e.conversation.Send(ctx, blocks)
	switch {
	case turn.Stop == agent.StopInterrupted:
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
	case err != nil:
		return sdk.PromptResponse{}, s.failure(err)
	}
	return sdk.PromptResponse{StopReason: stopReason(turn.Stop)}, nil
}

func stopReason(s agent.StopReason) sdk.StopReason {
	switch s {
	case agent.StopMaxTurns:
		return sdk.StopReasonMaxTurnRequests
	case agent.StopMaxTokens:
		return sdk.StopReasonMaxTokens
	case agent.StopRefusal:
		return sdk.StopReasonRefusal
	}
	return sdk.StopReasonEndTurn
}

// promptBlocks makes a prompt of what the editor sends: text, images, embedded resources, links. What services of models refuse is
// refused here, for it would stay in the history and make them refuse every later request.
func promptBlocks(in []sdk.ContentBlock) ([]provider.Block, error) {
	var out []provider.Block
	images, blank := 0, true
	text := func(s string) {
		blank = blank && strings.TrimSpace(s) == ""
		out = append(out, provider.Block{Kind: provider.Text, Text: strings.ReplaceAll(s, "\x00", "\uFFFD")})
	}
	for _, b := range in {
		switch {
		case b.Text != nil:
			text(b.Text.Text)
		case b.Image != nil:
			image, err := promptImage(b.Image)
			if err != nil {
				return nil, err
			}
			if images++; images > tool.MaxImages {
				return nil, invalid(fmt.Sprintf("a prompt holds %d images at most", tool.MaxImages))
			}
			blank = false
			out = append(out, image)
		case b.ResourceLink != nil:
			text(fmt.Sprintf("[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri))
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			text(fmt.Sprintf("<resource uri=%q>\n%s\n</resource>", r.Uri, r.Text))
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
			text(fmt.Sprintf("[binary resource %s]", b.Resource.Resource.BlobResourceContents.Uri))
		default:
			return nil, invalid("a prompt may hold text, images, resources and links to them")
		}
	}
	if blank {
		return nil, invalid("the prompt is empty")
	}
	return out, nil
}

// promptImage is an image by what its bytes say it is.
func promptImage(b *sdk.ContentBlockImage) (provider.Block, error) {
	data, err := base64.StdEncoding.DecodeString(b.Data)
	if err != nil {
		return provider.Block{}, invalid("an image is not valid base64")
	}
	image := tool.Result{Content: []tool.Content{{Kind: tool.Image, MIME: b.MimeType, Data: data}}}.ForModel(0)[0]
	if image.Kind != tool.Image {
		return provider.Block{}, invalid(fmt.Sprintf("an image must be a PNG, JPEG, GIF or WebP of at most %d bytes", tool.MaxImage))
	}
	return provider.Block{Kind: provider.Image, MIME: image.MIME, Data: data}, nil
}

// answerOf is the answer that a mode gives by itself; ok is false when the person has to be asked.
func answerOf(mode sdk.SessionModeId, q permission.Question) (answer permission.Answer, ok bool) {
	switch {
	case mode == modeRead:
		return permission.No, true
	case mode == modeEdits && q.Server == "" && (q.Tool == "write" || q.Tool == "edit") && !q.Protected:
		return permission.Once, true
	}
	return permission.No, false
}

// ask puts a question to the editor, in our words.
func (e *editorSession) ask(ctx context.Context, q permission.Question) (permission.Answer, error) {
	e.mu.Lock()
	mode, call := e.mode, e.asked
	e.mu.Unlock()
	if answer, ok := answerOf(mode, q); ok {
		return answer, nil
	}
	title := "Run " + q.Tool
	if q.Server != "" {
		title = fmt.Sprintf("Call tool %q of MCP server %q", q.Remote, q.Server)
	}
	if len(q.Path) > 0 {
		title += " for subagent " + strings.Join(q.Path, "/")
	}
	option := func(id, name string, kind sdk.PermissionOptionKind) sdk.PermissionOption {
		return sdk.PermissionOption{OptionId: sdk.PermissionOptionId(id), Name: name, Kind: kind}
	}
	options := []sdk.PermissionOption{
		option("once", "Allow this call", sdk.PermissionOptionKindAllowOnce),
		option("session", "Allow this tool until magi-code ends", sdk.PermissionOptionKindAllowAlways),
		option("always", "Always allow this tool (writes a rule)", sdk.PermissionOptionKindAllowAlways),
		option("no", "Refuse", sdk.PermissionOptionKindRejectOnce),
	}
	if q.Protected { // asked each time
		options = []sdk.PermissionOption{options[0], options[3]}
	}
	r, err := e.server.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: e.id,
		ToolCall:  sdk.ToolCallUpdate{ToolCallId: call, Title: sdk.Ptr(untrusted.Line(title)), RawInput: rawInput(q.Input), Status: sdk.Ptr(sdk.ToolCallStatusPending)},
		Options:   options,
	})
	if err != nil {
		return permission.No, errors.New(editorWords(err))
	}
	if r.Outcome.Selected == nil {
		return permission.No, nil
	}
	switch r.Outcome.Selected.OptionId {
	case "once":
		return permission.Once, nil
	case "session":
		return permission.Session, nil
	case "always":
		return permission.Always, nil
	}
	return permission.No, nil
}

func (e *editorSession) readBuffer(ctx context.Context, path string) (string, error) {
	r, err := e.server.conn.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: e.id, Path: path})
	if err != nil {
		return "", editorError("read", err)
	}
	return r.Content, nil
}

func (e *editorSession) writeBuffer(ctx context.Context, path, text string) error {
	if _, err := e.server.conn.WriteTextFile(ctx, sdk.WriteTextFileRequest{SessionId: e.id, Path: path, Content: text}); err != nil {
		return editorError("write", err)
	}
	return nil
}

// maxEditorError bounds the editor's own words in an error, in bytes.
const maxEditorError = 300

func editorError(what string, err error) error {
	return fmt.Errorf("the editor could not %s the file: %s", what, editorWords(err))
}

// editorWords is what an editor's error says, safe to show.
func editorWords(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*sdk.RequestError](err); ok {
		text = e.Message
		if data, ok := e.Data.(map[string]any); ok { // where the library puts what went wrong
			if more, ok := data["error"].(string); ok {
				text += ": " + more
			}
		}
	}
	return untrusted.Head(untrusted.Line(text), maxEditorError)
}
