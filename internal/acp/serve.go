// Package acp is the agent inside an editor: the same conversation, spoken over the Agent Client Protocol (JSON-RPC 2.0,
// one message a line, protocol version 1; agentclientprotocol.com) on stdin and stdout.
package acp

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"magi-code/internal/agent"
	"magi-code/internal/permission"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

// joinWait bounds the end of all turns after the editor has gone.
const joinWait = time.Second

// Options are what the server is made of; cli fills them in.
type Options struct {
	In      io.Reader
	Out     io.Writer // protocol only
	Version string
	// Ready reports whether a model can be asked; the error says how to set one up.
	Ready func() error
	// Open makes a conversation in a folder. An error ends session/new or session/load; Explain makes it legible.
	Open func(ctx context.Context, c Config) (Opened, error)
	// Sessions lists the stored sessions of a folder, "" for all.
	Sessions func(dir string) ([]session.Info, error)
	// Explain returns sentence and cure of an error, sanitized, without secrets.
	Explain func(error) (text, hint string)
	// Reserved are the names that client tools may not take.
	Reserved []string
}

// Config says what a conversation needs from the editor.
type Config struct {
	Dir    string // absolute
	Resume string // id of a stored session, or ""
	Emit   func(agent.Event)
	Ask    permission.Asker
	Tools  []tool.Tool // registered by the client, already checked
	// ReadText and WriteText go to the editor's buffers; nil where the client does not offer it.
	ReadText  func(ctx context.Context, path string) (string, error)
	WriteText func(ctx context.Context, path, text string) error
}

// Opened is a conversation with the id and the history of its session.
type Opened struct {
	ID           string
	Entries      []session.Entry
	Conversation *agent.Conversation
	Notices      []string // to be told once
}

// Serve speaks the protocol until the peer closes its end or ctx ends. Then every turn is cancelled and awaited, up to a
// second. It returns nil when the peer closed.
func Serve(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &lockedWriter{w: o.Out}
	s := &server{o: o, ctx: ctx, sessions: map[sdk.SessionId]*editorSession{}}
	// The library reads at once, and quotes whole messages in its log; what matters is answered over the protocol.
	quiet := make(chan struct{})
	s.conn = sdk.NewAgentSideConnection(s, out, newFrames(gate{o.In, quiet}, out))
	s.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(quiet)
	select {
	case <-s.conn.Done():
	case <-ctx.Done():
	}
	ended := ctx.Err()
	cancel()
	s.close()
	return ended
}

// gate is a reader that has nothing before it is opened.
type gate struct {
	r      io.Reader
	opened <-chan struct{}
}

func (g gate) Read(b []byte) (int, error) {
	<-g.opened
	return g.r.Read(b)
}

// lockedWriter keeps messages whole: the library and the frame filter both write.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// server answers the editor. The library calls each request on a goroutine of its own.
type server struct {
	o    Options
	ctx  context.Context // ends with the connection
	conn *sdk.AgentSideConnection

	mu       sync.Mutex
	client   sdk.ClientCapabilities
	sessions map[sdk.SessionId]*editorSession
}

// close ends all conversations, at once, within joinWait.
func (s *server) close() {
	end, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), joinWait)
	defer cancel()
	s.mu.Lock()
	all := make([]*editorSession, 0, len(s.sessions))
	for _, e := range s.sessions {
		all = append(all, e)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, e := range all {
		wg.Go(func() { e.close(end) })
	}
	wg.Wait()
}

func (s *server) session(id sdk.SessionId) (*editorSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.sessions[id]; ok {
		return e, nil
	}
	return nil, invalid("there is no open session of this id")
}

// failure makes an answer of an error: one sentence, with the cure beside it.
func (s *server) failure(err error) error {
	text, hint := s.o.Explain(err)
	return &sdk.RequestError{Code: -32603, Message: text, Data: map[string]any{"hint": hint}}
}

func invalid(text string) error {
	return &sdk.RequestError{Code: -32602, Message: "invalid params: " + text}
}
