package stdio

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// maxShebang is how much of a script's first line is read to name its interpreter, in bytes: Linux reads 256.
const maxShebang = 256

// windowsBaseline are the variables without which programs do not start on Windows: the loader, cmd.exe and the
// runtimes' temporary files need them. None of them tells who the user is.
func windowsBaseline() []string {
	return []string{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP",
		"PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS"}
}

// environment is the child's whole environment: PATH and the baseline of the system, then the overlay.
func environment(goos string, o Options) []string {
	env := []string{} // never nil: that would mean ours
	inherit := []string{"PATH"}
	if goos == "windows" {
		inherit = append(inherit, windowsBaseline()...)
	}
	for _, name := range inherit {
		if o.Lookup == nil {
			break
		}
		if v, ok := o.Lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, v := range o.Env {
		env = append(env, v.Name+"="+v.Value.Reveal())
	}
	return env
}

// variable returns the last value of name in env, as the child will see it.
func variable(goos string, env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		n, v, _ := strings.Cut(env[i], "=")
		if n == name || goos == "windows" && strings.EqualFold(n, name) {
			return v
		}
	}
	return ""
}

// command prepares the child. No shell is involved, and nothing but absolute paths is executed.
func command(o Options) (*exec.Cmd, error) {
	name := o.Command.Reveal()
	if o.Dir != "" {
		if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
			return nil, &StartError{Program: name, Dir: o.Dir, Reason: NoFolder, Err: err}
		}
	}
	env := environment(runtime.GOOS, o)
	program, err := find(name, variable(runtime.GOOS, env, "PATH"), o.Dir, extensions(variable(runtime.GOOS, env, "PATHEXT")))
	if err != nil {
		return nil, err
	}
	argv := []string{name}
	for _, a := range o.Args {
		argv = append(argv, a.Reveal())
	}
	if isBatch(program) && unsafeForBatch(argv[1:]) {
		return nil, &StartError{Program: program, Reason: UnsafeArgument}
	}
	return &exec.Cmd{Path: program, Args: argv, Env: env, Dir: o.Dir}, nil
}

// find returns the file that a command means: below dir when it holds a separator, else the first executable one in
// the absolute entries of path. A relative entry would run whatever a repository holds under that name.
func find(name, path, dir string, exts []string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", &StartError{Program: name, Reason: NotFound}
	}
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) || filepath.VolumeName(name) != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		file, err := executable(name, exts)
		if err != nil {
			return "", &StartError{Program: name, Reason: reasonOf(err), Err: err}
		}
		return file, nil
	}
	worst := &StartError{Program: name, Path: path, Reason: NotFound}
	for _, folder := range filepath.SplitList(path) {
		relative := !filepath.IsAbs(folder)
		if relative {
			folder = filepath.Join(dir, folder)
		}
		file, err := executable(filepath.Join(folder, name), exts)
		switch {
		case err == nil && !relative:
			return file, nil
		case err == nil:
			worst.Reason, worst.Err = CurrentDirectory, exec.ErrDot
		case worst.Reason == NotFound && reasonOf(err) == NotExecutable:
			worst.Program, worst.Reason, worst.Err = filepath.Join(folder, name), NotExecutable, err
		}
	}
	return "", worst
}

// reasonOf sorts the errors of executable.
func reasonOf(err error) Reason {
	if errors.Is(err, fs.ErrPermission) {
		return NotExecutable
	}
	return NotFound
}

// executable returns the file itself, or the file with the first of the extensions (Windows) that exists. A folder
// or a file that may not be executed is fs.ErrPermission.
func executable(file string, exts []string) (string, error) {
	candidates := []string{file}
	if len(exts) > 0 {
		candidates = nil
		for _, e := range exts {
			if strings.EqualFold(filepath.Ext(file), e) {
				candidates = []string{file}
				break
			}
			candidates = append(candidates, file+e)
		}
	}
	failed := error(fs.ErrNotExist)
	for _, c := range candidates {
		err := mayExecute(c)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			failed = err
		}
	}
	return "", failed
}

// isBatch reports whether Windows would hand the program to cmd.exe.
func isBatch(program string) bool {
	e := strings.ToLower(filepath.Ext(program))
	return runtime.GOOS == "windows" && (e == ".bat" || e == ".cmd")
}

// unsafeForBatch reports whether an argument holds what cmd.exe acts on even inside quotes, or what ends them.
func unsafeForBatch(args []string) bool {
	for _, a := range args {
		if strings.ContainsAny(a, "\"%!^&|<>\r\n") {
			return true
		}
	}
	return false
}

// explain turns the system's refusal to start into a StartError. The file existed a moment ago, so "no such file" is
// about the interpreter that it names.
func explain(cmd *exec.Cmd, err error) error {
	out := &StartError{Program: cmd.Path, Reason: Refused, Err: err}
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		out.Reason = BadFormat
	case errors.Is(err, fs.ErrPermission):
		out.Reason = NotExecutable
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		out.Reason = NotFound
		if mayExecute(cmd.Path) == nil {
			out.Reason, out.Interpreter = NoInterpreter, interpreter(cmd.Path)
		}
	}
	return out
}

// interpreter returns what the #! line of a script names.
func interpreter(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, maxShebang)).ReadString('\n')
	line, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "of its binary format"
	}
	return strings.TrimSpace(line)
}
