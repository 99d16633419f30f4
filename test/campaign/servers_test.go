//go:build campaign && linux

package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/test/zoo/httpzoo"
)

const (
	// overlap is how many calls are under way at once.
	overlap = 64
	// timeout is that of every server, in seconds: the least that a definition can have.
	timeout = 1
	// grace is what a caller waits beyond its own deadline, on a busy machine.
	grace = 3 * time.Second
	// closing bounds the end of a connection that the next one waits for: 250 ms of farewell, 6 s of steps, 4 s for a killed process.
	closing = 10*time.Second + 250*time.Millisecond
	// longest is the limit of a call without a deadline: the end of the connection before, then connecting, initialize, its
	// notification, tools/list and the call itself, each within the timeout; and all again when nothing had been sent.
	longest = 2 * (closing + 5*timeout*time.Second)
	// farewell bounds the end of all servers.
	farewell = 15 * time.Second
)

// flakyModes are what the HTTP server of the zoo does for a while.
var flakyModes = []string{"good-sse", "sse-split", "sse-drop", "sse-mid", "sse-reset", "sse-open", "sse-notes", "sse-ping", "drop", "drop-mid-reply", "gzip",
	"status-503", "status-503-call", "status-500-call", "status-429-once", "session-404", "session-400", "slow-error", "html", "empty-202", "wrong-id", "rpc-400", "get-closes"}

// pen holds the servers and the manager.
type pen struct {
	t     *testing.T
	m     *mcp.Manager
	dir   string
	flaky *httpzoo.MCP

	web *writer

	calls, results, failures atomic.Int64
	slowest, latest          atomic.Int64 // the longest call, and the longest that a call went on after its own deadline
	reasons                  sync.Map     // text -> *atomic.Int64
}

// stdioNames are the servers that are processes of the manager's.
var stdioNames = []string{"first", "second"}

// unhurried are servers whose callers never give up, so that nothing but the server's own timeout ends what hangs.
var unhurried = []string{"second", "web"}

// newPen starts the servers, approved in a home of their own.
func newPen(t *testing.T) *pen {
	t.Helper()
	p := &pen{t: t, dir: t.TempDir(), flaky: httpzoo.Start("")}
	p.web = start(t, "web", "127.0.0.1:0")
	p.web.await(1)
	servers := map[string]any{
		"web":   map[string]any{"type": "http", "url": "http://" + p.webAddress() + "/mcp", "timeout": timeout},
		"flaky": map[string]any{"type": "http", "url": p.flaky.URL(), "timeout": timeout},
	}
	for _, n := range stdioNames {
		servers[n] = map[string]any{"command": testOnlyZoo, "args": []string{"good", "touch=" + p.pids(n)}, "timeout": timeout}
	}
	p.m = open(t, servers)
	return p
}

// open approves definitions the way a person does and starts them.
func open(t *testing.T, servers map[string]any) *mcp.Manager {
	t.Helper()
	w := newWorld(t, servers)
	store := approval.NewStore(w.home)
	config, err := definition.Load(w.home, w.project)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range config.Servers {
		v, err := store.Review(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Approve(t.Context(), v, os.LookupEnv); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := store.Check(config.Servers)
	if err != nil {
		t.Fatal(err)
	}
	var proofs []approval.Approved
	for _, e := range entries {
		a, ok := e.Approved()
		if !ok {
			t.Fatal(e.State)
		}
		proofs = append(proofs, a)
	}
	m, err := mcp.Open(t.Context(), mcp.Options{Servers: proofs, Lookup: os.LookupEnv, Dir: w.project, Version: "campaign"})
	if err != nil {
		t.Fatal(err)
	}
	if failures := m.Failures(); len(failures) > 0 {
		t.Fatal(failures)
	}
	return m
}

func (p *pen) pids(name string) string { return filepath.Join(p.dir, name+".pids") }

func (p *pen) webAddress() string { return p.web.done()[0] }

// close ends everything and checks that nothing lives on.
func (p *pen) close() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := p.m.Close(ctx); err != nil {
		p.t.Errorf("close: %v", err)
	}
	p.web.kill()
	p.flaky.Close()
	for _, n := range stdioNames {
		if left := alive(p.t, p.pids(n)); len(left) > 0 {
			p.t.Errorf("processes of %s live on: %v", n, left)
		}
	}
}

// signal sends a signal to the present process of a stdio server, if it is a child of ours still, and returns its id.
func (p *pen) signal(name string, s syscall.Signal) int {
	pids := readPIDs(p.t, p.pids(name))
	if len(pids) == 0 {
		return 0
	}
	return signalChild(pids[len(pids)-1], s)
}

func signalChild(pid int, s syscall.Signal) int {
	if pid == 0 || parent(pid) != os.Getpid() {
		return 0
	}
	_ = syscall.Kill(pid, s)
	return pid
}

// harms is how many kinds harm knows; some count twice.
const harms = 12

// harm does one thing to one server. What it begins for a while it ends by itself.
func (p *pen) harm(r *rand.Rand, kind int) (what string) {
	name := stdioNames[r.IntN(len(stdioNames))]
	switch kind {
	case 0, 1:
		p.signal(name, syscall.SIGKILL)
		return "stdio killed"
	case 2, 3: // slowed: it stands still for a moment
		pid := p.signal(name, syscall.SIGSTOP)
		pause(r, 600*time.Millisecond)
		signalChild(pid, syscall.SIGCONT)
		return "stdio slowed"
	case 4: // stopped for good: only SIGKILL ends it
		p.signal(name, syscall.SIGSTOP)
		return "stdio stopped"
	case 5:
		p.call(r, name, "crash", `{}`, "", time.Second)
		return "stdio crashed"
	case 6:
		p.restartWeb(r)
		return "http killed"
	case 7:
		_ = p.web.cmd.Process.Signal(syscall.SIGSTOP)
		pause(r, 1500*time.Millisecond)
		_ = p.web.cmd.Process.Signal(syscall.SIGCONT)
		return "http stopped"
	case 8:
		p.flaky.Disconnect()
		return "http disconnected"
	case 9:
		p.flaky.ForgetSessions()
		return "http sessions forgotten"
	default:
		p.flaky.SetMode(flakyModes[r.IntN(len(flakyModes))])
		pause(r, 300*time.Millisecond)
		p.flaky.SetMode("")
		return "http odd"
	}
}

// restartWeb kills the HTTP server's process and starts another one in its place.
func (p *pen) restartWeb(r *rand.Rand) {
	address := p.webAddress()
	p.web.kill()
	pause(r, 200*time.Millisecond)
	p.web = start(p.t, "web", address)
	p.web.await(1)
}

// call makes one call and holds it against its limit; 0 is the server's own timeout. want must be in the result.
func (p *pen) call(r *rand.Rand, server, tool, arguments, want string, limit time.Duration) error {
	ctx, bound := p.t.Context(), longest
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		if r.IntN(2) == 0 { // an interruption instead of a deadline
			timer := time.AfterFunc(limit, cancel)
			defer timer.Stop()
		}
		bound = limit + grace
	}
	began := time.Now()
	result, err := p.m.Call(ctx, server, tool, jsontext.Value(arguments))
	took := time.Since(began)
	p.calls.Add(1)
	raise(&p.slowest, took)
	if limit > 0 {
		raise(&p.latest, took-limit)
	}
	if took > bound {
		p.t.Errorf("%s %s took %s, and its limit was %s: %v", server, tool, took, bound, err)
	}
	if err != nil {
		p.failures.Add(1)
		var e *mcp.Error
		if !errors.As(err, &e) || e.Server != server || e.Phase == "" || e.Text == "" {
			p.t.Errorf("%s %s: an error of another kind: %v", server, tool, err)
		}
		p.count(err)
		return err
	}
	p.results.Add(1)
	if text := result.Plain(); !result.IsError && !strings.Contains(text, want) {
		p.t.Errorf("%s %s %.80s: the result of another call: %.80q", server, tool, arguments, text)
	}
	return nil
}

// raise keeps the longest time.
func raise(most *atomic.Int64, d time.Duration) {
	for old := most.Load(); int64(d) > old && !most.CompareAndSwap(old, int64(d)); old = most.Load() {
	}
}

// count keeps the reasons of failures, for the log.
func (p *pen) count(err error) {
	reason := "its own end"
	for name, target := range map[string]error{"timeout": mcp.ErrTimeout, "aborted": mcp.ErrAborted, "sibling": mcp.ErrSibling} {
		if errors.Is(err, target) {
			reason = name
		}
	}
	n, _ := p.reasons.LoadOrStore(reason, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// work makes calls of all kinds until stop is closed.
func (p *pen) work(r *rand.Rand, id int, stop <-chan struct{}) {
	servers := append([]string{"web", "flaky"}, stdioNames...)
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		server, limit := servers[r.IntN(len(servers))], time.Duration(0)
		if !slices.Contains(unhurried, server) && r.IntN(4) == 0 {
			limit = time.Duration(1 + r.IntN(int(1500*time.Millisecond)))
		}
		text := fmt.Sprintf("call-%d-%d-%s", id, i, strings.Repeat("x", 1<<r.IntN(16)))
		tool, arguments := "echo", fmt.Sprintf(`{"text":%q}`, text)
		switch {
		case server != "flaky" && r.IntN(4) == 0:
			tool, arguments = "slow", fmt.Sprintf(`{"text":%q,"ms":%d}`, text, r.IntN(150))
			text = ""
		case server == "flaky" && r.IntN(20) == 0:
			tool, text, limit = "wait", "", time.Duration(1+r.IntN(int(300*time.Millisecond)))
		case server != "flaky" && server != "web" && r.IntN(12) == 0:
			tool, arguments, text = "big", fmt.Sprintf(`{"bytes":%d}`, r.IntN(400<<10)), ""
		}
		if err := p.call(r, server, tool, arguments, text, limit); err != nil {
			pause(r, 20*time.Millisecond) // a server that is down would be asked thousands of times a second
		}
	}
}

// TestServersUnderFire harms servers of both transports at random under 64 overlapping calls. Every call ends with a result or an
// error within its limit, no call gets another's result, the servers answer again once they are left alone, and afterwards the
// process holds no more than before. R-P4, R-P6, R-T4, R-T5, R-H3.
func TestServersUnderFire(t *testing.T) {
	warm := newPen(t) // what is made once, such as the poller, is no leak
	warm.web.await(1)
	for _, s := range warm.m.Status() {
		_ = warm.call(dice(t), s.Name, "echo", `{"text":"warm"}`, "warm", 0)
	}
	warm.close()
	warm = nil
	before := measure(t)

	r := dice(t)
	p := newPen(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range overlap {
		mine := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		wg.Go(func() { p.work(mine, i, stop) })
	}
	faults := map[string]int{}
	var order []int
	for round := range rounds() {
		if round%harms == 0 { // every kind comes in its turn
			order = r.Perm(harms)
		}
		pause(r, 250*time.Millisecond)
		faults[p.harm(r, order[round%harms])]++
		if t.Failed() {
			break
		}
	}
	for _, n := range stdioNames { // and at last nothing but the timeouts ends what is under way
		p.signal(n, syscall.SIGSTOP)
	}
	_ = p.web.cmd.Process.Signal(syscall.SIGSTOP)
	pause(r, 250*time.Millisecond)
	close(stop)
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(longest + grace):
		buf := make([]byte, 1<<20)
		t.Fatalf("calls hang:\n%s", buf[:runtime.Stack(buf, true)])
	}
	_ = p.web.cmd.Process.Signal(syscall.SIGCONT)
	p.heal()
	p.close()
	var reasons []string
	p.reasons.Range(func(k, v any) bool {
		reasons = append(reasons, fmt.Sprintf("%d %s", v.(*atomic.Int64).Load(), k))
		return true
	})
	slices.Sort(reasons)
	told, _ := json.Marshal(faults)
	t.Logf("%d faults %s; %d calls: %d results, %d errors (%s); the slowest took %s, the latest ended %s after its deadline", rounds(), told, p.calls.Load(), p.results.Load(),
		p.failures.Load(), strings.Join(reasons, ", "), time.Duration(p.slowest.Load()).Round(time.Millisecond),
		time.Duration(p.latest.Load()).Round(time.Millisecond))
	p = nil
	t.Logf("before: %v; after: %v", before, checkSize(t, before))
}

// heal checks that every server answers once it is left alone.
func (p *pen) heal() {
	p.t.Helper()
	r := dice(p.t)
	for _, s := range p.m.Status() {
		var err error
		if !eventually(func() bool {
			err = p.call(r, s.Name, "echo", `{"text":"healed"}`, "healed", 0)
			return err == nil
		}) {
			p.t.Errorf("%s does not answer again: %v", s.Name, err)
		}
	}
}
