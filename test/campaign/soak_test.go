//go:build campaign && linux

package campaign

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// soakers make calls at once in the soak.
	soakers = 8
	// soakSlack is how many bytes the heap may differ between a tenth of the calls and all of them.
	soakSlack = 3 << 20
	// soakPace is the time that a call may take on average: a tenth of it is usual.
	soakPace = time.Millisecond
)

// TestSoak makes 100,000 calls to one stdio server: memory, goroutines and descriptors after all of them are those after a tenth,
// and it does not become slow. R-Q1.
func TestSoak(t *testing.T) {
	before := measure(t)
	m := open(t, map[string]any{"one": map[string]any{"command": testOnlyZoo, "args": []string{"good"}}})
	one := func(i int) error {
		text := "call " + strconv.Itoa(i)
		if i%1000 == 0 {
			text += strings.Repeat(" and more", 4000)
		}
		result, err := m.Call(t.Context(), "one", "echo", jsontext.Value(fmt.Sprintf(`{"text":%q}`, text)))
		if err != nil {
			return err
		}
		if got := result.Plain(); got != text {
			return fmt.Errorf("call %d got %.60q", i, got)
		}
		return nil
	}
	run := func(from, to int) time.Duration {
		began := time.Now()
		var next atomic.Int64
		next.Store(int64(from))
		var wg sync.WaitGroup
		for range soakers {
			wg.Go(func() {
				for i := int(next.Add(1)) - 1; i < to && !t.Failed(); i = int(next.Add(1)) - 1 {
					if err := one(i); err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	n := calls()
	first := run(0, n/10)
	early := measure(t)
	rest := run(n/10, n)
	late := measure(t)
	t.Logf("%d calls in %s (%s a call, %s in the first tenth); after a tenth: %v; after all: %v", n, (first + rest).Round(time.Millisecond),
		((first + rest) / time.Duration(n)).Round(time.Microsecond), (first / time.Duration(n/10)).Round(time.Microsecond), early, late)
	if late.heap > early.heap+soakSlack {
		t.Errorf("the heap grew from %d to %d KiB", early.heap>>10, late.heap>>10)
	}
	if late.goroutines > early.goroutines || late.descriptors > early.descriptors {
		t.Errorf("after a tenth: %v; after all: %v", early, late)
	}
	if limit := time.Duration(n) * soakPace; first+rest > limit {
		t.Errorf("it took %s, more than %s", first+rest, limit)
	}
	if st := m.Status()[0]; st.Skipped > 0 || st.Err != nil {
		t.Errorf("%d lines skipped, %v", st.Skipped, st.Err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		t.Error(err)
	}
	checkSize(t, before)
}
