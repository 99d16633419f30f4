package stdio

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// outputs are the pipes that a child writes to, named as /proc names them.
type outputs []string

// outputsOf names the pipes whose reading ends we hold.
func outputsOf(ends ...*os.File) (o outputs) {
	for _, f := range ends {
		info, err := f.Stat()
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			o = append(o, "pipe:["+strconv.FormatUint(st.Ino, 10)+"]")
		}
	}
	return o
}

// signal sends s to every process that can still write to one of the pipes, and returns how many got it. We gave the writing
// ends to the child alone and closed ours, so whoever has one descends from it, in whatever session and below whatever parent:
// nothing that we did not start can be hit.
func (o outputs) signal(s syscall.Signal) (got int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || !o.heldBy(name) {
			continue
		}
		p, err := os.FindProcess(pid) // a handle: from here on the number may become another's
		if err != nil {
			continue
		}
		if o.heldBy(name) && p.Signal(s) == nil {
			got++
		}
		_ = p.Release()
	}
	return got
}

// heldBy reports whether a process can write to one of the pipes. A child of ours does not count: it is the copy of us that
// os/exec is about to turn into another server, and that drops all descriptors then.
func (o outputs) heldBy(pid string) bool {
	folder := filepath.Join("/proc", pid, "fd")
	fds, err := os.ReadDir(folder)
	if err != nil {
		return false // of another user, or gone
	}
	for _, fd := range fds {
		at := filepath.Join(folder, fd.Name())
		target, err := os.Readlink(at)
		if err != nil {
			continue
		}
		for _, pipe := range o {
			if target != pipe {
				continue
			}
			info, err := os.Lstat(at) // its mode is that of the descriptor
			if err == nil && info.Mode()&0o200 != 0 {
				st, ok := processStatus(pid)
				return ok && st.parent != os.Getpid()
			}
		}
	}
	return false
}
