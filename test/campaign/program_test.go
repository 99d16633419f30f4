//go:build campaign && linux

package campaign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/session"
	"magi-code/internal/settings"
)

// install is a home, a project and a folder for temporary files, in which the real program runs.
type install struct {
	*world
	temp string
}

func newInstall(t *testing.T, servers map[string]any) *install {
	return &install{world: newWorld(t, servers), temp: t.TempDir()}
}

// command prepares the program.
func (in *install) command(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	cmd := exec.Command(testOnlyProgram, args...)
	cmd.Dir = in.project
	cmd.Env = append(os.Environ(), "MC_HOME="+in.home, "TMPDIR="+in.temp)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	return cmd, &out, &err
}

// struck runs the program and kills it after a delay, unless it has ended by then.
func (in *install) struck(t *testing.T, delay time.Duration, args ...string) (stdout string, killed bool) {
	t.Helper()
	cmd, out, errs := in.command(args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	kill.Stop()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed = status.Signaled() && status.Signal() == syscall.SIGKILL
	if err != nil && !killed {
		t.Errorf("magi-code %s: %v: %s", strings.Join(args, " "), err, errs)
	}
	return out.String(), killed
}

// entry is what is known of one server name: the version of its definition (0: none) and what was decided about it.
type entry struct {
	version int
	state   approval.State
	record  bool // settings hold a decision
}

// look reads what the files say about a name.
func (in *install) look(t *testing.T, name string) (e entry) {
	t.Helper()
	config, err := definition.Load(in.home, in.project)
	if err != nil {
		t.Fatalf("the definitions are broken: %v", err)
	}
	source, err := filepath.EvalSymlinks(filepath.Join(in.project, definition.FileName))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := settings.Raw(filepath.Join(in.home, "settings.json"), "capabilities", "mcp_approvals", source, name)
	if err != nil {
		t.Fatalf("the settings are broken: %v", err)
	}
	e.record = raw != nil
	for _, d := range config.Servers {
		if d.Name != name {
			continue
		}
		entries, err := approval.NewStore(in.home).Check([]definition.Server{d})
		if err != nil {
			t.Fatal(err)
		}
		e.state = entries[0].State
		e.version, _ = strconv.Atoi(strings.TrimPrefix(d.Args[len(d.Args)-1], "v="))
	}
	return e
}

// plan chooses a command that changes a name, and tells what is to be after it and after half of it.
func (in *install) plan(t *testing.T, r *rand.Rand, round int, name string, now entry) (args []string, after, half entry) {
	t.Helper()
	version := round + 1
	define := []string{"mcp", "add", name, "--", testOnlyZoo, "good", "v=" + strconv.Itoa(version)}
	if now.version == 0 {
		return define, entry{version, approval.NeverApproved, false}, now
	}
	switch r.IntN(4) {
	case 0:
		state := now.state
		if state == approval.IsApproved {
			state = approval.Changed
		}
		return slices.Insert(define, 3, "--replace"), entry{version, state, now.record}, now
	case 1:
		d, err := find(in.home, in.project, name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := approval.NewStore(in.home).Review(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return []string{"mcp", "approve", name, "--fingerprint", v.Fingerprint}, entry{now.version, approval.IsApproved, true}, now
	case 2:
		return []string{"mcp", "revoke", name}, entry{now.version, approval.Revoked, true}, now
	}
	return []string{"mcp", "remove", name}, entry{}, entry{now.version, approval.NeverApproved, false}
}

// TestKilledCommands kills mcp add, approve, revoke and remove: each did all of its work or nothing (remove may have ended the
// approval and left the definition), what was printed as done is done, and nothing but what the next command sweeps is left. R-A8.
func TestKilledCommands(t *testing.T) {
	t.Parallel()
	r := dice(t)
	in := newInstall(t, map[string]any{})
	began := time.Now()
	if _, killed := in.struck(t, patience, "mcp", "add", "first", "--", testOnlyZoo, "good", "v=1"); killed {
		t.Fatal("the first command hangs")
	}
	usual := time.Since(began)
	deaths, halves, temps := 0, 0, 0
	for round := range rounds() {
		name := []string{"first", "second", "third"}[r.IntN(3)]
		before := in.look(t, name)
		args, after, half := in.plan(t, r, round, name, before)
		began := time.Now()
		out, killed := in.struck(t, time.Duration(r.Int64N(int64(usual*6/5))), args...)
		if !killed {
			usual = (4*usual + time.Since(began)) / 5
		} else {
			deaths++
			usual += usual / 20 // the machine may have become slower
		}
		got := in.look(t, name)
		done := !killed || out != ""
		if got != after && (done || got != before && got != half) {
			t.Errorf("%v (killed: %v, printed %q): %+v became %+v, not %+v", args, killed, out, before, got, after)
		}
		if got == half && got != before {
			halves++
		}
		temps += checkLeftovers(t, in.home, "settings.json", "mcp-approval.key")
		temps += checkLeftovers(t, in.project, ".mcp.json")
		checkClean(t, in.temp)
		for _, file := range []string{filepath.Join(in.home, "settings.json"), filepath.Join(in.project, ".mcp.json")} {
			if err := settings.Patch(t.Context(), file, []string{"never"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		checkClean(t, in.home, "settings.json", "mcp-approval.key")
		checkClean(t, in.project, ".mcp.json")
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d commands, %d killed before their end, %d removals stopped half-way, %d temporary files left and swept", rounds(), deaths, halves, temps)
}

// script is a prompt for the offline planner: answers with several calls each, which the session records.
func script(r *rand.Rand, round int) string {
	var b strings.Builder
	for answer := range 4 {
		fmt.Fprintf(&b, "say answer %d of round %d\n", answer, round)
		fmt.Fprintf(&b, "parallel 4 echo {\"text\":%q}\n\n", strings.Repeat("word ", 1+r.IntN(4000)))
	}
	return b.String()
}

// TestKilledRuns kills whole runs with an MCP server: what was printed is in the session, the session goes on, nothing else is
// half-written, and the server has ended too. R-G8, R-T4.
func TestKilledRuns(t *testing.T) {
	t.Parallel()
	r := dice(t)
	pids := filepath.Join(t.TempDir(), "pids")
	in := newInstall(t, map[string]any{"zoo": map[string]any{"command": testOnlyZoo, "args": []string{"good", "touch=" + pids}}})
	in.approve(t, "zoo")
	store := session.NewStore(filepath.Join(in.home, "sessions"))
	usual := 250 * time.Millisecond
	deaths, promises := 0, 0
	for round := range rounds() {
		args := []string{"run", "--json", "--provider", "offline", "--allow", "mcp__*"}
		infos, err := store.List("")
		if err != nil {
			t.Fatal(err)
		}
		if len(infos) > 0 && r.IntN(6) > 0 {
			args = append(args, "--continue")
		}
		began := time.Now()
		out, killed := in.struck(t, time.Duration(r.Int64N(int64(usual*6/5))), append(args, script(r, round))...)
		if !killed {
			usual = (4*usual + time.Since(began)) / 5
		} else {
			deaths++
			usual += usual / 20 // the machine may have become slower
		}
		promises += in.checkRun(t, store, out)
		gone := func() bool { return len(alive(t, pids)) == 0 }
		if !eventually(gone) {
			t.Errorf("the servers %v outlive the program", alive(t, pids))
		}
		checkClean(t, in.temp)
		checkLeftovers(t, in.home, "settings.json", "mcp-approval.key", "sessions", "known-tools.json")
		if data, err := os.ReadFile(filepath.Join(in.home, "known-tools.json")); err == nil && !json.Valid(data) {
			t.Errorf("known-tools.json is broken: %.100q", data)
		}
		if t.Failed() {
			t.Fatalf("round %d, killed: %v", round, killed)
		}
	}
	infos, _ := store.List("")
	t.Logf("%d runs, %d killed before their end, %d sessions, %d results that were told of", rounds(), deaths, len(infos), promises)
}

// approve approves a server with the real program.
func (in *install) approve(t *testing.T, name string) {
	t.Helper()
	d, err := find(in.home, in.project, name)
	if err != nil {
		t.Fatal(err)
	}
	store := approval.NewStore(in.home)
	v, err := store.Review(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Approve(t.Context(), v, os.LookupEnv); err != nil {
		t.Fatal(err)
	}
}

// checkRun holds the newest session against the events that a run printed, and returns how many results those told of.
func (in *install) checkRun(t *testing.T, store *session.Store, out string) (told int) {
	t.Helper()
	results := map[string]bool{}
	ended := false
	for line := range strings.Lines(out) {
		var e struct {
			Type string
			Call struct{ ID string }
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue // cut by the kill
		}
		switch e.Type {
		case "result":
			results[e.Call.ID] = true
		case "turn_end":
			ended = true
		}
	}
	infos, err := store.List("")
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) == 0 {
		if len(results) > 0 {
			t.Errorf("%d results were told of, and there is no session", len(results))
		}
		return 0
	}
	s, err := store.Open(t.Context(), infos[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	entries, kept := s.Entries(), map[string]bool{}
	for _, e := range entries {
		if e.Kind == session.Note && strings.Contains(e.Text, "could not be read") {
			t.Errorf("session %s: %s", s.ID(), e.Text)
		}
		if e.Kind == session.Result {
			kept[e.CallID] = true
		}
	}
	for id := range results {
		if !kept[id] {
			t.Errorf("the result of %s was told of and is not in session %s", id, s.ID())
		}
	}
	if last := entries[len(entries)-1]; ended && last.Kind == session.Result {
		t.Errorf("the turn was told to have ended, and session %s ends with a %s", s.ID(), last.Kind)
	}
	return len(results)
}

// alive are the processes of a list of ids, one a line, that run still as servers of the zoo.
func alive(t *testing.T, list string) (out []int) {
	t.Helper()
	for _, pid := range readPIDs(t, list) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(line), testOnlyZoo+"\x00") {
			out = append(out, pid)
		}
	}
	return out
}

// readPIDs reads the file that servers of the zoo add their ids to.
func readPIDs(t *testing.T, list string) (out []int) {
	t.Helper()
	data, err := os.ReadFile(list)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
