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

const (
	// joinWait bounds the end of all turns after the editor has gone. A command that ignores SIGTERM and a hook after it that does
	// the same take 1.1 s; the servers end after it, and all is over in two.
	joinWait = 1500 * time.Millisecond
	// maxReplies is how many answers to bad lines wait for an editor that does not read. More are dropped.
	maxReplies = 32
	// beginWait bounds how long a message waits for one that came before it. The library begins that at once, or refuses it without
	// telling us.
	beginWait = 500 * time.Millisecond
)

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

// Serve speaks the protocol until the peer closes its end or ctx ends. Then every turn is cancelled and awaited, up to
// joinWait. It returns nil when the peer closed.
func Serve(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &lockedWriter{w: o.Out}
	s := &server{o: o, ctx: ctx, sessions: map[sdk.SessionId]*editorSession{}}
	r := &replies{out: out, lines: make(chan string, maxReplies), stop: make(chan struct{}), stopped: make(chan struct{})}
	var work sync.WaitGroup
	work.Go(r.send)
	// The library reads at once, and quotes whole messages in its log; what matters is answered over the protocol.
	quiet := make(chan struct{})
	s.conn = sdk.NewAgentSideConnection(s, out, newFrames(gate{o.In, quiet}, r.add, s.order))
	s.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(quiet)
	select {
	case <-s.conn.Done():
	case <-ctx.Done():
	}
	ended := ctx.Err()
	cancel()
	end, cancelEnd := context.WithTimeout(context.WithoutCancel(ctx), joinWait)
	defer cancelEnd()
	s.close(end)
	close(r.stop)
	select {
	case <-r.stopped:
		work.Wait()
	case <-end.Done(): // it writes to an editor that does not read
	}
	return ended
}

// replies writes our answers to bad lines. It waits for an editor that does not read in the place of the reader, which has to notice
// when stdin closes.
type replies struct {
	out           io.Writer
	lines         chan string
	stop, stopped chan struct{}
}

func (r *replies) add(line string) {
	select {
	case r.lines <- line:
	default:
	}
}

// send writes until stop, and then what is left.
func (r *replies) send() {
	defer close(r.stopped)
	for {
		select {
		case line := <-r.lines:
			_, _ = io.WriteString(r.out, line) // an editor that is gone ends the connection by itself
		case <-r.stop:
			for len(r.lines) > 0 {
				_, _ = io.WriteString(r.out, <-r.lines)
			}
			return
		}
	}
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
	coming   bool          // a request that others wait for was read and has not begun
	begun    chan struct{} // closed when it has; nil while nobody waits for it
}

// order keeps a cancellation behind the prompts that were sent before it, a prompt behind another one, and all behind initialize: the
// library handles every request on a goroutine of its own, so the prompt could begin after its cancellation and run to its end.
func (s *server) order(method string) {
	begins, waits := false, true
	switch method {
	case sdk.AgentMethodInitialize, sdk.AgentMethodSessionPrompt:
		begins = true
	case sdk.AgentMethodSessionCancel, sdk.AgentMethodSessionNew, sdk.AgentMethodSessionLoad:
	default:
		waits = false
	}
	if !waits {
		return
	}
	s.mu.Lock()
	if s.coming {
		begun := make(chan struct{})
		s.begun = begun
		s.mu.Unlock()
		timer := time.NewTimer(beginWait)
		select {
		case <-begun:
		case <-timer.C:
		case <-s.ctx.Done():
		}
		timer.Stop()
		s.mu.Lock()
		s.coming, s.begun = false, nil
	}
	if begins {
		s.coming = true
	}
	s.mu.Unlock()
}

// begins is called by initialize once it is done, and by each prompt once it can be cancelled or was refused.
func (s *server) begins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming = false
	if s.begun != nil {
		close(s.begun)
		s.begun = nil
	}
}

// close ends all conversations, at once.
func (s *server) close(end context.Context) {
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
	return &sdk.RequestError{Code: codeInternalError, Message: text, Data: map[string]any{"hint": hint}}
}

func invalid(text string) error {
	return &sdk.RequestError{Code: codeInvalidParams, Message: "invalid params: " + text}
}
