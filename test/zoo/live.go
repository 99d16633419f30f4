package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// liveModes are about catalogs that change and about what tests of the whole agent need: R-L1 to R-L5, X2.
func liveModes() map[string]mode {
	return map[string]mode{
		"live": {"changes its tools on command: grow name, shrink name, alter name, announce times, fail times kind=error|twins|array, listings, meet n", live},
		"wide": {"n=40 tools of the size that is common, each answers with its name", wide},
		"hook": {"no server but a hook: appends its stdin to log=, prints out=, writes err= to stderr, ends with code=0 after ms=0", hook},
	}
}

// live is a server whose catalog its own tools change. Every change is announced before the call is answered, so that a
// client that has the answer has the announcement too.
func live(s *server) {
	l := &liveServer{server: s}
	s.tools = append(s.tools,
		define("shrink", "Removes a tool.", `"name":{"type":"string"}`),
		define("alter", "Changes the description of a tool.", `"name":{"type":"string"},"text":{"type":"string"}`),
		define("announce", "Announces a change that often.", `"times":{"type":"integer"}`),
		define("fail", "Makes the next listings fail, for ever when times is negative.", `"times":{"type":"integer"},"kind":{"type":"string"}`),
		define("listings", "Counts the listings so far.", ``),
		define("meet", "Answers when n calls of it are under way, the last one first.", `"n":{"type":"integer"},"text":{"type":"string"}`),
		define("structured", "Answers with its text as structured data.", `"text":{"type":"string"}`),
	)
	s.on["tools/list"] = l.list
	for name, f := range map[string]func(message, liveArguments){
		"grow": l.grow, "shrink": l.shrink, "alter": l.alter, "announce": l.announce, "fail": l.fail, "listings": l.count, "meet": l.meet,
		"structured": func(m message, a liveArguments) {
			s.result(m, `{"content":[],"structuredContent":{"text":`+quote(a.Text)+`}}`)
		},
	} {
		s.call[name] = func(m message, raw json.RawMessage) {
			var a liveArguments
			if err := json.Unmarshal(raw, &a); err != nil {
				s.fail(m, -32602, err.Error())
				return
			}
			f(m, a)
		}
	}
}

// liveArguments are those of the tools of the mode live.
type liveArguments struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Kind  string `json:"kind"`
	Times int    `json:"times"`
	N     int    `json:"n"`
}

type liveServer struct {
	*server
	listings int
	failures int // listings yet to fail; negative: all
	kind     string

	meeting sync.Mutex
	here    []func()
}

func (l *liveServer) list(m message) {
	l.listings++
	if l.failures == 0 {
		l.result(m, `{"tools":[`+strings.Join(l.tools, ",")+`]}`)
		return
	}
	l.failures--
	switch l.kind {
	case "twins":
		l.result(m, `{"tools":[`+l.tools[0]+`,`+l.tools[0]+`]}`)
	case "array":
		l.result(m, `[]`)
	default:
		l.server.fail(m, -32603, "no list today")
	}
}

// at finds a tool by name.
func (l *liveServer) at(name string) int {
	return slices.IndexFunc(l.tools, func(d string) bool { return strings.HasPrefix(d, `{"name":`+quote(name)+`,`) })
}

func (l *liveServer) changed() { l.note("notifications/tools/list_changed", `{}`) }

func (l *liveServer) grow(m message, a liveArguments) {
	l.tools = append(slices.Clone(l.tools), define(a.Name, "Grown.", ``))
	l.call[a.Name] = func(m message, _ json.RawMessage) { l.text(m, a.Name+" was called") }
	l.changed()
	l.text(m, "grown")
}

func (l *liveServer) shrink(m message, a liveArguments) {
	if i := l.at(a.Name); i >= 0 {
		l.tools = slices.Delete(slices.Clone(l.tools), i, i+1)
		delete(l.call, a.Name)
	}
	l.changed()
	l.text(m, "shrunk")
}

func (l *liveServer) alter(m message, a liveArguments) {
	if i := l.at(a.Name); i >= 0 {
		l.tools = slices.Clone(l.tools)
		l.tools[i] = define(a.Name, a.Text, ``)
	}
	l.changed()
	l.text(m, "altered")
}

func (l *liveServer) announce(m message, a liveArguments) {
	for range a.Times {
		l.changed()
	}
	l.text(m, "announced")
}

func (l *liveServer) fail(m message, a liveArguments) {
	l.failures, l.kind = a.Times, a.Kind
	l.changed()
	l.text(m, "listings fail")
}

func (l *liveServer) count(m message, _ liveArguments) { l.text(m, strconv.Itoa(l.listings)) }

// meet holds calls until there are n, so that their answers prove that all were under way at once.
func (l *liveServer) meet(m message, a liveArguments) {
	l.meeting.Lock()
	defer l.meeting.Unlock()
	l.here = append(l.here, func() { l.text(m, a.Text) })
	if len(l.here) < a.N {
		return
	}
	for _, answer := range slices.Backward(l.here) {
		answer()
	}
	l.here = nil
}

// wide is a server of n tools with descriptions and schemas of the size that is common.
func wide(s *server) {
	s.tools = nil
	property := func(i int) string {
		return fmt.Sprintf(`"field_%d":{"type":"string","description":"What the field of this number is for, in one sentence."}`, i)
	}
	var properties []string
	for i := range 10 {
		properties = append(properties, property(i))
	}
	for i := range s.number("n", 40) {
		name := fmt.Sprintf("tool_%04d", i)
		s.tools = append(s.tools, define(name, fmt.Sprintf("Does the thing of number %d. ", i)+strings.Repeat("It says more about that. ", 10), strings.Join(properties, ",")))
		s.call[name] = func(m message, _ json.RawMessage) { s.text(m, name+" was called") }
	}
}

// hook does what a hook of a test should do, and ends.
func hook(s *server) {
	document, err := io.ReadAll(io.LimitReader(os.Stdin, 8<<20))
	if err != nil {
		fmt.Fprintln(os.Stderr, "zoo:", err)
		os.Exit(3)
	}
	if f := s.options["log"]; f != "" {
		appendTo(f, string(document))
	}
	if f := s.options["env"]; f != "" {
		appendTo(f, environment()+"\n")
	}
	if d := s.millis("ms", 0); d > 0 {
		<-time.After(d)
	}
	fmt.Print(s.options["out"])
	fmt.Fprint(os.Stderr, s.options["err"])
	os.Exit(s.number("code", 0))
}
