//go:build unix

package stdio

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// childArg makes the test binary a child: what follows is its behaviour.
const childArg = "be-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childArg {
		child(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

// child misbehaves as told. Whatever else it does, it answers requests: "echo" with its params, "env" with its
// environment, "exit" by exiting.
func child(mode string, args []string) {
	switch mode {
	case "serve":
		serve(nil)
	case "exit":
		fmt.Fprint(os.Stderr, "cannot start: no licence\n")
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	case "kill-self":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		pause()
	case "stderr-flood":
		serve(func() { _, _ = os.Stderr.WriteString(strings.Repeat("\rprogress", 1<<20/9) + "END") })
	case "close-stdin":
		fmt.Println(`{"jsonrpc":"2.0","method":"ready"}`)
		in := bufio.NewReader(os.Stdin)
		_, _ = in.ReadString('\n')
		_ = os.Stdin.Close()
		fmt.Println(`{"jsonrpc":"2.0","method":"closed"}`)
		pause()
	case "close-stdout":
		_ = os.Stdout.Close()
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
	case "never-read":
		fmt.Println(`{"jsonrpc":"2.0","method":"ready"}`)
		pause()
	case "ignore-eof":
		serve(nil)
		pause()
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
		serve(nil)
		pause()
	case "grandchild": // a TERM-ignoring one that holds stdout and stderr; with args in a session of its own
		cmd := exec.Command(os.Args[0], append([]string{childArg, "hold"}, args...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: len(args) > 0}
		ready, w, _ := os.Pipe()
		cmd.ExtraFiles = []*os.File{w}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		_ = w.Close()
		_, _ = ready.Read(make([]byte, 1))
		fmt.Printf(`{"jsonrpc":"2.0","method":"ready","params":{"pid":%d}}`+"\n", cmd.Process.Pid)
		serve(nil)
	case "hold":
		hold(args)
	case "junk":
		size, _ := strconv.Atoi(args[1])
		chunk := strings.Repeat(args[0], 1<<16)
		for size > 0 {
			n, err := os.Stdout.WriteString(chunk[:min(size, len(chunk))])
			if err != nil {
				os.Exit(3)
			}
			size -= n
		}
		fmt.Println()
		serve(nil)
	case "parent": // starts a server of its own through this package and waits to be killed
		parent(args)
	}
}

// hold lives on with what it inherited, deaf to SIGTERM; args say what it lets go of, or that it hears: then it leaves a file.
func hold(args []string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	switch strings.Join(args[:min(len(args), 1)], "") {
	case "stdout":
		_ = os.Stderr.Close()
	case "stderr":
		_ = os.Stdout.Close()
	case "elsewhere": // as a process does that was handed the descriptors
		_, _ = syscall.Dup(1)
		fallthrough
	case "nothing":
		_, _ = os.Stdout.Close(), os.Stderr.Close()
	}
	_, _ = os.NewFile(3, "ready").Write([]byte("x"))
	if len(args) < 2 {
		pause()
	}
	<-asked
	if err := os.WriteFile(args[1], []byte("asked"), 0o600); err != nil {
		panic(err)
	}
}

// serve answers until stdin ends.
func serve(before func()) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		if before != nil {
			before()
		}
		var result any = m.Params
		switch m.Method {
		case "env":
			result = os.Environ()
		case "where":
			dir, _ := os.Getwd()
			result = append([]string{dir}, os.Args...)
		case "exit":
			fmt.Fprintln(os.Stderr, "last words")
			os.Exit(7)
		case "answer-and-exit":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":"bye"}`+"\n", m.ID)
			os.Exit(0)
		case "stall":
			continue
		case "size":
			n, _ := strconv.Atoi(string(m.Params))
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":"%s"}`+"\n", m.ID, strings.Repeat("x", n))
			continue
		}
		b, _ := json.Marshal(result)
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, b)
	}
}

// pause blocks until a signal ends the process; a bare select would be a deadlock to the runtime.
func pause() {
	r, w, _ := os.Pipe()
	defer w.Close()
	for {
		_, _ = r.Read(make([]byte, 1))
	}
}
