//go:build unix

package stdio

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
)

// script writes a file and returns its path.
func script(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestStartErrors: what keeps a child from starting is said plainly, and nothing of it lives on: B8, S10, R-T1.
func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	const shell = "#!/bin/sh\nexit 0\n"
	script(t, dir, "bin/plain", shell, 0o600)
	script(t, dir, "bin/noformat", "echo hello\n", 0o700)
	script(t, dir, "bin/badscript", "#!/no/such/interpreter -x\n", 0o700)
	script(t, dir, "here", shell, 0o700)
	script(t, dir, "bin/folder/x", "", 0o600)
	bin := filepath.Join(dir, "bin")
	for _, tt := range []struct {
		name, command, path, dir string
		reason                   Reason
		text                     string
		is                       error
	}{
		{"missing", "no-such", bin, dir, NotFound, `command "no-such" not found in PATH ` + bin, nil},
		{"missing with a separator", "./no-such", bin, dir, NotFound, `no such file`, os.ErrNotExist},
		{"missing, absolute", "/no/such", bin, dir, NotFound, `command "/no/such": no such file`, os.ErrNotExist},
		{"below a file", "./here/x", bin, dir, NotFound, `no such file`, nil},
		{"empty", "", bin, dir, NotFound, `command ""`, nil},
		{"no PATH", "sh", "", dir, NotFound, `command "sh"`, nil},
		{"not executable", "plain", bin, dir, NotExecutable, `bin/plain" is not an executable file`, os.ErrPermission},
		{"a folder", "folder", bin, dir, NotExecutable, `is not an executable file`, nil},
		{"no format", "noformat", bin, dir, BadFormat, `it has no #! line`, syscall.ENOEXEC},
		{"bad interpreter", "badscript", bin, dir, NoInterpreter, `its interpreter "/no/such/interpreter -x" is missing`, nil},
		{"working directory", "sh", "/bin", dir + "/gone", NoFolder, `gone" is missing`, os.ErrNotExist},
		{"working directory a file", "sh", "/bin", dir + "/here", NoFolder, `here" is missing`, nil},
		{"current directory by dot", "here", ".:" + bin, dir, CurrentDirectory, `relative entry of PATH`, exec.ErrDot},
		{"current directory by nothing", "here", ":" + bin, dir, CurrentDirectory, `relative entry of PATH`, exec.ErrDot},
		{"relative entry", "plain2", "bin2", dir, NotFound, `not found`, nil},
		{"control characters", "\x1b[2Jx", bin, dir, NotFound, `command "x"`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Command: secret.New(tt.command), Dir: tt.dir, Env: []EnvVar{{"PATH", secret.New(tt.path)}}}
			tr, err := Start(t.Context(), o)
			start, ok := errors.AsType[*StartError](err)
			if !ok {
				t.Fatalf("got %v, %v", tr, err)
			}
			if start.Reason != tt.reason || !strings.Contains(start.Error(), tt.text) || !jsonrpc.NotSent(err) {
				t.Errorf("%s: %v", start.Reason, start)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
		})
	}
}

// TestLookup: the command is looked up in the child's own PATH, below its own folder: R-T1, S10.
func TestLookup(t *testing.T) {
	dir := t.TempDir()
	const answer = "#!/bin/sh\nread -r line\necho \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"result\\\":\\\"$0 $1\\\"}\"\n"
	ours := script(t, dir, "ours/tool", answer, 0o700)
	theirs := script(t, dir, "theirs/tool", answer, 0o700)
	local := script(t, dir, "tool", answer, 0o700)
	blocked := script(t, dir, "blocked/tool", answer, 0o600)
	lookup := func(string) (string, bool) { return filepath.Dir(ours), true }
	for _, tt := range []struct{ name, command, path, want string }{
		{"our PATH", "tool", "", ours},
		{"the overlay's PATH", "tool", filepath.Dir(theirs), theirs},
		{"first entry wins", "tool", filepath.Dir(theirs) + ":" + filepath.Dir(ours), theirs},
		{"unusable entries are passed over", "tool", ".:" + filepath.Dir(blocked) + ":/no/such:" + filepath.Dir(ours), ours},
		{"below the folder", "./tool", "", local},
		{"a path below the folder", "theirs/tool", "", theirs},
		{"absolute", local, "", local},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Command: secret.New(tt.command), Args: []secret.String{secret.New("arg")}, Dir: dir, Lookup: lookup}
			if tt.path != "" {
				o.Env = []EnvVar{{"PATH", secret.New("/wrong")}, {"PATH", secret.New(tt.path)}}
			}
			tr := run(t, o)
			got, err := call(t, tr, 1, "x", "")
			if err != nil || got != `"`+tt.want+` arg"` || tr.Program() != tt.want {
				t.Errorf("%s, %v; program %s", got, err, tr.Program())
			}
		})
	}
}

// TestStartCanceled: a context that has ended starts nothing.
func TestStartCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no longer wanted")
	cancel(why)
	mark := filepath.Join(t.TempDir(), "mark")
	o := Options{Command: secret.New("/bin/sh"), Args: []secret.String{secret.New("-c"), secret.New("touch " + mark)}}
	if _, err := Start(ctx, o); !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it was started")
	}
}

// TestEnvironment pins what a child inherits on each system: R-C9, B12.
func TestEnvironment(t *testing.T) {
	lookup := func(name string) (string, bool) {
		if name == "COMSPEC" {
			return "", false
		}
		return "our-" + name, true
	}
	o := Options{Lookup: lookup, Env: []EnvVar{{"HOME", secret.New("/h")}, {"Path", secret.New("p")}}}
	if got := strings.Join(environment("linux", o), " "); got != "PATH=our-PATH HOME=/h Path=p" {
		t.Error(got)
	}
	want := "PATH=our-PATH SYSTEMROOT=our-SYSTEMROOT SYSTEMDRIVE=our-SYSTEMDRIVE WINDIR=our-WINDIR PATHEXT=our-PATHEXT TEMP=our-TEMP TMP=our-TMP " +
		"PROCESSOR_ARCHITECTURE=our-PROCESSOR_ARCHITECTURE NUMBER_OF_PROCESSORS=our-NUMBER_OF_PROCESSORS HOME=/h Path=p"
	env := environment("windows", o)
	if got := strings.Join(env, " "); got != want {
		t.Error(got)
	}
	if got := variable("windows", env, "PATH"); got != "p" {
		t.Error(got)
	}
	if got := variable("linux", env, "PATH"); got != "our-PATH" {
		t.Error(got)
	}
	if environment("linux", Options{}) == nil {
		t.Error("nil means our own environment to os/exec")
	}
}

// TestBatchArguments: what cmd.exe would act on is refused: S10.
func TestBatchArguments(t *testing.T) {
	for arg, unsafe := range map[string]bool{"plain": false, "a b": false, `C:\x y`: false, "--url=http://x/?a=1&b=2": true, "%PATH%": true, `"`: true, "a\nb": true, "a^b": true, "<x": true, "!x!": true, "(x)": false} {
		if got := unsafeForBatch([]string{"ok", arg}); got != unsafe {
			t.Errorf("%q: %v", arg, got)
		}
	}
}

// TestExtensions: where files are executable by their extension, the first of the list that exists counts.
func TestExtensions(t *testing.T) {
	dir := t.TempDir()
	exe := script(t, dir, "tool.exe", "", 0o700)
	cmd := script(t, dir, "npx.cmd", "", 0o700)
	script(t, dir, "npx", "", 0o700) // a shell script beside it, as npm installs it
	exts := []string{".com", ".exe", ".cmd"}
	for name, want := range map[string]string{"tool": exe, "tool.exe": exe, "npx": cmd, "npx.cmd": cmd} {
		if got, err := find(name, dir, "/", exts); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := find("none", dir, "/", exts); err == nil {
		t.Error("found none")
	}
}
