package stdio

import (
	"io/fs"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/windows"
)

// group is the job object that holds the child and what it starts. The job ends with its last handle, so the
// children end with us.
type group struct {
	mu   sync.Mutex
	job  windows.Handle
	pid  int
	lone *os.Process // the child, when it could not be put into the job
}

// start starts cmd inside a new job. What the child starts before it is assigned is outside: the system offers no
// start inside a job to os/exec.
func (g *group) start(cmd *exec.Cmd) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	info := &windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	at, size := address(info)
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, at, size)
	runtime.KeepAlive(info)
	if err != nil {
		_ = windows.CloseHandle(job)
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
	if err := cmd.Start(); err != nil {
		_ = windows.CloseHandle(job)
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.job, g.pid = job, cmd.Process.Pid
	g.lone = cmd.Process
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(g.pid))
	if err != nil {
		return nil // it has ended already, or only the child itself can be ended
	}
	defer func() { _ = windows.CloseHandle(p) }()
	if windows.AssignProcessToJobObject(job, p) == nil {
		g.lone = nil
	}
	return nil
}

// await waits for the child's exit; its handle keeps its number from reuse.
func (g *group) await(cmd *exec.Cmd) bool {
	p, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(cmd.Process.Pid))
	if err != nil {
		return false
	}
	defer func() { _ = windows.CloseHandle(p) }()
	_, err = windows.WaitForSingleObject(p, windows.INFINITE)
	return err == nil
}

// terminate asks the child to end, in the only way there is for a console program.
func (g *group) terminate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(g.pid))
	}
}

// kill ends every process of the job.
func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
	if g.lone != nil {
		_ = g.lone.Kill()
	}
}

// alive reports whether the job still holds a process.
func (g *group) alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job == 0 {
		return false
	}
	info := &accounting{}
	const basicAccounting = 1 // JobObjectBasicAccountingInformation
	at, size := address(info)
	err := windows.QueryInformationJobObject(g.job, basicAccounting, at, size, nil)
	runtime.KeepAlive(info)
	return err == nil && info.Active > 0
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	TotalUserTime, TotalKernelTime, PeriodUserTime, PeriodKernelTime int64
	PageFaults, Total, Active, Terminated                            uint32
}

// address returns where the system finds *v and how long it is. Reflection moves v to the heap, where objects stay
// in place; the caller keeps it alive.
func address(v any) (at uintptr, size uint32) {
	p := reflect.ValueOf(v)
	return p.Pointer(), uint32(p.Type().Elem().Size())
}

// release closes the job, which ends what it still holds.
func (g *group) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}

// exitError says how the child ended.
func exitError(cmd *exec.Cmd, shown string) error {
	e := &ExitError{Program: shown, Code: -1}
	if cmd.ProcessState != nil {
		e.Code = cmd.ProcessState.ExitCode()
	}
	return e
}

// extensions are those of files that can be started.
func extensions(pathext string) []string {
	if pathext == "" {
		return []string{".com", ".exe", ".bat", ".cmd"}
	}
	var out []string
	for _, e := range strings.Split(strings.ToLower(pathext), ";") {
		if e == "" {
			continue
		}
		if e[0] != '.' {
			e = "." + e
		}
		out = append(out, e)
	}
	return out
}

// mayExecute returns nil for a file.
func mayExecute(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fs.ErrPermission
	}
	return nil
}
