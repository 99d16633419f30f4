package builtin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"magi-code/internal/tool"
)

const (
	editDescription = "Replace text in a file. old must match exactly, white space included, and occur once unless all is true. " +
		"Leave out the line numbers that read shows."
	editSchema = `{"type":"object","properties":{` + intentProperty + `,` +
		`"path":{"type":"string"},` +
		`"old":{"type":"string","description":"Text to replace, with enough around it to be unique."},` +
		`"new":{"type":"string","description":"Text to put in its place."},` +
		`"all":{"type":"boolean","description":"Replace every occurrence."}},` +
		`"required":["intent","path","old","new"],"additionalProperties":false}`

	maxShownPlaces = 8          // line numbers in an error
	maxShownLine   = 160        // bytes of a line in an error
	maxCompared    = 10_000_000 // lines compared to explain a mistake: a moment
)

// numbered matches text that was copied with the line numbers of read.
var numbered = regexp.MustCompile(`^\d+\t`)

type editArgs struct {
	Path string  `json:"path"`
	Old  *string `json:"old"`
	New  *string `json:"new"`
	All  bool    `json:"all"`
}

func (t *toolset) planEdit(ctx context.Context, c tool.Call) (change, error) {
	a, err := arguments[editArgs](c)
	if err != nil {
		return change{}, err
	}
	switch {
	case a.Old == nil:
		return change{}, errors.New("old is missing")
	case a.New == nil:
		return change{}, errors.New("new is missing")
	case *a.Old == "":
		return change{}, errors.New("old is empty; to create or replace a whole file use write")
	case *a.Old == *a.New:
		return change{}, errors.New("old and new are the same")
	}
	ch, err := t.current(ctx, a.Path)
	if err != nil {
		return change{}, err
	}
	path := clip(a.Path, maxShownPath)
	switch {
	case !ch.exists:
		return change{}, fmt.Errorf("%q does not exist; to create it use write", path)
	case ch.oddOld:
		return change{}, fmt.Errorf("%q is binary or has more than %d bytes and cannot be edited", path, maxFile)
	}
	old, text := *a.Old, *a.New
	// Files with Windows line ends are shown without them: the change gets the ends that the file has.
	crlf := strings.Contains(ch.old, toCRLF(old))
	if mostly := mostlyCRLF(ch.old); crlf && (mostly || !strings.Contains(ch.old, old)) {
		old, text = toCRLF(old), toCRLF(text)
	} else if mostly {
		text = toCRLF(text)
	}
	count := strings.Count(ch.old, old)
	switch {
	case count == 0:
		return change{}, notFound(ch.old, *a.Old, path)
	case count > 1 && !a.All:
		return change{}, fmt.Errorf("old occurs %d times in %q (lines %s): add lines around it to make it unique, or set all to true",
			count, path, linesOf(ch.old, old))
	}
	if grown := len(ch.old) + count*(len(text)-len(old)); grown > maxFile {
		return change{}, fmt.Errorf("the file would have %d bytes, more than %d", grown, maxFile)
	}
	first := linesOf(ch.old, old)
	ch.text = strings.ReplaceAll(ch.old, old, text)
	ch.message = fmt.Sprintf("[edited %s: 1 place, line %s]", oneLine(ch.at.shown), first)
	if count > 1 {
		ch.message = fmt.Sprintf("[edited %s: %d places, lines %s]", oneLine(ch.at.shown), count, first)
	}
	return ch, nil
}

// toCRLF gives every line break its carriage return.
func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func mostlyCRLF(s string) bool {
	return strings.Count(s, "\r\n")*2 > strings.Count(s, "\n")
}

// linesOf lists the numbers of the lines in which an occurrence begins, the first few.
func linesOf(text, old string) string {
	var list []string
	line := 1
	for {
		at := strings.Index(text, old)
		if at < 0 {
			return strings.Join(list, ", ")
		}
		if len(list) == maxShownPlaces {
			return strings.Join(list, ", ") + ", ..."
		}
		line += strings.Count(text[:at], "\n")
		list = append(list, strconv.Itoa(line))
		line += strings.Count(old, "\n")
		text = text[at+len(old):]
	}
}

// notFound says as precisely as it can why old does not occur.
func notFound(text, old, path string) error {
	wanted := strings.Split(strings.Trim(old, "\r\n"), "\n")
	if all(wanted, numbered.MatchString) {
		return fmt.Errorf("old does not occur in %q: leave out the line numbers and tabs that read shows", path)
	}
	lines := strings.Split(text, "\n")
	if at := sameButSpace(lines, wanted); at > 0 {
		return fmt.Errorf("old does not occur in %q, but the text at line %d differs only in white space; line %d is %q",
			path, at, at, clip(strings.TrimSuffix(lines[at-1], "\r"), maxShownLine))
	}
	if at, which := nearest(lines, wanted); at > 0 {
		return fmt.Errorf("old does not occur in %q: its line %d is like line %d of the file, %q; read the file again",
			path, which, at, clip(strings.TrimSuffix(lines[at-1], "\r"), maxShownLine))
	}
	return fmt.Errorf("old does not occur in %q, not even one of its lines; read the file again", path)
}

func all(list []string, is func(string) bool) bool {
	for _, s := range list {
		if !is(s) {
			return false
		}
	}
	return true
}

// sameButSpace finds lines that are equal to the wanted ones when white space does not count; 0 when there are none.
func sameButSpace(lines, wanted []string) int {
	squeeze := func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = strings.Join(strings.Fields(s), "")
		}
		return out
	}
	lines, wanted = squeeze(lines), squeeze(wanted)
	if strings.Join(wanted, "") == "" {
		return 0
	}
	compared := 0
search:
	for i := range len(lines) - len(wanted) + 1 {
		for j, w := range wanted {
			if compared++; compared > maxCompared {
				return 0
			}
			if lines[i+j] != w {
				continue search
			}
		}
		return i + 1
	}
	return 0
}

// nearest finds the first wanted line that is in the file apart from the white space around it: the line of the file
// and which of the wanted ones; zeros when there is none.
func nearest(lines, wanted []string) (at, which int) {
	places := make(map[string]int, len(lines))
	for i, l := range lines {
		if l = strings.TrimSpace(l); places[l] == 0 {
			places[l] = i + 1
		}
	}
	for j, w := range wanted {
		const telling = 4 // bytes: a brace alone says nothing
		if w = strings.TrimSpace(w); len(w) >= telling && places[w] > 0 {
			return places[w], j + 1
		}
	}
	return 0, 0
}
