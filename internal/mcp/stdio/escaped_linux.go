package stdio

import (
	"os"
	"slices"
	"strconv"
	"syscall"
)

// outputs are the pipes that a child writes to, named as /proc names them, and when it was born.
type outputs struct {
	pipes []string
	born  uint64
}

// outputsOf names the pipes whose reading ends we hold.
func outputsOf(pid int, ends ...*os.File) (o outputs) {
	st, ok := processStatus(strconv.Itoa(pid))
	if !ok {
		return outputs{} // it is gone already; nothing is followed
	}
	o.born = st.born
	for _, f := range ends {
		info, err := f.Stat()
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			o.pipes = append(o.pipes, "pipe:["+strconv.FormatUint(st.Ino, 10)+"]")
		}
	}
	return o
}

// signal sends s to every process whose own stdout or stderr is one of the pipes, and returns how many got it. We gave the pipes to
// the child alone, so such a process was started below it. Programs that were merely handed a descriptor (the ssh master of a
// user, a systemd that runs something for the child) have their own stdout and stderr, are older as a rule, and are left alone.
func (o outputs) signal(s syscall.Signal) (got int) {
	if len(o.pipes) == 0 {
		return 0
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || !o.usedBy(name) {
			continue
		}
		p, err := os.FindProcess(pid) // a handle: from here on the number may become another's
		if err != nil {
			continue
		}
		if o.usedBy(name) && p.Signal(s) == nil {
			got++
		}
		_ = p.Release()
	}
	return got
}

// usedBy reports whether a process is younger than the child and writes where the child writes.
func (o outputs) usedBy(pid string) bool {
	for _, fd := range []string{"1", "2"} {
		target, err := os.Readlink("/proc/" + pid + "/fd/" + fd)
		if err != nil || !slices.Contains(o.pipes, target) { // an error: of another user, or gone
			continue
		}
		st, ok := processStatus(pid)
		return ok && st.born >= o.born
	}
	return false
}
