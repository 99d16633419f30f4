package safefile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// roleVar makes the test binary a writer process instead.
const roleVar = "SAFEFILE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "create":
		createRole()
	case "count":
		countRole()
	case "rewrite":
		rewriteRole()
	default:
		os.Exit(m.Run())
	}
}

// role starts the test binary as a process of the given role.
func role(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path, 5); err != nil || string(got) != "12345" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Read(path, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, err := Read(filepath.Join(dir, "none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := Read(dir, 5); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "a folder") {
		t.Errorf("folder: %v", err)
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := Create(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("two"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second creation: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "one" {
		t.Errorf("contents %q", got)
	}
	if err := Create(filepath.Join(dir, "none", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	onlyEntries(t, dir, "f")
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "", "three"} {
		if err := Write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("contents %q, want %q", got, text)
		}
	}
	if err := Write(dir, []byte("x"), 0o600); !errors.Is(err, ErrNotRegular) {
		t.Errorf("folder: %v", err)
	}
	onlyEntries(t, dir, "f")
}

// onlyEntries fails when dir holds anything else.
func onlyEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %v, want %v", dir, got, want)
	}
}

// R-A5: of many processes that create one file, one wins, and all see the same whole contents.
func TestCreateOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	var wg sync.WaitGroup
	results := make([]string, 6)
	for i := range results {
		cmd := role(t, "create", path, strconv.Itoa(i))
		wg.Go(func() {
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			results[i] = string(out)
		})
	}
	wg.Wait()
	created := 0
	for _, r := range results {
		won, contents, _ := strings.Cut(r, " ")
		if won == "created" {
			created++
		}
		if _, first, _ := strings.Cut(results[0], " "); contents != first || len(contents) != 4096 {
			t.Errorf("a process saw %d bytes of another file", len(contents))
		}
	}
	if created != 1 {
		t.Errorf("%d processes created the file", created)
	}
	onlyEntries(t, dir, "key")
}

// createRole creates os.Args[1], then prints whether it did and what the file holds.
func createRole() {
	data := bytes.Repeat([]byte(os.Args[2]), 4096)
	won := "created"
	if err := Create(os.Args[1], data, 0o600); errors.Is(err, fs.ErrExist) {
		won = "existed"
	} else if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	got, err := ReadPrivate(os.Args[1], 1<<20)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("%s %s", won, got)
}

// R-A8: under the lock, concurrent processes lose no change.
func TestLockAcrossProcesses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "counter")
	if err := os.WriteFile(path, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	const processes, each = 4, 40
	var wg sync.WaitGroup
	for range processes {
		cmd := role(t, "count", path, strconv.Itoa(each))
		wg.Go(func() {
			if out, err := cmd.Output(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if got, _ := os.ReadFile(path); string(got) != strconv.Itoa(processes*each) {
		t.Errorf("counted %s of %d", got, processes*each)
	}
	onlyEntries(t, dir, "counter")
}

// countRole adds one to the number in os.Args[1], os.Args[2] times.
func countRole() {
	times, _ := strconv.Atoi(os.Args[2])
	for range times {
		release, err := Lock(context.Background(), os.Args[1]+".lock")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		data, _ := Read(os.Args[1], 100)
		n, _ := strconv.Atoi(string(data))
		if err := Write(os.Args[1], []byte(strconv.Itoa(n+1)), 0o600); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if err := release(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "l")
	release, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := Lock(short, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a taken lock: %v", err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Lock(ended, filepath.Join(dir, "free")); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), dir); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

// R-A8: a writer killed at any moment leaves old or new contents, never a part, and no lock that lasts.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for round := range 5 {
		cmd := role(t, "rewrite", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 3 + round*4 {
			lines.Scan()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		data, err := Read(path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) != 1<<16 || strings.Trim(string(data), string(data[:1])) != "" {
			t.Fatalf("half a file is left: %d bytes", len(data))
		}
		release, err := Lock(t.Context(), path+".lock")
		if err != nil {
			t.Fatal(err)
		}
		Sweep(path)
		_ = release()
		onlyEntries(t, dir, "f")
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	keep := []string{".f.new", ".g.new-1", "f", "f.new-1"}
	for _, name := range append([]string{".f.new-1", ".f.new-2"}, keep...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(filepath.Join(dir, "f"))
	onlyEntries(t, dir, keep...)
	Sweep(filepath.Join(dir, "none", "f"))

	link := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(filepath.Join(dir, "f"), link); err != nil {
		return // this system makes no links
	}
	if err := os.WriteFile(filepath.Join(dir, ".f.new-3"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Sweep(link)
	onlyEntries(t, dir, keep...)
}

// rewriteRole writes os.Args[1] for ever, telling each time.
func rewriteRole() {
	for i := 0; ; i++ {
		release, err := Lock(context.Background(), os.Args[1]+".lock")
		if err != nil {
			os.Exit(1)
		}
		if err := Write(os.Args[1], bytes.Repeat([]byte{byte('a' + i%26)}, 1<<16), 0o600); err != nil {
			os.Exit(1)
		}
		fmt.Println(i)
		_ = release()
	}
}
