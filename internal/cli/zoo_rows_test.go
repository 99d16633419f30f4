package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// zooRows are all rows. Their names are those of the bug classes: B stdio and protocol, W seen in the wild, S security.
func zooRows() []zooRow {
	return slices.Concat(framingRows(), endRows(), replyRows(), startRows(), catalogueRows())
}

// Words that come again.
const (
	eight   = `(?m)^tools +8$`
	hi      = `^hi\n$`
	echo    = `echo {"text":"hi"}`
	died    = `(connection ended: )?".*zoo" exited with status 1; its last words on stderr: fatal: cannot open the database`
	noHome  = `hint: .*"HOME": "\$\{HOME\}"`
	noInit  = `error: server "z": initialize: no answer to initialize within 1s`
	noList  = `error: server "z": list: no answer to tools/list within 1s`
	noCall  = `error: server "z": call: no answer to tools/call within 1s`
	raise   = `hint: raise "timeout" of this server in .*\.mcp\.json \(now 1 s, at most 300\)`
	tooLong = `connection ended: message larger than 16 MiB`
)

func framingRows() []zooRow {
	return []zooRow{
		{mode: "good", out: []string{eight, `(?m)^identity +zoo 1\.0\.0$`, `(?m)^protocol +2025-06-18 over stdio$`, `(?m)^  echo$`}, not: "left out|skipped|dropped"},
		{mode: "good", call: echo, out: []string{hi}},
		// B1: banners and logs before, between and after the answers; a cut line at the end.
		{mode: "noise", out: []string{eight, `skipped +[0-9]+ lines on stdout that are no messages, the first: INFO server line 0`}},
		{mode: "noise", call: echo, out: []string{hi}},
		{mode: "noise n=20000", out: []string{eight}, peak: 48},
		// B2, S6: JSON that is no message, and names in the wrong case.
		{mode: "json-noise", out: []string{eight, `skipped +[0-9]+ lines`}},
		{mode: "json-noise", call: echo, out: []string{hi}, not: "not yours"},
		// B3, W1: long lines, up to the limit and beyond it; the memory is a small multiple.
		{mode: "long-line size=65535", out: []string{`(?m)^tools +1$`}},
		{mode: "long-line size=65536", out: []string{`(?m)^tools +1$`}},
		{mode: "long-line size=65537", out: []string{`(?m)^tools +1$`}},
		{mode: "long-line", out: []string{`(?m)^tools +1$`}, peak: 48},
		{mode: "long-line size=10485760", out: []string{`(?m)^tools +1$`}, peak: 128},
		{mode: "long-line size=16777216", out: []string{`(?m)^tools +1$`}, peak: 192},
		{mode: "long-line size=16777300", exit: exitList, err: []string{`error: server "z": list: ` + tooLong}, peak: 192},
		{mode: "huge-list", out: []string{`(?m)^tools +700$`}, peak: 64},
		{mode: "many-tools", out: []string{`(?m)^tools +1000$`}, peak: 48},
		{mode: "many-tools n=20000", out: []string{`(?m)^tools +10000$`, `(?m)^left out +`}, peak: 96},
		// B4, S13: junk without an end is bounded, at once.
		{mode: "no-newline", exit: exitList, err: []string{`error: server "z": list: ` + tooLong}, peak: 48},
		{mode: "no-newline json=1", exit: exitList, err: []string{tooLong}, peak: 96},
		{mode: "no-newline after=start", exit: exitInitialize, err: []string{`error: server "z": initialize: ` + tooLong}, peak: 48},
		{mode: "no-newline after=start json=1", exit: exitInitialize, err: []string{tooLong}, peak: 96},
		{mode: "no-newline size=1048576", out: []string{eight, `skipped +1 line on stdout`}, peak: 48},
		// B5: line ends, marks, pieces.
		{mode: "crlf", call: echo, out: []string{hi}},
		{mode: "bom", call: echo, out: []string{hi}},
		{mode: "split", call: echo, out: []string{hi}},
		{mode: "joined", call: echo, out: []string{hi}},
		// B6: what is no text is replaced, and the answer is not lost.
		{mode: "bad-utf8", call: "bad", out: []string{`^bytes \x{FFFD} surrogates \x{FFFD} \x{FFFD}\x{FFFD} nul +raw +fine 😀 😀\n$`}},
		{mode: "bad-utf8", call: "bad", asJSON: true, out: []string{`fine 😀 😀`}},
		// B7, W8: a stderr that nobody reads would stop the server.
		{mode: "stderr-flood", call: echo, out: []string{hi}, peak: 48},
		{mode: "stderr-start bytes=262144", out: []string{eight}, peak: 48},
	}
}

func endRows() []zooRow {
	return []zooRow{
		// B8: what cannot start or ends early is told at once, with phase, status, program and last words.
		{mode: "exit-early", exit: exitInitialize, err: []string{`error: server "z": initialize: ` + died, noHome}},
		{mode: "exit-early code=42", exit: exitInitialize, err: []string{`exited with status 42`}},
		{mode: "exit-silent", exit: exitInitialize, err: []string{`exited with status 0`}},
		{mode: "exit-after-read", exit: exitInitialize, err: []string{died}},
		{mode: "kill-self", exit: exitInitialize, err: []string{`was ended by signal: killed`}},
		{mode: "partial-exit", exit: exitList, err: []string{`error: server "z": list: .*exited with status 0`}},
		{mode: "missing", command: "no-such-program-of-mine", exit: exitConnect, err: []string{`error: server "z": connect: command "no-such-program-of-mine" not found in PATH /`, `hint: give "command" as an absolute path`}},
		{mode: "missing", command: "DIR/nothing", exit: exitConnect, err: []string{`connect: command ".*/nothing": no such file`}},
		{mode: "plain", command: "DIR/plain", exit: exitConnect, err: []string{`connect: command ".*/plain" is not an executable file`}},
		{mode: "noformat", command: "DIR/noformat", exit: exitConnect, err: []string{`connect: .* is no program for this system: it has no #! line`}},
		{mode: "badscript", command: "DIR/badscript", exit: exitConnect, err: []string{`connect: .* its interpreter "/no/such/interpreter" is missing`}},
		// B12, R-C9: the cure for what the server was not given; names, never values.
		{mode: "needs-home", exit: exitInitialize, err: []string{`Error: HOME is not set`, noHome}},
		{mode: "needs-home", env: map[string]string{"HOME": "${HOME}"}, out: []string{eight}},
		{mode: "exit-early", ours: []string{"HTTPS_PROXY=http://me:proxy-password@127.0.0.1:9"}, exit: exitInitialize, err: []string{`not passed on: .*HTTPS_PROXY`}, not: "proxy-password"},
		{mode: "env-dump file=DIR/dump", out: []string{eight}},
		// W3: death after a good initialize, in silence.
		{mode: "die-after-init", exit: exitList, orExit: exitInitialize, err: []string{`error: server "z": (list|initialize): .*exited with status 0`}},
		// R-T5: death in a call fails it at once; the next call starts anew.
		{mode: "die-in-call", call: echo, exit: exitTool, err: []string{`error: server "z": call: ` + died}},
		{mode: "good", call: "crash", exit: exitTool, err: []string{`exited with status 7; its last words on stderr: crashing as asked`}},
		{mode: "good", turn: "call mcp__z__crash {}\n\ncall mcp__z__echo {\"text\":\"again\"}", out: []string{`which answered: again`}, err: []string{`failed: z / crash .*exited with status 7`}, starts: 2},
		// B9: slow starts are waited for, and the limit is named with the setting that raises it.
		{mode: "slow-init ms=300", timeout: 2, out: []string{eight, `timeout 2 s per request`}},
		{mode: "slow-init", timeout: 1, exit: exitInitialize, err: []string{noInit, raise}},
		{mode: "stall", timeout: 1, exit: exitInitialize, err: []string{noInit, raise}},
		{mode: "stall method=tools/list", timeout: 1, exit: exitList, err: []string{noList, raise}},
		{mode: "stall method=tools/call", timeout: 1, call: echo, exit: exitTool, err: []string{noCall, raise}},
		// B10, W2: who lives on is ended, with all of its group.
		{mode: "ignore-eof", out: []string{eight}},
		{mode: "ignore-term", out: []string{eight}},
		{mode: "slow-exit ms=300 code=3", out: []string{eight}},
		{mode: "grandchild pidfile=DIR/pids", out: []string{eight}},
		{mode: "hold", timeout: 1, exit: exitInitialize, err: []string{noInit}},
		// B11: a stdin that is closed, or never read.
		{mode: "close-stdin", timeout: 1, exit: exitList, err: []string{`error: server "z": list: `}},
		{mode: "close-stdout", exit: exitList, err: []string{`error: server "z": list: connection ended: the server closed its output but runs on`}},
		{mode: "never-read", timeout: 1, exit: exitInitialize, err: []string{noInit}},
		{mode: "stop-reading", timeout: 1, call: echo, exit: exitTool, err: []string{noCall}},
	}
}

func replyRows() []zooRow {
	const parseError = `error: server "z": call: error -32700: Parse error`
	return []zooRow{
		// B13: ids of another type, of nobody, and twice.
		{mode: "string-id", call: echo, out: []string{hi}},
		{mode: "float-id", call: echo, out: []string{hi}},
		{mode: "null-id", call: echo, exit: exitTool, err: []string{parseError}},
		{mode: "missing-id", call: echo, exit: exitTool, err: []string{parseError}},
		{mode: "wrong-id", call: echo, out: []string{hi}, not: "somebody else"},
		{mode: "dup-reply", call: echo, out: []string{hi}},
		// R-P4: answers in any order reach those who asked.
		{mode: "reverse", turn: "call mcp__z__echo {\"text\":\"one\"}\ncall mcp__z__echo {\"text\":\"two\"}", out: []string{`(?s)answered: call [12]\n.*answered: call [12]\n`}},
		// B14, W4: messages before the initialize answer.
		{mode: "early-messages", call: "replies", out: []string{`"id":"early","result":\{\}`, `"id":0,"error":\{"code":-32601`}},
		// B15, S35, R-P5: what is answered, to whom, and how often.
		{mode: "unknown-req", turn: "call mcp__z__echo {}\n\ncall mcp__z__replies {}", out: []string{`"id":1,"result":\{\}`, `"id":"text","error":\{"code":-32601,"message":"Method not found"\}`,
			`"id":123456789012345678901234567890,"error"`, `"id":-5,"error":\{"code":-32601`, `"id":"a{256}","result":\{\}`}, not: `b{257}|"id":(\{|true|null|1\.5|\[)`},
		{mode: "ping-flood n=20000", turn: "call mcp__z__echo {}\n\ncall mcp__z__replies {}", out: []string{`flood-0"`}, also: fewReplies, peak: 64},
		{mode: "ping-flood", call: echo, out: []string{hi}},
		// B16: odd notifications around answers.
		{mode: "progress-odd n=2000", call: echo, out: []string{hi}, peak: 64},
		// B17, R-P6: a timed-out call takes the connection with it; a late answer is nobody's; the next call starts anew.
		{mode: "late-reply ms=1500", timeout: 1, call: echo, exit: exitTool, err: []string{noCall, raise}},
		{mode: "late-reply ms=300", timeout: 2, call: echo, out: []string{hi}},
		{mode: "good", timeout: 1, turn: "call mcp__z__slow {\"ms\":9000}\ncall mcp__z__slow {\"ms\":9000}\n\ncall mcp__z__echo {\"text\":\"again\"}", out: []string{`answered: again`},
			err: []string{`failed: .*no answer to tools/call within 1s`}, starts: 2},
		// B21: arrays, where the version knows them.
		{mode: "batch", call: echo, out: []string{hi}},
		{mode: "batch", out: []string{`protocol +2025-03-26`, eight}},
		{mode: "batch v=2025-06-18", timeout: 1, exit: exitList, err: []string{noList}},
		// W3: an error for the list; a server without one has no tools (R-P2).
		{mode: "list-32603", exit: exitList, err: []string{`error: server "z": list: error -32603: Internal error`}},
		{mode: "list-32601", out: []string{`(?m)^tools +0$`}},
		// S27: the words of an error.
		{mode: "call-error", call: echo, exit: exitTool, err: []string{`error: server "z": call: error -32603: red gnorw\n`}},
		{mode: "error-secrets", env: map[string]string{"TOKEN": "${TOKEN}"}, ours: []string{"TOKEN=canary-4411aa"}, call: echo, exit: exitTool, err: []string{`TOKEN=\[redacted\]`}, not: "canary"},
		// X2: announcements in a storm, and without having been promised.
		{mode: "list-changed-storm", call: echo, out: []string{hi}},
		{mode: "no-changes", call: echo, out: []string{hi}},
	}
}

// fewReplies: 32 in any window of a second, whatever the flood lasts.
func fewReplies(o outcome) string {
	if n, most := strings.Count(o.out, "flood-"), 32*(int(o.took/time.Second)+2); n > most {
		return fmt.Sprintf("%d answers in %s, more than %d", n, o.took, most)
	}
	return ""
}

func startRows() []zooRow {
	const noVersion = `error: server "z": initialize: answered without a protocol version`
	rows := []zooRow{
		// B20: versions.
		{mode: "version=2025-03-26", out: []string{`protocol +2025-03-26 over stdio`}},
		{mode: "version=2024-11-05", exit: exitInitialize, err: []string{`initialize: answered with protocol 2024-11-05, which magi-code does not speak \(it speaks 2025-06-18 and 2025-03-26\)`}},
		{mode: "version=2025-11-25", exit: exitInitialize, err: []string{`protocol 2025-11-25`}},
		{mode: "init-32022", exit: exitInitialize, err: []string{`initialize: server speaks only 2026-07-28`}},
		{mode: "init-32601", exit: exitInitialize, err: []string{`initialize: server does not know initialize`}},
		{mode: "caps-odd kind=version-missing", exit: exitInitialize, err: []string{noVersion}},
		{mode: "caps-odd kind=version-number", exit: exitInitialize, err: []string{noVersion}},
		{mode: "caps-odd kind=version-null", exit: exitInitialize, err: []string{noVersion}},
		{mode: "caps-odd kind=version-empty", exit: exitInitialize, err: []string{noVersion}},
		{mode: "caps-odd kind=result-null", exit: exitInitialize, err: []string{`other than an object`}},
		{mode: "caps-odd kind=result-array", exit: exitInitialize, err: []string{`other than an object`}},
		{mode: "caps-odd kind=result-text", exit: exitInitialize, err: []string{`other than an object`}},
		// B19, S27: what the server says of itself is bounded and harmless.
		{mode: "caps-odd kind=info-control", out: []string{eight, `(?m)^identity +zoo 1 2$`}},
		{mode: "caps-odd kind=info-long", out: []string{eight, `(?m)^identity +n{50,200}\.\.\. 1{50,200}\.\.\.$`}, peak: 48},
		{mode: "caps-odd kind=instructions", out: []string{eight, `(?m)^instructions\n    Use echo first\.`}},
		{mode: "caps-odd kind=instructions-long", out: []string{eight, `(?m)^instructions$`}, peak: 48},
		{mode: "once file=DIR/once", out: []string{eight}},
	}
	for _, kind := range []string{"missing", "null", "array", "text", "empty", "tools-null", "tools-array", "tools-true", "list-text", "instructions-object", "extra"} {
		rows = append(rows, zooRow{mode: "caps-odd kind=" + kind, out: []string{eight, `identity +zoo 1\.0\.0`}})
	}
	for _, kind := range []string{"no-info", "info-null", "info-text", "info-empty", "info-numbers"} {
		rows = append(rows, zooRow{mode: "caps-odd kind=" + kind, out: []string{eight, `(?m)^identity +\(no name given\)`}})
	}
	return rows
}

func catalogueRows() []zooRow {
	return []zooRow{
		// B38, S30, W6, R-N1: a tool whose name cannot be used is left out and named; the rest works.
		{mode: "tools-odd kind=names", out: []string{`(?m)^  a{49}$`, `(?m)^left out +[0-9]+$`, `with\.dot: its name has characters`, `with/slash: `, `with space: `, `double__underscore: `,
			`b{64}: `, `c{65}: `, `Fine: another tool's name differs from its name in case only`, `new\\u\{a\}line`, `esc\\u\{1b\}\[31m`, `bidi\\u\{202e\}`, `zero\\u\{200b\}width`, `mcp__other__tool: `, `emoji😀: `}},
		{mode: "tools-odd kind=names", call: echo, out: []string{hi}},
		{mode: "dup-tools", exit: exitList, err: []string{`error: server "z": list: the server lists two tools of the name "echo"`}},
		{mode: "case-twins", out: []string{`(?m)^tools +7$`, `(?m)^  Echo: another tool's name`}},
		// B39, W5, R-N2: schemas of every shape.
		{mode: "tools-odd kind=schemas", out: []string{`(?m)^  schema_missing$`, `(?m)^  one_of$`, `(?m)^  ref_remote$`, `(?m)^  defs$`}, peak: 48},
		{mode: "tools-odd kind=schemas", call: echo, out: []string{hi}},
		// S28, S31: what the model sees is what the person sees; hidden characters are shown.
		{mode: "tools-odd kind=members", out: []string{`a\\u\{1b\}\[2J\\u\{202e\}b\\u\{200b\}\\u\{7\}\\u\{e0041\}`, `hidden characters, shown as escapes`, `(?m)^  only_name$`, `it has no name`, `it is not an object`}},
		{mode: "tools-odd", asJSON: true, out: []string{`"hiddenCharacters": true`}, peak: 64},
		{mode: "no-tools", out: []string{`(?m)^tools +0$`}},
		{mode: "list-odd kind=null", exit: exitList, err: []string{`list: the listing is not an object`}},
		{mode: "list-odd kind=array", exit: exitList, err: []string{`list: the listing is not an object`}},
		{mode: "list-odd kind=no-tools", out: []string{`(?m)^tools +0$`}},
		{mode: "list-odd kind=tools-null", out: []string{`(?m)^tools +0$`}},
		{mode: "list-odd kind=tools-object", exit: exitList, err: []string{`list: the "tools" of the listing are not an array`}},
		{mode: "list-odd kind=entries", out: []string{`(?m)^tools +0$`, `(?m)^left out +5$`}},
		// B39, R-P3: pages.
		{mode: "pages n=40", out: []string{`(?m)^tools +40$`}},
		{mode: "page-empty-cursor", out: []string{`(?m)^tools +5$`}},
		{mode: "page-null-cursor", out: []string{`(?m)^tools +5$`}},
		{mode: "page-number", exit: exitList, err: []string{`list: the "nextCursor" of the listing is not a string`}},
		{mode: "page-loop", exit: exitList, err: []string{`list: the listing repeats a cursor`}},
		{mode: "page-endless", exit: exitList, err: []string{`list: the listing has more than 1000 pages`}, peak: 48},
		{mode: "page-huge", exit: exitList, err: []string{`list: the listing is larger than 16 MiB`}, peak: 128},
		{mode: "page-error", exit: exitList, err: []string{`list: error -32602: Invalid cursor`}},
		// B40: results; TestZooResults has them all.
		{mode: "result-odd", call: "error_text", exit: exitTool, err: []string{`tool "error_text" reported an error: one\n    two\n`}},
		{mode: "result-odd", call: "error_empty", exit: exitTool, err: []string{`tool "error_empty" reported an error: it says nothing more\n`}},
		{mode: "result-odd", call: "huge_text", out: []string{`^line of text\n`}, peak: 64},
		{mode: `results raw={"content":[{"type":"text","text":"raw"}]}`, call: echo, out: []string{`^raw\n$`}},
		{mode: "good", call: `big {"bytes":15000000}`, out: []string{`^x{1000}`}, peak: 128},
		{mode: "good", call: `big {"bytes":17000000}`, exit: exitTool, err: []string{tooLong}, peak: 128},
		{mode: "good", turn: `call mcp__z__big {"bytes":15000000}`, out: []string{`answered: x{1000}`, `omitted|left out|cut`}, peak: 128},
		// R-L3: a list that changes within a turn changes nothing for it.
		{mode: "flip", turn: "call mcp__z__echo {\"text\":\"a\"}\n\ncall mcp__z__only_2 {}", out: []string{`no tool named "mcp__z__only_2"`}, err: []string{`done: z / echo`}},
	}
}
