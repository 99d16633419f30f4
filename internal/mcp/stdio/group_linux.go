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
		state, group, ok := processState(n)
		if !ok || group != pgid {
			continue
		}
		if state != 'Z' && state != 'X' {
			return false
		}
		seen = true
	}
	return seen
}

// processState reads the state and the group of a process.
func processState(pid string) (state byte, pgid int, ok bool) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0, false
	}
	i := bytes.LastIndexByte(b, ')') // the name before it may hold anything
	f := bytes.Fields(b[i+1:])
	if len(f) < 3 || len(f[0]) != 1 {
		return 0, 0, false
	}
	pgid, err = strconv.Atoi(string(f[2]))
	return f[0][0], pgid, err == nil
}
