package codemode

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// memoryEnv makes the test binary run the attacks on memory and print the most that it held.
const memoryEnv = "CODEMODE_TEST_MEMORY"

// ceiling is what a process that runs one script at a time may hold at most, in KiB: the engine's 32 MiB, copies of what
// crosses the bridge, and Go itself.
const ceiling = 128 << 10

// TestMemoryCeiling: the limit holds for the process, not only inside the engine. // R-G5
func TestMemoryCeiling(t *testing.T) {
	if underRace {
		return // the detector's own memory would be measured
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), memoryEnv+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	peak, err := strconv.Atoi(string(bytes.TrimSpace(out)))
	if err != nil {
		t.Fatal(err)
	}
	if peak > ceiling {
		t.Errorf("the process held %d KiB", peak)
	}
	t.Logf("peak %d KiB", peak)
}

// attackMemory runs the attacks one after the other and prints VmHWM in KiB.
func attackMemory() int {
	for _, a := range attacksOnMemory() {
		var r Runner
		_, _, _ = r.Run(context.Background(), a.source, world(), Limits{Time: time.Second})
		if err := r.Close(context.Background()); err != nil {
			return 1
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 1
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	fmt.Println(string(bytes.Fields(rest)[0]))
	return 0
}
