package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
)

// endModes are about processes that come and go: B8 to B12, W2, W3.
func endModes() map[string]mode {
	exit := func(s *server) {
		fmt.Fprint(os.Stderr, s.option("stderr", "fatal: cannot open the database\n"))
		os.Exit(s.number("code", 1))
	}
	return map[string]mode{
		"exit-early":      {"writes stderr= and exits with code=1 at once", func(s *server) { s.start = func() { exit(s) } }},
		"exit-silent":     {"exits with code=0 at once, saying nothing", func(s *server) { s.start = func() { os.Exit(s.number("code", 0)) } }},
		"exit-after-read": {"reads initialize, then exits with code=1", func(s *server) { s.before = func(message) { exit(s) } }},
		"kill-self":       {"is ended by SIGKILL before it answers", func(s *server) { s.before = func(message) { killSelf() } }},
		"partial-exit":    {"writes half an answer without a newline, then exits", partialExit},
		"needs-home":      {"exits with status 1 unless HOME is set", needsHome},
		"die-after-init":  {"answers initialize well, then exits silently; code=0", dieAfterInit},
		"die-in-call":     {"exits with code=1 when a tool is called", func(s *server) { s.on["tools/call"] = func(message) { exit(s) } }},
		"slow-init": {"answers initialize after ms=5000", func(s *server) {
			s.on["initialize"] = func(m message) { wait(s.millis("ms", 5000)); s.result(m, s.initialize(m)) }
		}},
		"stall":        {"reads everything and answers nothing; method=M answers all but that", stall},
		"ignore-eof":   {"lives on after its stdin ended; ends by SIGTERM", func(s *server) { s.end = forever }},
		"ignore-term":  {"lives on after its stdin ended and after SIGTERM", func(s *server) { ignoreTerm(); s.end = forever }},
		"slow-exit":    {"exits ms=500 after its stdin ended, with code=0", func(s *server) { s.end = func() { wait(s.millis("ms", 500)); os.Exit(s.number("code", 0)) } }},
		"grandchild":   {"has a child that ignores SIGTERM and holds its stdout and stderr; pidfile=FILE", grandchild},
		"hold":         {"is that child", func(s *server) { s.start = func() { hold(s) } }},
		"close-stdin":  {"closes its stdin after initialize and lives on", closeStdin},
		"close-stdout": {"closes its stdout after initialize and lives on", closeStdout},
		"never-read":   {"reads nothing at all", func(s *server) { s.start = forever }},
		"stop-reading": {"reads nothing any more after tools/list, but sends pings", stopReading},
		"env-dump":     {"writes its environment to file=FILE, then behaves well", envDump},
	}
}

func killSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	forever()
}

func partialExit(s *server) {
	s.on["tools/list"] = func(m message) {
		s.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"too`)
		os.Exit(s.number("code", 0))
	}
}

func needsHome(s *server) {
	s.start = func() {
		if _, ok := os.LookupEnv("HOME"); !ok {
			fmt.Fprintln(os.Stderr, "Error: HOME is not set")
			os.Exit(1)
		}
	}
}

func dieAfterInit(s *server) {
	s.on["initialize"] = func(m message) {
		s.result(m, s.initialize(m))
		os.Exit(s.number("code", 0))
	}
}

func stall(s *server) {
	only := s.options["method"]
	if only != "" {
		s.on[only] = func(message) {}
		return
	}
	for _, m := range []string{"initialize", "tools/list", "tools/call", "ping"} {
		s.on[m] = func(message) {}
	}
}

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

// grandchild starts the child and waits until it is deaf to SIGTERM.
func grandchild(s *server) {
	s.start = func() {
		ready, theirs, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		cmd := exec.Command(os.Args[0], "hold")
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, []*os.File{theirs}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		_ = theirs.Close()
		_, _ = ready.Read(make([]byte, 1))
		if f := s.options["pidfile"]; f != "" {
			appendTo(f, strconv.Itoa(cmd.Process.Pid)+"\n")
		}
	}
}

func hold(*server) {
	ignoreTerm()
	_, _ = os.NewFile(3, "ready").Write([]byte("x"))
	forever()
}

func closeStdin(s *server) {
	s.on["notifications/initialized"] = func(message) {
		_ = os.Stdin.Close()
		forever()
	}
}

func closeStdout(s *server) {
	s.on["notifications/initialized"] = func(message) {
		_ = os.Stdout.Close()
		forever()
	}
}

func stopReading(s *server) {
	s.after = func(m message) {
		if m.Method != "tools/list" {
			return
		}
		for i := 0; ; i++ {
			s.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":"stop-%d","method":"ping"}`, i))
			wait(s.millis("ms", 10))
		}
	}
}

func envDump(s *server) {
	if f := s.options["file"]; f != "" {
		appendTo(f, environment()+"\n")
	}
}
