package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
)

// TestMain makes magi-code a command of the scripts: the test binary itself.
func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"magi-code": func() { os.Exit(Main()) },
		"measured":  measured,
	})
}

// TestScripts runs every session in testdata/script. Each has a home ($MC_HOME), a project (where it starts), and a zoo of
// servers: $ZOO is the program, a mode of misbehaviour its first argument.
func TestScripts(t *testing.T) {
	zoo := buildZoo(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup:               func(e *testscript.Env) error { return setup(e, zoo) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"approve": cmdApprove,
			"ended":   cmdEnded,
			"replace": cmdReplace,
			"mode":    cmdMode,
			"exits":   cmdExits,
			"events":  cmdEvents,
			"clean":   cmdClean,
			"fill":    cmdFill,
		},
		Condition: func(cond string) (bool, error) {
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

func setup(e *testscript.Env, zoo string) error {
	work := e.WorkDir
	for _, d := range []string{"home", "user", "project", "bin"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o700); err != nil {
			return err
		}
	}
	// A link of its own, so that the processes of this script can be told from others.
	link := filepath.Join(work, "bin", filepath.Base(zoo))
	if err := os.Link(zoo, link); err != nil {
		return err
	}
	e.Vars = append(e.Vars, "MC_HOME="+filepath.Join(work, "home"), "HOME="+filepath.Join(work, "user"), "ZOO="+link, "GORACE=atexit_sleep_ms=0")
	e.Cd = filepath.Join(work, "project")
	return nil
}

// cmdApprove approves servers of the current folder as mcp get and mcp approve would.
func cmdApprove(ts *testscript.TestScript, neg bool, args []string) {
	home := ts.Getenv("MC_HOME")
	config, err := definition.Load(home, ts.MkAbs("."))
	ts.Check(err)
	store := approval.NewStore(home)
	lookup := func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" }
	for _, name := range args {
		for _, d := range config.Servers {
			if d.Name == name {
				v, err := store.Review(context.Background(), d)
				ts.Check(err)
				err = store.Approve(context.Background(), v, lookup)
				if neg == (err == nil) {
					ts.Fatalf("approve %s: %v", name, err)
				}
			}
		}
	}
}

// cmdEnded fails when a process of this script's zoo is left (Linux; elsewhere it checks nothing, since there is no /proc).
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	if runtime.GOOS != "linux" {
		return
	}
	mark := ts.Getenv("ZOO")
	deadline := time.Now().Add(3 * time.Second)
	for {
		left := processes(mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("left over: %v", left)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func processes(mark string) (found []string) {
	for _, p := range commandLines(mark) {
		found = append(found, strings.ReplaceAll(p.line, "\x00", " "))
	}
	return found
}

// pidsOf are the numbers of the processes whose command lines begin with mark.
func pidsOf(mark string) (found []int) {
	for _, p := range commandLines(mark) {
		found = append(found, p.pid)
	}
	return found
}

type process struct {
	pid  int
	line string
}

func commandLines(mark string) (found []process) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(b), mark) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			found = append(found, process{pid, string(b)})
		}
	}
	return found
}

// cmdReplace replaces text in a file: replace FILE OLD NEW.
func cmdReplace(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o600))
}

// cmdMode checks the permission bits of a file: mode FILE 600.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); runtime.GOOS != "windows" && got != args[1] {
		ts.Fatalf("%s has mode %s, not %s", args[0], got, args[1])
	}
}
