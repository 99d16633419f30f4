package agent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"magi-code/internal/permission"
	"magi-code/internal/provider"
	"magi-code/internal/session"
	"magi-code/internal/tool"
)

// waits blocks until its context ends.
func waits(ctx context.Context, _ tool.Call) (tool.Result, error) {
	<-ctx.Done()
	return tool.Result{}, ctx.Err()
}

// interruptOn makes an Emit that cancels at the first event of a kind.
func interruptOn(l *log, kind EventKind, cancel context.CancelFunc) func(Event) {
	return func(e Event) {
		l.add(e)
		if e.Kind == kind {
			cancel()
		}
	}
}

// again sends a further prompt and checks that what the model then sees is whole.
func again(t *testing.T, conv *Conversation, m *model) {
	t.Helper()
	n := len(m.seen())
	m.answer = func(context.Context, provider.Request, int) ([]provider.Event, error) { return says("on"), nil }
	turn, err := conv.Send(context.Background(), prompt("go on"))
	if err != nil || turn.Text != "on" {
		t.Fatalf("next turn: %+v, %v", turn, err)
	}
	messages := m.seen()[n].Messages
	if diff := cmp.Diff(messages, repair(messages)); diff != "" {
		t.Errorf("the history needed repair: %s", diff)
	}
}

// TestInterruptStream: an interruption in the middle of an answer keeps the text that was there.
func TestInterruptStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &model{answer: func(ctx context.Context, _ provider.Request, _ int) ([]provider.Event, error) {
		return []provider.Event{
			{Kind: provider.BlockDone, Block: provider.Block{Kind: provider.Thinking, Text: "hm"}},
			{Kind: provider.BlockDone, Block: provider.Block{Kind: provider.ToolCall, CallID: "c1", Name: "read", Input: []byte(`{}`)}},
			{Kind: provider.TextDelta, Text: "I was about"},
		}, context.Canceled
	}}
	l := &log{}
	conv, _ := converse(t, Config{Provider: m, Emit: interruptOn(l, EventText, cancel)})
	turn, err := conv.Send(ctx, prompt("go"))
	if err != nil || turn.Stop != StopInterrupted {
		t.Fatalf("turn = %+v, %v", turn, err)
	}
	want := []provider.Message{{Role: provider.User, Blocks: prompt("go")}, {Role: provider.Assistant, Blocks: prompt("I was about")}}
	if diff := cmp.Diff(want, conv.Messages()); diff != "" {
		t.Error(diff)
	}
	again(t, conv, m)
}

// TestInterruptTool: an interruption while tools run ends them; those that were ready keep their results.
func TestInterruptTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		release := make(chan struct{})
		deaf := func(context.Context, tool.Call) (tool.Result, error) {
			<-release
			return tool.TextResult("too late"), nil
		}
		quick := func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("ready"), nil }
		m := steps(calls("quick", `{"intent":"x"}`, "waits", `{"intent":"x"}`, "deaf", `{"intent":"x"}`))
		l := &log{}
		store, s := newSession(t)
		conv := New(Config{Provider: m, Emit: l.add, Session: s, Tools: offering(t, reader("quick", quick), reader("waits", waits), reader("deaf", deaf))})
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		turn, err := conv.Send(ctx, prompt("go"))
		if err != nil || turn.Stop != StopInterrupted {
			t.Fatalf("turn = %+v, %v", turn, err)
		}
		if took := time.Since(began); took != time.Second+toolGrace {
			t.Errorf("took %s", took)
		}
		var texts []string
		for _, b := range conv.Messages()[2].Blocks {
			texts = append(texts, b.Content[0].Text)
		}
		if diff := cmp.Diff([]string{"ready", interruptedText, interruptedText}, texts); diff != "" {
			t.Error(diff)
		}
		told := len(l.all())
		again(t, conv, m)
		told2 := len(l.all())
		if told2 == told {
			t.Error("no events of the second turn")
		}
		close(release)
		synctest.Wait()
		if len(l.all()) != told2 {
			t.Errorf("a call of an ended turn spoke: %+v", l.all()[told2:])
		}
		if err := conv.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, e := range stored(t, store, s.ID()) {
			if e.Kind == session.Result && e.Tool == "deaf" {
				t.Errorf("a call of an ended turn was recorded: %+v", e)
			}
		}
	})
}

// TestCloseIsBounded: a tool that never ends does not keep Close for ever.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		release := make(chan struct{})
		deaf := func(context.Context, tool.Call) (tool.Result, error) { <-release; return tool.Result{}, nil }
		conv := New(Config{Provider: steps(calls("deaf", `{"intent":"x"}`)), Tools: offering(t, reader("deaf", deaf))})
		time.AfterFunc(time.Second, cancel)
		if _, err := conv.Send(ctx, prompt("go")); err != nil {
			t.Fatal(err)
		}
		bound, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if err := conv.Close(bound); err == nil || !strings.Contains(err.Error(), "ignores that it was interrupted") {
			t.Errorf("close: %v", err)
		}
		close(release)
	})
}

// TestInterruptQuestion: an interruption ends a question and those that wait behind it.
func TestInterruptQuestion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	one := `{"intent":"x","arguments":{}}`
	m := steps(calls("mcp__s__x", one, "mcp__s__x", one))
	l := &log{}
	conv, _ := converse(t, Config{
		Provider: m, Emit: interruptOn(l, EventAsk, cancel), Tools: offering(t, server("s", "x", echo)),
		Ask: func(ctx context.Context, _ permission.Question) (permission.Answer, error) {
			<-ctx.Done()
			return permission.No, ctx.Err()
		},
	})
	turn, err := conv.Send(ctx, prompt("go"))
	if err != nil || turn.Stop != StopInterrupted || len(l.of(EventAsk)) != 1 {
		t.Fatalf("turn = %+v, %v", turn, err)
	}
	for _, e := range l.of(EventResult) {
		if e.Text != interruptedBefore {
			t.Errorf("result %q", e.Text)
		}
	}
	again(t, conv, m)
}

// TestSecondSendWaits: one turn at a time, and waiting can be given up.
func TestSecondSendWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := &model{answer: func(_ context.Context, _ provider.Request, n int) ([]provider.Event, error) {
			if n == 0 {
				<-release
			}
			return says("ok"), nil
		}}
		conv := New(Config{Provider: m})
		for range 2 {
			go func() {
				if turn, err := conv.Send(context.Background(), prompt("a")); err != nil || turn.Stop != StopDone {
					t.Errorf("turn = %+v, %v", turn, err)
				}
			}()
			synctest.Wait()
		}
		if n := len(m.seen()); n != 1 {
			t.Errorf("%d requests at once", n)
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if turn, err := conv.Send(gone, prompt("b")); err != nil || turn.Stop != StopInterrupted {
			t.Errorf("turn = %+v, %v", turn, err)
		}
		close(release)
		synctest.Wait()
		if n := len(m.seen()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}
