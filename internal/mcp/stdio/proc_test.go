//go:build unix

package stdio

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// running reports whether a process exists and is no zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !os.IsNotExist(err) || !procfs()
	}
	i := bytes.LastIndexByte(b, ')')
	return i < 0 || i+2 >= len(b) || b[i+2] != 'Z'
}

// procfs reports whether there is a /proc to ask.
func procfs() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}
