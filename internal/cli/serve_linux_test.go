package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEditorGone: when stdin closes everything ends within two seconds, with a command and a hook that ignore SIGTERM too, and no
// process is left (R-G11, S12).
func TestEditorGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pids := []string{filepath.Join(p.project, "command.pid"), filepath.Join(p.project, "hook.pid")}
	deaf := func(file string) string {
		return fmt.Sprintf("trap '' TERM HUP INT; echo $$ > %[1]s.tmp; mv %[1]s.tmp %[1]s; while :; do sleep 1; done", file)
	}
	writeFile(t, filepath.Join(p.home, "settings.json"), fmt.Sprintf(`{"hooks":[{"event":"after_tool","tools":["bash"],"command":["sh","-c",%s]}]}`, quoted(deaf(pids[1]))))
	e := startEditor(t, p, "{}", "--allow", "bash")
	e.say(e.prompt("p", `call bash {"command":`+quoted("("+deaf(pids[0])+") & wait")+`}`))
	within(t, patience, "the command runs", func() bool { _, err := os.Stat(pids[0]); return err == nil })
	began := time.Now()
	if err := e.in.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, e.lines)
	if err := e.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2*time.Second*slack {
		t.Errorf("it took %s", took)
	}
	for _, file := range pids {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, 0) == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("%s still runs", filepath.Base(file))
		}
	}
}

// TestEditorReadsNothing: an editor that reads nothing and only sends bad lines can still end everything by closing stdin (R-G11).
func TestEditorReadsNothing(t *testing.T) {
	t.Parallel()
	e := startEditor(t, newPlace(t), "{}")
	for range 4 {
		e.say(strings.Repeat("no message\n", 5000)) // their answers fill every pipe
	}
	e.say(e.prompt("p", "wait"))
	if err := e.in.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := e.cmd.Process.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Second * slack):
		t.Error("it does not end")
		_ = e.cmd.Process.Kill()
	}
}
