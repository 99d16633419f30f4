package stdio

import (
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is the job object that holds the child and what it starts. The job ends with its last handle, so the
// children end with us.
type group struct {
	mu  sync.Mutex
	job windows.Handle
	pid int
}

// start starts cmd inside a new job. What the child starts before it is assigned is outside: the system offers no
// start inside a job to os/exec.
func (g *group) start(cmd *exec.Cmd) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
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
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(g.pid))
	if err != nil {
		return nil // it has ended already, or only the child itself can be ended
	}
	defer func() { _ = windows.CloseHandle(p) }()
	_ = windows.AssignProcessToJobObject(job, p)
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
}

// alive reports whether the job still holds a process.
func (g *group) alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job == 0 {
		return false
	}
	var info struct {
		TotalUserTime, TotalKernelTime, PeriodUserTime, PeriodKernelTime int64
		PageFaults, Total, Active, Terminated                            uint32
	}
	const basicAccounting = 1 // JobObjectBasicAccountingInformation
	err := windows.QueryInformationJobObject(g.job, basicAccounting, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.Active > 0
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
func exitError(cmd *exec.Cmd) error {
	e := &ExitError{Program: cmd.Path, Code: -1}
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
