package builtin

import (
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// openNonblock is nothing: named pipes are no files here.
const openNonblock = 0

// group is a job object: a process and all that it starts. Closing it ends them, our own death too.
type group struct{ job windows.Handle }

// prepare keeps a break on our console from the command.
func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// newGroup is called once the command has started.
func newGroup(cmd *exec.Cmd) (group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		var process windows.Handle
		const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE
		if process, err = windows.OpenProcess(access, false, uint32(cmd.Process.Pid)); err == nil {
			err = windows.AssignProcessToJobObject(job, process)
			_ = windows.CloseHandle(process)
		}
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return group{}, err
	}
	return group{job}, nil
}

// terminate ends every process: there is no polite way that all of them understand.
func (g group) terminate() { g.kill() }

// kill ends every process of the job.
func (g group) kill() { _ = windows.TerminateJobObject(g.job, 1) }

// alive reports whether the job still has a process.
func (g group) alive() bool {
	var info struct {
		userTime, kernelTime, periodUser, periodKernel int64
		faults, total, active, terminated              uint32
	}
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.active > 0
}

// release closes the job, which ends what is left in it.
func (g group) release() { _ = windows.CloseHandle(g.job) }
