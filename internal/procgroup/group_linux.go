package procgroup

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dieWithParent ends the process should we be killed without a chance to do it ourselves.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// hasLiving reports whether a group that still exists has a process that is more than a zombie: in a container the first
// process may collect orphans late or never. Where /proc cannot be read the answer is yes.
func hasLiving(group int) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer func() { _ = proc.Close() }()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return true
	}
	want := []byte(strconv.Itoa(group))
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		// "4711 (any name) S parent group ...": the name may hold anything, so count from its end.
		rest := stat[bytes.LastIndexByte(stat, ')')+1:]
		f := bytes.Fields(rest)
		if len(f) > 2 && bytes.Equal(f[2], want) && f[0][0] != 'Z' && f[0][0] != 'X' {
			return true
		}
	}
	return false
}
