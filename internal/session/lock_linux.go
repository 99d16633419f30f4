package session

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLockTable bounds what is read of the kernel's table of locks, for an error text only.
const maxLockTable = 1 << 20

// holder returns the process that has the lock of f, or 0. The kernel's table has one lock a line:
// "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF".
func holder(f *os.File) int {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	table, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer func() { _ = table.Close() }()
	dev := uint64(st.Dev) // its width differs between architectures
	want := fmt.Sprintf("%02x:%02x:%d", unix.Major(dev), unix.Minor(dev), st.Ino)
	lines := bufio.NewScanner(io.LimitReader(table, maxLockTable))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 6 && fields[1] == "FLOCK" && fields[5] == want {
			pid, _ := strconv.Atoi(fields[4])
			return pid
		}
	}
	return 0
}
