package acp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"magi-code/internal/untrusted"
)

// authMethod is the only one: set up a key outside of the editor.
const authMethod = "environment"

// Initialize tells what we are and can do.
func (s *server) Initialize(_ context.Context, p sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	defer s.begins()
	s.mu.Lock()
	s.client = p.ClientCapabilities
	s.mu.Unlock()
	r := sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "magi-code", Title: sdk.Ptr("magi-code"), Version: s.o.Version},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:         true,
			PromptCapabilities:  sdk.PromptCapabilities{Image: true, EmbeddedContext: true},
			SessionCapabilities: sdk.SessionCapabilities{List: &sdk.SessionListCapabilities{}, Close: &sdk.SessionCloseCapabilities{}},
			Meta:                map[string]any{metaKey: map[string]any{"clientTools": 1}},
		},
		AuthMethods: []sdk.AuthMethod{},
	}
	if err := s.o.Ready(); err != nil {
		_, hint := s.o.Explain(err)
		r.AuthMethods = append(r.AuthMethods, sdk.AuthMethod{Agent: &sdk.AuthMethodAgent{Id: authMethod, Name: "Key in the environment", Description: &hint}})
	}
	return r, nil
}

// Authenticate has nothing to do where a model can be asked, and says how to set one up otherwise.
func (s *server) Authenticate(_ context.Context, p sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, s.ready()
}

func (s *server) ready() error {
	if err := s.o.Ready(); err != nil {
		text, hint := s.o.Explain(err)
		return &sdk.RequestError{Code: -32000, Message: text, Data: map[string]any{"hint": hint}}
	}
	return nil
}

// NewSession opens a conversation in a folder. Servers that fail, and bad client tools, start nothing.
func (s *server) NewSession(ctx context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	e, _, err := s.open(ctx, p.Cwd, "", p.Meta, p.McpServers)
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	return sdk.NewSessionResponse{SessionId: e.id, Modes: e.modes()}, nil
}

// LoadSession opens a stored session and replays it as updates before it answers.
func (s *server) LoadSession(ctx context.Context, p sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	s.mu.Lock()
	_, already := s.sessions[p.SessionId]
	s.mu.Unlock()
	if already {
		return sdk.LoadSessionResponse{}, invalid("this session is open already")
	}
	if p.SessionId == "" {
		return sdk.LoadSessionResponse{}, invalid("there is no session of this id")
	}
	e, opened, err := s.open(ctx, p.Cwd, string(p.SessionId), p.Meta, p.McpServers)
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	e.replay(ctx, opened.Entries)
	return sdk.LoadSessionResponse{Modes: e.modes()}, nil
}

func (s *server) open(ctx context.Context, dir, resume string, meta map[string]any, offered []sdk.McpServer) (*editorSession, Opened, error) {
	if !filepath.IsAbs(dir) {
		return nil, Opened{}, invalid("cwd must be an absolute path")
	}
	tools, err := parseClientTools(meta, s.o.Reserved)
	if err != nil {
		return nil, Opened{}, err
	}
	if err := s.ready(); err != nil {
		return nil, Opened{}, err
	}
	e := &editorSession{server: s, mode: modeAsk, running: make(chan struct{}, 1), prompts: map[*prompt]bool{}, dir: filepath.Clean(dir)}
	c := Config{Dir: e.dir, Resume: resume, Emit: e.emit, Ask: e.ask, Tools: e.callable(tools)}
	s.mu.Lock()
	fs := s.client.Fs
	s.mu.Unlock()
	if fs.ReadTextFile {
		c.ReadText, e.readText = e.readBuffer, e.readBuffer
	}
	if fs.WriteTextFile {
		c.WriteText = e.writeBuffer
	}
	opened, err := s.o.Open(ctx, c)
	if err != nil {
		return nil, Opened{}, s.failure(err)
	}
	if resume != "" && opened.ID != resume { // a beginning of an id is for terminals: the editor would not know the session by it
		_ = opened.Conversation.Close(ctx)
		return nil, Opened{}, invalid("there is no session of this id")
	}
	e.id, e.conversation, e.notices = sdk.SessionId(opened.ID), opened.Conversation, opened.Notices
	if text := notStarted(offered); text != "" {
		e.notices = append(e.notices, text)
	}
	s.mu.Lock()
	s.sessions[e.id] = e
	s.mu.Unlock()
	return e, opened, nil
}

// notStarted says that definitions of the client are not started, and how to have the servers.
func notStarted(offered []sdk.McpServer) string {
	if len(offered) == 0 {
		return ""
	}
	names := ""
	for _, m := range offered {
		name := ""
		switch {
		case m.Stdio != nil:
			name = m.Stdio.Name
		case m.Http != nil:
			name = m.Http.Name
		case m.Sse != nil:
			name = m.Sse.Name
		case m.Acp != nil:
			name = m.Acp.Name
		}
		if names != "" {
			names += ", "
		}
		names += untrusted.Head(untrusted.Line(name), maxShownName)
	}
	return "MCP servers of the editor are not started: " + untrusted.Head(names, maxShownNames) +
		". Define them in .mcp.json and approve them in a terminal with: magi-code mcp approve NAME"
}

// Bounds of names of others in our sentences, in bytes.
const (
	maxShownName  = 80
	maxShownNames = 400
)

// SetSessionMode changes what is asked about.
func (s *server) SetSessionMode(_ context.Context, p sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	e, err := s.session(p.SessionId)
	if err != nil {
		return sdk.SetSessionModeResponse{}, err
	}
	if !e.setMode(p.ModeId) {
		return sdk.SetSessionModeResponse{}, invalid("there is no such mode")
	}
	return sdk.SetSessionModeResponse{}, nil
}

// Cancel interrupts the turn of a session.
func (s *server) Cancel(_ context.Context, p sdk.CancelNotification) error {
	e, err := s.session(p.SessionId)
	if err != nil {
		return err
	}
	e.interrupt()
	return nil
}

// CloseSession ends a session's conversation.
func (s *server) CloseSession(ctx context.Context, p sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	e, err := s.session(p.SessionId)
	if err != nil {
		return sdk.CloseSessionResponse{}, err
	}
	s.mu.Lock()
	delete(s.sessions, p.SessionId)
	s.mu.Unlock()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), joinWait)
	defer cancel()
	e.close(end)
	return sdk.CloseSessionResponse{}, nil
}

// ListSessions lists stored sessions, newest first.
func (s *server) ListSessions(_ context.Context, p sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	dir := ""
	if p.Cwd != nil {
		dir = *p.Cwd
	}
	infos, err := s.o.Sessions(dir)
	if err != nil {
		return sdk.ListSessionsResponse{}, s.failure(err)
	}
	r := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	for _, i := range infos {
		r.Sessions = append(r.Sessions, sdk.SessionInfo{
			SessionId: sdk.SessionId(i.ID), Cwd: i.Dir, Title: sdk.Ptr(untrusted.Line(i.Title)), UpdatedAt: sdk.Ptr(i.Modified.UTC().Format(time.RFC3339)),
		})
	}
	return r, nil
}

// ResumeSession is not offered: session/load is.
func (s *server) ResumeSession(context.Context, sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	return sdk.ResumeSessionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionResume)
}

// SetSessionConfigOption is not offered.
func (s *server) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetConfigOption)
}

// HandleExtensionMethod knows none that a client may call.
func (s *server) HandleExtensionMethod(_ context.Context, method string, _ json.RawMessage) (any, error) {
	return nil, sdk.NewMethodNotFound(untrusted.Head(untrusted.Line(method), maxShownName))
}
