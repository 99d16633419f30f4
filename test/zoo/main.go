// Command zoo is a collection of MCP servers on stdio that misbehave, one mode for each misbehaviour seen in the wild,
// for tests of the whole program. It shares no code with the product, so that a mistake there is not made here too.
//
//	zoo MODE [key=value...]
//
// The mode good is a sane small server with the tools echo, add, env, slow (argument ms), crash, big (argument bytes),
// replies and grow. Most other modes are good with one fault. `zoo` alone lists the modes. Arguments that are no
// key=value are ignored, so that tests can vary a definition. Keys that every mode knows:
//
//	touch=FILE    appends the process id to FILE before anything else: proof that the server was started
//	log=FILE      appends every received line to FILE
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mode is one misbehaviour.
type mode struct {
	about string
	setup func(*server)
}

func main() {
	if len(os.Args) < 2 {
		usage(os.Stdout)
		return
	}
	name := os.Args[1]
	s := newServer()
	if v, ok := strings.CutPrefix(name, "version="); ok {
		name, s.version = "version", v
	}
	for _, a := range os.Args[2:] {
		if k, v, ok := strings.Cut(a, "="); ok {
			s.options[k] = v
		}
	}
	m, ok := modes()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "zoo: no mode %q\n", name)
		usage(os.Stderr)
		os.Exit(2)
	}
	if f := s.options["touch"]; f != "" {
		appendTo(f, strconv.Itoa(os.Getpid())+"\n")
	}
	m.setup(s)
	s.run()
}

// modes are all modes by name.
func modes() map[string]mode {
	all := map[string]mode{
		"good":    {"behaves well", func(*server) {}},
		"version": {"answers initialize with another protocol version: version=V", func(*server) {}},
	}
	for _, part := range []map[string]mode{framingModes(), endModes(), replyModes(), startModes(), catalogueModes(), liveModes()} {
		for name, m := range part {
			if _, twice := all[name]; twice {
				panic("mode " + name + " twice")
			}
			all[name] = m
		}
	}
	return all
}

// usage lists the modes.
func usage(w *os.File) {
	all := modes()
	var names []string
	for n := range all {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintf(w, "%-18s %s\n", n, all[n].about)
	}
}

// appendTo appends text to a file.
func appendTo(file, text string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "zoo:", err)
		os.Exit(2)
	}
	defer f.Close()
	_, _ = f.WriteString(text)
}
