package stdio

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"magi-code/internal/untrusted"
)

// maxShown bounds a path or a PATH inside an error, in bytes.
const maxShown = 512

var (
	errOutputClosed = errors.New("the server closed its output but runs on")
	errStuck        = errors.New("the server does not end")
)

// Reason is why a child could not be started. The set is closed.
type Reason string

const (
	NotFound         Reason = "not found"
	CurrentDirectory Reason = "found only in the current directory"
	NotExecutable    Reason = "not executable"
	BadFormat        Reason = "no program for this system" // ENOEXEC: no #! line, or another architecture
	NoInterpreter    Reason = "its interpreter is missing"
	NoFolder         Reason = "the working directory is missing"
	UnsafeArgument   Reason = "an argument cannot be passed safely to a batch file"
	NoResources      Reason = "no resources"
	Refused          Reason = "refused by the system"
)

// StartError is why a child could not be started. Nothing was sent.
type StartError struct {
	Program     string // the command as it may be told, or the file that was found for it
	Path        string // the PATH that was searched, empty when the command held a separator
	Dir         string // the missing working directory
	Interpreter string // what the #! line names
	Reason      Reason
	Err         error // the system's; may be nil
}

// shown puts what may be told into err.
func (o Options) shown(err error) error {
	start, ok := errors.AsType[*StartError](err)
	if !ok {
		return err
	}
	start.Program = cmp.Or(o.ShownCommand, start.Program)
	if start.Path != "" {
		start.Path = cmp.Or(o.ShownPath, start.Path)
	}
	return err
}

// Error says what was looked for, where, and what is wrong with it.
func (e *StartError) Error() string {
	name := fmt.Sprintf("command %q", untrusted.Head(untrusted.Line(e.Program), maxShown))
	switch e.Reason {
	case NotFound:
		if e.Path == "" {
			return name + ": no such file"
		}
		return name + " not found in PATH " + untrusted.Head(untrusted.Line(e.Path), maxShown)
	case CurrentDirectory:
		return name + " is found only through a relative entry of PATH, which is not searched"
	case NotExecutable:
		return name + " is not an executable file"
	case BadFormat:
		return name + " is no program for this system: it has no #! line, or is made for another one"
	case NoInterpreter:
		return name + ": its interpreter " + fmt.Sprintf("%q", untrusted.Line(e.Interpreter)) + " is missing"
	case NoFolder:
		return "the working directory " + fmt.Sprintf("%q", untrusted.Head(untrusted.Line(e.Dir), maxShown)) + " is missing"
	case UnsafeArgument:
		return name + " is a batch file, and one of its arguments holds a character that cmd.exe would act on"
	}
	if e.Err == nil {
		return name + ": " + string(e.Reason)
	}
	return name + ": " + untrusted.Line(cause(e.Err).Error())
}

// Unwrap returns the system's error.
func (e *StartError) Unwrap() error { return e.Err }

// NotSent is true: there was nobody to send to.
func (e *StartError) NotSent() bool { return true }

// cause strips the wrapping that repeats the path.
func cause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	if x, ok := errors.AsType[*exec.Error](err); ok {
		return x.Err
	}
	return err
}

// ExitError is how a child ended by itself.
type ExitError struct {
	Program string // the file that was started, as it may be told
	Code    int    // exit status; -1 when a signal ended it
	Signal  string // such as "killed"; empty when it exited
}

// Error says how the program ended.
func (e *ExitError) Error() string {
	name := fmt.Sprintf("%q", untrusted.Head(untrusted.Line(e.Program), maxShown))
	if e.Signal != "" {
		return name + " was ended by signal: " + e.Signal
	}
	return fmt.Sprintf("%s exited with status %d", name, e.Code)
}
