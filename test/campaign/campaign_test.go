//go:build campaign && linux

// Package campaign attacks the program for long: writers are killed at random moments, servers are killed, stopped, slowed and
// disconnected under overlapping calls, and one server answers a hundred thousand calls. It looks into /proc, so it needs Linux.
//
//	go test -tags campaign -count=1 ./test/campaign
//
// docs/campaign.md tells what CAMPAIGN_ROUNDS, CAMPAIGN_CALLS and CAMPAIGN_SEED do.
package campaign

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const (
	// defaultRounds and defaultCalls make a campaign that ends within 90 s on two cores.
	defaultRounds = 60
	defaultCalls  = 100_000
	// patience bounds every wait for something that must happen: the machine may be busy with other things.
	patience = 30 * time.Second
)

// The programs under test, built once.
var (
	testOnlyProgram, testOnlyZoo string
	testOnlySeed                 uint64
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	testOnlySeed = number("CAMPAIGN_SEED", uint64(time.Now().UnixNano())%1_000_000)
	fmt.Printf("campaign: CAMPAIGN_SEED=%d CAMPAIGN_ROUNDS=%d CAMPAIGN_CALLS=%d\n", testOnlySeed, rounds(), calls())
	dir, err := os.MkdirTemp("", "campaign-")
	if err != nil {
		panic(err)
	}
	testOnlyProgram, testOnlyZoo = filepath.Join(dir, "magi-code"), filepath.Join(dir, "zoo")
	for out, pkg := range map[string]string{testOnlyProgram: "magi-code", testOnlyZoo: "magi-code/test/zoo"} {
		if text, err := exec.Command("go", "build", "-o", out, pkg).CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v\n%s", err, text))
		}
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// number reads a variable of the campaign.
func number(name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		panic(name + " is no number above zero: " + text)
	}
	return n
}

// rounds is how often each kind of writer is killed, and how many faults the servers get.
func rounds() int { return int(number("CAMPAIGN_ROUNDS", defaultRounds)) }

// calls is the length of the soak.
func calls() int { return int(number("CAMPAIGN_CALLS", defaultCalls)) }

// dice are the random decisions of one test. They depend on the seed and the test's name; what the system does in
// between does not, so a seed repeats the plan and not each microsecond of it.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Name()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat: CAMPAIGN_SEED=%d CAMPAIGN_ROUNDS=%d CAMPAIGN_CALLS=%d", testOnlySeed, rounds(), calls())
		}
	})
	return rand.New(rand.NewPCG(testOnlySeed, h.Sum64()))
}

// pause lets up to most go by.
func pause(r *rand.Rand, most time.Duration) { <-time.After(time.Duration(r.Int64N(int64(most) + 1))) }

// eventually looks again and again until ok, at most as long as patience.
func eventually(ok func() bool) bool {
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			return false
		}
		<-time.After(5 * time.Millisecond)
	}
	return true
}
