package stdio

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes make the child the leader of a session, and so of a group, that dies with us. A session of its own,
// because a group of ours still has our terminal: a server could draw on it, or ask for a password there, past every
// sanitizer. SIGKILL, because it is the last that we can send: a child that would have ended politely sees the end of
// its stdin at the same time.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// await waits for the child's exit without reaping it. It reports whether it could.
func (g *group) await(cmd *exec.Cmd) bool {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// onlyZombies reports whether every member of the group has ended and merely waits for a parent that never asks, as
// in a container whose first process is no init. It is false when that cannot be found out.
func onlyZombies(pgid int) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return false
	}
	seen := false
	for _, n := range names {
		if n[0] < '0' || n[0] > '9' {
			continue
		}
		st, ok := processStatus(n)
		if !ok || st.group != pgid {
			continue
		}
		if st.state != 'Z' && st.state != 'X' {
			return false
		}
		seen = true
	}
	return seen
}

// status is what the kernel says about a process.
type status struct {
	state byte
	group int
	born  uint64 // in ticks since the system started
}

// processStatus reads the status of a process.
func processStatus(pid string) (status, bool) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return status{}, false
	}
	i := bytes.LastIndexByte(b, ')') // the name before it may hold anything
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return status{}, false
	}
	group, err := strconv.Atoi(string(f[2]))
	born, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	return status{f[0][0], group, born}, err == nil && err2 == nil
}
