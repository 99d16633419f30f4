package tui

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

const (
	joinBound  = 2 * time.Second // each part of the shutdown gets this long
	closeGrace = 3 * time.Second // on top of it for servers: their transports have kill steps of their own
	maxFPS     = 120             // frames a second: a key is on the screen within 9 ms
)

// program is one Run.
type program struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	leave  context.CancelFunc
	tea    *tea.Program
	relay  *relay
	screen *screenFile
	work   sync.WaitGroup // goroutines that the model started
	mu     sync.Mutex
	crash  string
	began  Servers
	conv   *Conversation // the one that is open
	stuck  bool          // the terminal takes no output: the program was left behind, with the model
}

// Run shows Mission Control until the user leaves, ctx ends (a signal), or a server fails to start. It returns after the
// terminal is restored and everything that it started has ended or passed its bound. The error is for a terminal that
// cannot be used; whatever was typed is in Exit all the same.
func Run(ctx context.Context, o Options) (Exit, error) {
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &program{o: o, ctx: run, cancel: cancel, relay: newRelay()}
	if o.Out != nil {
		p.screen = newScreenFile(o.Out)
	}
	m := newModel(run, o, runtime{do: p.do, relay: p.relay, started: p.started, opened: p.opened, drawn: p.drawn})
	if o.Out != nil {
		if w, h, err := term.GetSize(o.Out.Fd()); err == nil {
			m.resize(w, h)
		}
	}
	// A context of its own: the end of ctx asks the program to quit, and this one is for a program that is left behind.
	life, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	p.leave = leave
	p.tea = tea.NewProgram(m, append(p.options(), tea.WithContext(life))...)
	var relays sync.WaitGroup
	relays.Go(func() { p.relay.run(run, p.tea.Send) })
	err := p.show(ctx) // the terminal is restored when this returns
	p.relay.close()
	cancel()
	exit := p.shutdown(context.WithoutCancel(ctx), m)
	if !within(joinBound, relays.Wait) {
		exit.Unfinished = append(exit.Unfinished, "the screen did not take the last events")
	}
	return p.finish(m, exit, ctx, err)
}

// show runs the program until it ends by itself or ctx does. The end of ctx is a request to quit, not a kill: a killed
// program would close its input while it reads. A terminal that takes no more output (stopped by Ctrl-S, a dead
// connection) must not hold the process: after the bound the line discipline is restored and the program left behind.
func (p *program) show(ctx context.Context) error {
	var before *term.State
	if p.o.In != nil {
		before, _ = term.GetState(p.o.In.Fd())
	}
	ended := make(chan error, 1)
	var shown sync.WaitGroup
	shown.Go(func() {
		_, err := p.tea.Run()
		ended <- err
	})
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	shown.Go(p.tea.Quit)
	timer := time.NewTimer(joinBound)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		if before != nil {
			_ = term.Restore(p.o.In.Fd(), before)
		}
		p.stuck = true
		p.leave() // frees whoever still wants to send to it, and unlike a kill closes nothing that it uses
		return nil
	}
}

func (p *program) options() []tea.ProgramOption {
	opts := []tea.ProgramOption{
		tea.WithoutSignalHandler(), tea.WithFPS(maxFPS),
		tea.WithEnvironment(p.o.Environ),
	}
	if p.o.In != nil {
		opts = append(opts, tea.WithInput(p.o.In))
	} else {
		opts = append(opts, tea.WithInput(nil))
	}
	if p.o.Out != nil {
		opts = append(opts, tea.WithOutput(p.screen))
	}
	switch p.o.ColorDepth {
	case "none":
		opts = append(opts, tea.WithColorProfile(colorprofile.Ascii))
	case "16":
		opts = append(opts, tea.WithColorProfile(colorprofile.ANSI))
	case "256":
		opts = append(opts, tea.WithColorProfile(colorprofile.ANSI256))
	case "true":
		opts = append(opts, tea.WithColorProfile(colorprofile.TrueColor))
	}
	return opts
}

// do runs work of the model's in a goroutine that shutdown waits for. Only the event loop calls it.
func (p *program) do(f func() tea.Msg) {
	p.work.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				p.mu.Lock()
				p.crash = fmt.Sprintf("panic: %v\n\n%s", r, debug.Stack())
				p.mu.Unlock()
				p.tea.Quit()
			}
		}()
		if msg := f(); msg != nil {
			p.tea.Send(msg)
		}
	})
}

// shutdown ends what runs, in order, each part within its bound.
func (p *program) shutdown(ctx context.Context, m *model) Exit {
	var exit Exit
	if !p.stuck { // else the model still belongs to the program
		exit = m.exit
	}
	late := func(what string) { exit.Unfinished = append(exit.Unfinished, what) }
	if p.stuck {
		late("the terminal takes no output")
	}
	if !p.closeConversation(ctx) {
		late("the conversation did not end within 2 s")
	}
	if !within(joinBound, p.work.Wait) {
		late("some work did not end within 2 s and was left behind")
	}
	p.closeConversation(ctx) // one that was being opened
	p.mu.Lock()
	s := p.began
	p.mu.Unlock()
	if s.Close != nil {
		bounded, cancel := context.WithTimeout(ctx, joinBound)
		if !within(joinBound+closeGrace, func() { _ = s.Close(bounded) }) {
			late("some servers did not end in time")
		}
		cancel()
	}
	return exit
}

// drawn waits for the first frame.
func (p *program) drawn() {
	if p.screen == nil {
		return
	}
	timer := time.NewTimer(frameWait)
	defer timer.Stop()
	select {
	case <-p.screen.drawn:
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

func (p *program) started(s Servers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = s
}

// opened notes the conversation that is to be closed; the one before it is closed by whoever opened this one.
func (p *program) opened(c Conversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conv = &c
}

func (p *program) closeConversation(ctx context.Context) bool {
	p.mu.Lock()
	c := p.conv
	p.conv = nil
	p.mu.Unlock()
	if c == nil || c.Close == nil {
		return true
	}
	bounded, cancel := context.WithTimeout(ctx, joinBound)
	defer cancel()
	return within(joinBound+joinBound/4, func() { _ = c.Close(bounded) })
}

// within reports whether f ended in time; a late one is left behind.
func within(bound time.Duration, f func()) bool {
	done := make(chan struct{})
	var w sync.WaitGroup
	w.Go(func() {
		defer close(done)
		f()
	})
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// finish completes the Exit.
func (p *program) finish(m *model, exit Exit, ctx context.Context, err error) (Exit, error) {
	if !p.stuck {
		for _, d := range append(m.queue, m.ed.take()) {
			if !d.blank() {
				exit.Prompts = append(exit.Prompts, d.String())
			}
		}
	}
	p.mu.Lock()
	crash := exit.Report
	exit.Report = ""
	if p.crash != "" {
		crash = p.crash
	}
	p.mu.Unlock()
	if errors.Is(err, tea.ErrProgramPanic) && crash == "" {
		crash = "panic inside the terminal library"
	}
	if crash != "" {
		exit.Crashed, exit.Code = true, 1
		if p.o.Report != nil {
			text := fmt.Sprintf("magi-code %s\n%s\n", p.o.Version, strings.TrimSpace(crash))
			if path, werr := p.o.Report(text); werr == nil {
				exit.Report = path
			}
		}
		return exit, nil
	}
	if err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
		exit.Code = 1
		return exit, fmt.Errorf("terminal: %w", err)
	}
	return exit, nil
}
