//go:build unix

// Package mission drives the real binary's Mission Control in a pseudo-terminal.
package mission

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"magi-code/test/tty"
)

// testOnlyBinary is magi-code, testOnlyZoo the hostile servers, built once for all tests here.
var testOnlyBinary, testOnlyZoo string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "magi-code-mission-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	testOnlyBinary, testOnlyZoo = filepath.Join(dir, "magi-code"), filepath.Join(dir, "zoo")
	for pkg, file := range map[string]string{"magi-code": testOnlyBinary, "magi-code/test/zoo": testOnlyZoo} {
		if out, err := exec.Command("go", "build", "-o", file, pkg).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s\n", err, out)
			return 1
		}
	}
	return m.Run()
}

// place is a home and a project.
type place struct {
	t         testing.TB
	home, dir string
}

// newPlace makes a project with servers by name; each is a command line.
func newPlace(t testing.TB, servers map[string][]string) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, home: filepath.Join(root, "home"), dir: filepath.Join(root, "project")}
	for _, d := range []string{p.home, p.dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.define(servers)
	return p
}

func (p *place) define(servers map[string][]string) {
	p.t.Helper()
	m := map[string]any{}
	for name, argv := range servers {
		m[name] = map[string]any{"command": argv[0], "args": argv[1:]}
	}
	b, err := json.MarshalIndent(map[string]any{"mcpServers": m}, "", "  ")
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, ".mcp.json"), b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// command is magi-code in this place.
func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(testOnlyBinary, args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"MC_HOME=" + p.home, "HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	return cmd
}

func (p *place) run(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// approve approves servers as a user of the command line would.
func (p *place) approve(names ...string) {
	p.t.Helper()
	for _, n := range names {
		hex := regexp.MustCompile(`[0-9a-f]{64}`).FindString(p.run("mcp", "get", n))
		p.run("mcp", "approve", n, "--fingerprint", hex)
	}
}

// open opens Mission Control with the offline planner.
func (p *place) open(cols, rows int, args ...string) *tty.Terminal {
	p.t.Helper()
	return tty.Start(p.t, p.command(append([]string{"--provider", "offline"}, args...)...), cols, rows)
}

func quit(t *testing.T, x *tty.Terminal) {
	t.Helper()
	x.Type("/quit")
	x.WaitFor("/quit")
	x.Press("enter")
	if code := x.Exit(); code != 0 {
		t.Errorf("exit code %d\n%s", code, x.Screen())
	}
	x.CheckRestored()
	x.CheckBytes()
}

func demo() []string { return []string{testOnlyBinary, "demo-server"} }

// R-G9, from nothing to an answer: see the server, approve it, start again, ask, permit, read.
func TestApproveStartAskAnswer(t *testing.T) {
	p := newPlace(t, map[string][]string{"notes": demo()})
	x := p.open(100, 30)
	x.WaitFor("● ready", "1 not approved: /mcp")
	x.Type("/mcp")
	x.WaitFor("▸ /mcp")
	x.Press("enter")
	x.WaitFor("notes", "never approved", "demo-server", "not running in this session", "enter approve")
	x.Wait("the fingerprint", func(s string) bool { return regexp.MustCompile(`[0-9a-f]{64}`).MatchString(s) })
	x.Press("enter")
	x.WaitFor("approved: it starts at the next launch")
	x.Press("esc")
	x.WaitGone("MCP servers")
	x.WaitFor("● ready")
	quit(t, x)

	x = p.open(100, 30, "--prompt", `Search the notes for "tea".`)
	x.WaitFor("notes › search_notes", "May this tool run?", "[y] once")
	x.Press("y")
	x.WaitFor("Black tea wants four minutes", "● ready")
	quit(t, x)
	x.WaitFor("magi-code --resume")

	x = p.open(100, 40, "--continue")
	x.WaitFor("❯ Search the notes", "Black tea wants four minutes", "resumed")
	quit(t, x)
}

// R-A6, S5: a definition that changes under the open view is not approved.
func TestDefinitionChangesUnderTheView(t *testing.T) {
	p := newPlace(t, map[string][]string{"notes": demo()})
	x := p.open(100, 30)
	x.WaitFor("● ready")
	x.Type("/mcp")
	x.WaitFor("▸ /mcp")
	x.Press("enter")
	x.WaitFor("demo-server")
	x.Wait("the fingerprint", func(s string) bool { return regexp.MustCompile(`[0-9a-f]{64}`).MatchString(s) })
	p.define(map[string][]string{"notes": {testOnlyBinary, "evil-server"}})
	x.Press("enter")
	x.WaitFor("not approved", "changed after it was shown", "evil-server")
	if out := p.run("mcp", "list"); !strings.Contains(out, "never approved") {
		t.Errorf("saved all the same:\n%s", out)
	}
	p.define(map[string][]string{"notes": demo()})
	x.Press("r")
	x.WaitFor("demo-server")
	x.Wait("the fingerprint", func(s string) bool { return regexp.MustCompile(`[0-9a-f]{64}`).MatchString(s) })
	x.Press("enter")
	x.WaitFor("approved: it starts at the next launch", "enter revoke")
	x.Press("enter")
	x.WaitFor("revoked: it does not start at the next launch")
	x.Press("esc")
	x.WaitGone("MCP servers")
	x.WaitFor("● ready")
	quit(t, x)
	if out := p.run("mcp", "list"); !strings.Contains(out, "revoked") {
		t.Errorf("not saved:\n%s", out)
	}
}

// R-G9: a server that fails ends the program: terminal restored, non-zero, server, phase, reason, both cures, prompts.
func TestFailedStart(t *testing.T) {
	p := newPlace(t, map[string][]string{"broken": {"/bin/sh", "-c", "echo no database >&2; exit 3"}, "notes": demo()})
	p.approve("broken", "notes")
	x := p.open(100, 30, "--prompt", "the queued prompt")
	if code := x.Exit(); code == 0 {
		t.Error("exit code 0")
	}
	x.WaitFor("the queued prompt", `server "broken"`, "3", "magi-code mcp revoke broken")
	x.CheckRestored()
}

// Issue 4, S12: whatever ends it and whatever it does then, the terminal is as it was and no server is left.
func TestNothingIsLeft(t *testing.T) {
	for _, how := range []string{"sigterm", "sighup", "hangup", "quit"} {
		t.Run(how, func(t *testing.T) {
			mark := fmt.Sprintf("mission-mark-%d-%s", os.Getpid(), how)
			// A server that ignores SIGTERM and the end of its input, with a grandchild that does too.
			script := `trap '' TERM; (trap '' TERM; sleep 300; : ` + mark + `) & exec "$0" "$@"; : ` + mark
			p := newPlace(t, map[string][]string{"stubborn": append([]string{"/bin/sh", "-c", script}, demo()...)})
			p.approve("stubborn")
			x := p.open(80, 24)
			x.WaitFor("● ready")
			start := time.Now()
			switch how {
			case "sigterm":
				x.Signal(syscall.SIGTERM)
			case "sighup":
				x.Signal(syscall.SIGHUP)
			case "hangup":
				x.HangUp()
			default:
				x.Type("/quit")
				x.WaitFor("▸ /quit")
				x.Press("enter")
			}
			x.Exit()
			if d := time.Since(start); d > 9*time.Second {
				t.Errorf("took %v", d)
			}
			if how != "hangup" {
				x.CheckRestored()
			}
			if left := running(mark); left != "" {
				t.Errorf("left behind:\n%s", left)
			}
		})
	}
}

func zoo(args ...string) []string { return append([]string{testOnlyZoo}, args...) }

// R-L1: tools that come while it runs are announced in one line before the turn that first has them, and can be called.
func TestLiveDiscovery(t *testing.T) {
	p := newPlace(t, map[string][]string{"z": zoo("good")})
	p.approve("z")
	x := p.open(100, 40)
	x.WaitFor("● ready")
	x.Type(`call mcp__z__grow {"name":"fresh"}`)
	x.Press("enter")
	x.WaitFor("z › grow", "[s] for this session")
	x.Press("s")
	x.WaitFor("grown", "● ready")
	x.Type("say after the growth")
	x.Press("enter")
	x.Wait("the notice before the answer", func(s string) bool {
		notice := strings.Index(s, "fresh)")
		if notice < 0 {
			notice = strings.LastIndex(s, "added")
		}
		answer := strings.LastIndex(s, "after the growth")
		return notice > 0 && answer > notice
	})
	x.WaitFor("● ready")
	x.Type("/mcp")
	x.WaitFor("▸ /mcp")
	x.Press("enter")
	x.WaitFor("MCP servers", "9 tools") // the conversation shows the like
	x.Press("pgdown")
	x.WaitFor("MCP servers", "fresh")
	x.Press("esc")
	x.WaitGone("MCP servers")
	x.WaitFor("● ready")
	quit(t, x)
}

// R-L2: a listing that fails keeps the old tools, which /mcp calls stale with the reason, until a later refresh works;
// what is new, gone and changed by then is told in one line before the turn that first has it.
func TestStaleListing(t *testing.T) {
	p := newPlace(t, map[string][]string{"z": zoo("live")})
	p.approve("z")
	x := p.open(120, 50, "--allow", "mcp__z__*")
	x.WaitFor("● ready")
	status := "● ready"
	say := func(prompt, answer string) {
		x.Type(prompt)
		x.WaitFor(prompt)
		x.Press("enter")
		x.WaitFor(answer, status)
	}
	say(`call mcp__z__grow {"name":"fresh"}`, "grown")
	say(`call mcp__z__shrink {"name":"structured"}`, "shrunk")
	say(`call mcp__z__alter {"name":"meet","text":"Another text."}`, "altered")
	say(`call mcp__z__fail {"times":2,"kind":"error"}`, "listings fail") // and announces that the list changed
	status = "! 1 tool list out of date · /mcp"
	say("say one", "\n  one")
	x.Type("/mcp")
	x.WaitFor("▸ /mcp")
	x.Press("enter")
	x.WaitFor("listing is stale", "list: error -32603: no list today")
	x.Press("esc")
	x.WaitFor(status)
	say("say two", "\n  two") // the one retry fails too
	say(`call mcp__z__grow {"name":"later"}`, "grown")
	status = "● ready"
	say("say three", "\n  three")
	x.Wait("the notice before the answer", func(s string) bool {
		notice := strings.LastIndex(s, `the tools of server "z" changed: added mcp__z__later`)
		return notice > strings.LastIndex(s, "grown") && notice < strings.LastIndex(s, "\n  three")
	})
	x.Type("/mcp")
	x.WaitFor("▸ /mcp")
	x.Press("enter")
	x.WaitFor("MCP servers", "16 tools")
	if strings.Contains(x.Screen(), "stale") {
		t.Errorf("still stale:\n%s", x.Screen())
	}
	x.Press("esc")
	x.WaitGone("MCP servers")
	x.WaitFor("● ready")
	quit(t, x)
}

// Issue 4: Esc stops a stream and a tool call within a second.
func TestInterrupts(t *testing.T) {
	p := newPlace(t, map[string][]string{"z": zoo("good")})
	p.approve("z")
	for name, prompt := range map[string]string{"stream": "slow 4000 word", "call": `call mcp__z__slow {"ms":60000}`, "provider": "wait"} {
		t.Run(name, func(t *testing.T) {
			x := p.open(100, 40)
			x.WaitFor("● ready")
			x.Type(prompt)
			x.Press("enter")
			if name == "call" {
				x.WaitFor("[y] once")
				x.Press("y")
				x.WaitFor("running")
			}
			x.WaitFor("esc interrupts")
			start := time.Now()
			x.Press("esc")
			x.WaitFor("interrupted after", "Ask, or / for commands")
			if d := time.Since(start); d > time.Second {
				t.Errorf("took %v", d)
			}
			if name != "provider" { // the planner takes an unanswered script and the next prompt for one
				x.Type("say still here")
				x.Press("enter")
				x.WaitFor("\n  still here")
			}
			quit(t, x)
		})
	}
}

// S27: names, descriptions and results of a hostile server leave no control byte in what the terminal gets.
func TestHostileServer(t *testing.T) {
	p := newPlace(t, map[string][]string{"z": zoo("tools-odd", "kind=names")})
	p.approve("z")
	x := p.open(120, 40)
	x.WaitFor("● ready")
	x.Type("/mcp")
	x.WaitFor("▸ /mcp")
	x.Press("enter")
	x.WaitFor("says it is", "Left out")
	x.Press("end")
	x.WaitFor("$dollar", `esc\u{1b}[31m`)
	x.Press("esc")
	x.WaitGone("MCP servers")
	x.WaitFor("● ready")
	quit(t, x)
	x.CheckBytes("\x1b[31m", "\u202e", "\u200b")
}

// running lists processes whose command line holds a mark.
func running(mark string) string {
	out, err := exec.Command("ps", "-eo", "pid,ppid,args").Output()
	if err != nil {
		return err.Error()
	}
	var left []string
	for l := range strings.SplitSeq(string(out), "\n") {
		if strings.Contains(l, mark) {
			left = append(left, l)
		}
	}
	return strings.Join(left, "\n")
}

// firstFrame is the time until the first frame is on the terminal, ten servers configured.
func firstFrame(t testing.TB, p *place) time.Duration {
	x := p.open(80, 24)
	x.WaitFor("magi-code", "❯")
	d := x.SeenAfter()
	x.Signal(syscall.SIGTERM)
	x.Exit()
	return d
}

func tenServers(t testing.TB) *place {
	servers := map[string][]string{}
	var names []string
	for i := range 10 {
		name := fmt.Sprintf("server%d", i)
		servers[name] = demo()
		names = append(names, name)
	}
	p := newPlace(t, servers)
	p.approve(names...)
	return p
}

// R-G9: the first frame does not wait for servers, and the prompt can be edited from then on: here one that never
// answers. How long it takes is told by the benchmark.
func TestFirstFrame(t *testing.T) {
	p := newPlace(t, map[string][]string{"stuck": {"sleep", "600"}})
	p.approve("stuck")
	x := p.open(80, 24)
	x.WaitFor("magi-code", "stuck", "❯")
	x.Type("typed while it starts")
	x.WaitFor("typed while it starts")
	x.Signal(syscall.SIGTERM)
	x.Exit()
}

func BenchmarkFirstFrame(b *testing.B) {
	p := tenServers(b)
	var sum time.Duration
	for range b.N {
		sum += firstFrame(b, p)
	}
	b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), "ms/frame")
}
