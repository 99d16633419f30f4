package procgroup

import (
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"syscall"

	"golang.org/x/sys/windows"
)

// Group is a job object: a process and all that it starts. Closing it ends them, our own death too.
type Group struct {
	job  windows.Handle
	lone *os.Process // the command, when it could not be put into the job
}

// Prepare keeps a break on our console from the command.
func Prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// New is called once the command has started.
func New(cmd *exec.Cmd) (Group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return Group{}, err
	}
	limits := &windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	at, size := address(limits)
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, at, size)
	runtime.KeepAlive(limits)
	if err != nil {
		_ = windows.CloseHandle(job)
		return Group{}, err
	}
	g := Group{job: job, lone: cmd.Process}
	const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE
	process, err := windows.OpenProcess(access, false, uint32(cmd.Process.Pid))
	if err != nil {
		return g, nil // it has ended already, or only it itself can be ended
	}
	if windows.AssignProcessToJobObject(job, process) == nil {
		g.lone = nil
	}
	_ = windows.CloseHandle(process)
	return g, nil
}

// terminate ends every process: there is no polite way that all of them understand.
func (g Group) terminate() { g.kill() }

// kill ends every process of the job.
func (g Group) kill() {
	_ = windows.TerminateJobObject(g.job, 1)
	if g.lone != nil {
		_ = g.lone.Kill()
	}
}

// Alive reports whether the job still has a process.
func (g Group) Alive() bool {
	info := &accounting{}
	at, size := address(info)
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation, at, size, nil)
	runtime.KeepAlive(info)
	return err == nil && info.Active > 0
}

// accounting is what the system tells of a job.
type accounting struct {
	UserTime, KernelTime, PeriodUserTime, PeriodKernelTime int64
	Faults, Total, Active, Terminated                      uint32
}

// address returns where the system finds *v and how long it is. Reflection puts v on the heap, where it stays in place;
// the caller keeps it alive.
func address(v any) (at uintptr, size uint32) {
	p := reflect.ValueOf(v)
	return p.Pointer(), uint32(p.Type().Elem().Size())
}

// Release closes the job, which ends what is left in it.
func (g Group) Release() { _ = windows.CloseHandle(g.job) }
