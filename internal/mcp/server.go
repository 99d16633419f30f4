package mcp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/tool"
)

// server is one definition at run time. Its connection is replaced when it ends; everything else stays.
type server struct {
	name        string
	o           *Options
	def         definition.Server
	launch      definition.Launch
	unlaunched  error // why there is no launch
	dial        dialer
	life        context.Context // ends with the manager
	hurry       context.Context // ends when the manager's closing runs out of time
	replies     limiter
	unannounced atomic.Int64
	wg          sync.WaitGroup // connections and shared work

	telling sync.Mutex // orders OnStatus; taken before mu

	mu       sync.Mutex // guards what follows
	st       Status     // its lists are in listing
	conn     *client    // nil: none is ready
	last     *client    // the newest one, ready or not
	listing  *listing   // nil: never listed
	due      bool       // list_changed came
	retry    bool       // the last refresh failed and may be tried once more
	starting *shared
	renewing *shared
	closing  bool // nothing new starts
	closeErr error
}

func newServer(o *Options, d definition.Server, dial dialer, life, hurry context.Context) *server {
	s := &server{name: d.Name, o: o, def: d, dial: dial, life: life, hurry: hurry}
	s.launch, s.unlaunched = d.Expand(o.Lookup)
	if s.unlaunched == nil {
		o.Scrub.Add(s.launch.Secrets()...)
	}
	s.st = Status{Name: d.Name, Type: string(d.Type), Since: time.Now(), Timeout: time.Duration(d.Timeout) * time.Second}
	return s
}

// connected returns the live connection, opening one when there is none. Callers that come meanwhile share the opening.
func (s *server) connected(ctx context.Context) (*client, error) {
	if ctx.Err() != nil {
		return nil, aborted(ctx)
	}
	s.mu.Lock()
	if c := s.conn; c != nil && !c.dead() {
		s.mu.Unlock()
		return c, nil
	}
	if s.closing {
		s.mu.Unlock()
		return nil, s.explain(inPhase(PhaseCall, ErrClosed), nil)
	}
	work := s.join(&s.starting, s.start)
	s.mu.Unlock()
	if err := work.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.last
	s.mu.Unlock()
	return c, nil // if it is dead again already, the request will say why
}

// settle waits for a start that its last caller left, so that the status tells its end.
func (s *server) settle() {
	s.mu.Lock()
	work := s.starting
	s.mu.Unlock()
	if work != nil {
		<-work.done
	}
}

// start opens a connection and makes the server ready, or tells why it is not.
func (s *server) start(ctx context.Context) error {
	began := time.Now()
	s.mu.Lock()
	previous, dead := s.last, s.conn
	s.mu.Unlock()
	if dead != nil { // and not yet known to be: its end must not be told after the new beginning
		s.lost(dead, dead.whyDead())
	}
	if previous != nil && s.def.Type == definition.Stdio { // two children at once could fight over what they share
		select {
		case <-previous.gone:
		case <-ctx.Done():
			return s.failed(nil, inPhase(PhaseConnect, aborted(ctx)))
		}
	}
	c, err := s.open(ctx)
	if err != nil {
		return s.failed(c, err)
	}
	s.phase(PhaseInitialize)
	hello, err := c.initialize(ctx, s.o.Version)
	if err != nil {
		phase := PhaseInitialize
		if s.def.Type == definition.HTTP && jsonrpc.NotSent(err) {
			phase = PhaseConnect // dialling is the transport's business, and initialize the first to need it
		}
		return s.failed(c, inPhase(phase, err))
	}
	s.mu.Lock()
	list := s.listing
	// A reconnected server keeps its snapshot (R-L1): the turn in progress must not see another. If it promised to tell of
	// changes, it could not meanwhile.
	s.due = s.due || list != nil && hello.listChanged
	s.mu.Unlock()
	if list == nil {
		s.phase(PhaseList)
		s.mu.Lock()
		s.due = false // what was announced so far, the listing will have
		s.mu.Unlock()
		raw, extra, err := c.listTools(ctx)
		if err == nil {
			list, err = s.catalogue(raw, extra)
		}
		if err != nil {
			return s.failed(c, inPhase(PhaseList, err))
		}
	}
	if c.dead() { // W3: gone right after a good answer
		return s.failed(c, inPhase(PhaseList, c.whyDead()))
	}
	s.change(func(st *Status) {
		s.conn, s.listing = c, list
		st.State, st.Phase, st.Since, st.Took, st.Err = Ready, "", time.Now(), took(began), nil
		st.Protocol = hello.protocol
		st.ServerName, st.ServerVersion = s.line(hello.name, maxServerName), s.line(hello.version, maxServerVersion)
		st.Instructions = s.page(hello.instructions, maxInstructions)
	})
	if c.dead() { // perhaps before it was the connection, so that nobody could mark the server
		why := c.whyDead()
		s.lost(c, why)
		return s.explain(inPhase(PhaseList, why), c)
	}
	return nil
}

// open expands, dials, and hands the connection to a goroutine that sees to its end.
func (s *server) open(ctx context.Context) (*client, error) {
	if s.unlaunched != nil {
		return nil, inPhase(PhaseExpand, s.unlaunched)
	}
	s.phase(PhaseConnect)
	c := newClient(s.life, s.launch.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, &timeoutError{method: "connect", limit: c.timeout})
	defer cancel()
	l, err := s.dial(ctx, s.launch, func(r jsonrpc.Request) *jsonrpc.Response { return s.hear(c, r) })
	if err != nil {
		c.drop(err)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, inPhase(PhaseConnect, err)
	}
	c.link = l
	s.mu.Lock()
	s.last = c
	s.mu.Unlock()
	s.wg.Go(func() {
		err := c.bury(s.hurry, func(why error) { s.lost(c, why) })
		s.mu.Lock()
		s.closeErr = errors.Join(s.closeErr, err)
		s.mu.Unlock()
	})
	return c, nil
}

// phase tells how far a start is.
func (s *server) phase(p Phase) {
	s.change(func(st *Status) {
		if st.State != Starting {
			st.Since = time.Now()
		}
		st.State, st.Phase, st.Err = Starting, p, nil
	})
}

// failed marks the server failed for a reason, gives its connection up, and returns the error for its callers.
func (s *server) failed(c *client, err error) error {
	e := s.explain(err, c)
	if c != nil {
		c.drop(e)
	}
	s.change(func(st *Status) {
		if s.life.Err() != nil {
			st.State = Closed
			return
		}
		st.State, st.Phase, st.Since, st.Err = Failed, "", time.Now(), e
	})
	return e
}

// lost marks the server failed when its ready connection has ended (X3). It may be told more than once.
func (s *server) lost(c *client, why error) {
	s.mu.Lock()
	mine := s.conn == c
	s.mu.Unlock()
	if !mine {
		return
	}
	if sibling, ok := errors.AsType[*siblingError](why); ok {
		why = &droppedError{sibling}
	}
	e := s.explain(inPhase(PhaseCall, why), c)
	if e.Hint == "" {
		e.Hint = "the next call connects again"
	}
	s.change(func(st *Status) {
		if s.conn != c {
			return
		}
		s.conn = nil
		if s.life.Err() != nil {
			st.State, st.Phase, st.Since = Closed, "", time.Now()
			return
		}
		st.State, st.Phase, st.Since, st.Err = Failed, "", time.Now(), e
	})
}

// call runs one tool. It is repeated by itself only when nothing of it left the process, and once (R-P6).
func (s *server) call(ctx context.Context, name string, arguments jsontext.Value) (tool.Result, error) {
	if len(arguments) == 0 {
		arguments = jsontext.Value("{}")
	}
	params, err := json.Marshal(struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	}{name, arguments}, jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return tool.Result{}, &Error{Server: s.name, Phase: PhaseCall, Text: "the arguments are not valid JSON"}
	}
	for again := true; ; again = false {
		c, err := s.connected(ctx)
		if err != nil {
			return tool.Result{}, s.explain(inPhase(PhaseCall, err), nil)
		}
		raw, err := c.request(ctx, "tools/call", params)
		if err == nil {
			return scrub(readResult(raw), s.o.Scrub), nil
		}
		if c.dead() {
			s.lost(c, c.whyDead())
		}
		if !again || ctx.Err() != nil || !repeatable(err) {
			return tool.Result{}, s.explain(inPhase(PhaseCall, err), c)
		}
	}
}

// repeatable reports whether sending a request once more is safe and could help.
func repeatable(err error) bool {
	if _, tooLarge := errors.AsType[*jsonrpc.TooLargeError](err); tooLarge || errors.Is(err, ErrTimeout) {
		return false
	}
	return jsonrpc.NotSent(err)
}

// close marks the server closed after its connections and work have ended.
func (s *server) close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.wg.Wait()
	s.change(func(st *Status) {
		if st.State != Closed {
			st.State, st.Phase, st.Since = Closed, "", time.Now()
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closeErr == nil {
		return nil
	}
	return s.explain(inPhase(PhaseClose, s.closeErr), nil)
}
