package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// measured runs a command and writes its largest resident memory in KiB to the file $PEAK. It is a process of its own because a
// child is charged with the memory of the process that it was started from: this one is small.
func measured() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		if err := os.WriteFile(os.Getenv("PEAK"), []byte(strconv.FormatInt(usage.Maxrss, 10)), 0o600); err != nil {
			os.Exit(125)
		}
	}
	os.Exit(cmd.ProcessState.ExitCode())
}
