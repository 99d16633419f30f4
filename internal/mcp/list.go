package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

const (
	// maxPages and maxListing bound one listing, in pages and in bytes of all pages together.
	maxPages   = 1000
	maxListing = 16 << 20
	// listPatience bounds a whole listing, in timeouts of one request: a server could dribble pages for hours.
	listPatience = 10
	// maxTools bounds the tools of one server; the largest seen has some hundreds. The rest is left out and said to be.
	maxTools = 10_000
	// maxOmitted bounds how many left-out tools are named; the others are counted.
	maxOmitted = 500
	// maxDescription bounds a description in bytes as the model and the person see it. Peers cut at 2 KB.
	maxDescription = 8 << 10
	// maxTitle bounds a title in bytes: it is part of a line.
	maxTitle = 200
)

// listing is what one tools/list gave: immutable, and the identity of a server's part of a snapshot.
type listing struct {
	set     tool.Set
	digest  string
	infos   []ToolInfo
	omitted []OmittedTool
}

// listingError is a listing that cannot be used as a whole.
type listingError struct{ text string }

func (e *listingError) Error() string { return e.text }

// rawTool is one tool as it was listed.
type rawTool struct {
	name, title, description string
	schema                   jsontext.Value
	problem                  string // why it cannot be used at all
}

// listTools reads all pages. A server that does not know tools/list has no tools (R-P2).
func (c *client) listTools(ctx context.Context) ([]rawTool, int, error) {
	limit := listPatience * c.timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{method: "tools/list in all its pages", limit: limit})
	defer cancel()
	var tools []rawTool
	extra, size := 0, 0
	seen := map[string]bool{}
	var params jsontext.Value
	for page := 1; ; page++ {
		if page > maxPages {
			return nil, 0, &listingError{fmt.Sprintf("the listing has more than %d pages", maxPages)}
		}
		result, err := c.request(ctx, "tools/list", params)
		if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code == jsonrpc.CodeMethodNotFound {
			return nil, 0, nil
		}
		if err != nil {
			return nil, 0, err
		}
		if size += len(result); size > maxListing {
			return nil, 0, &listingError{fmt.Sprintf("the listing is larger than %d MiB", maxListing>>20)}
		}
		var cursor string
		if tools, extra, cursor, err = readPage(result, tools, extra); err != nil {
			return nil, 0, err
		}
		if cursor == "" {
			return tools, extra, nil
		}
		if seen[cursor] {
			return nil, 0, &listingError{"the listing repeats a cursor and would never end"}
		}
		seen[cursor] = true
		quoted, err := jsontext.AppendQuote(nil, cursor)
		if err != nil {
			return nil, 0, &listingError{"the listing has a cursor that is not UTF-8"}
		}
		params = jsontext.Value(`{"cursor":` + string(quoted) + `}`)
	}
}

// readPage appends the tools of one page, and returns how many more there are than are kept, and the next cursor.
func readPage(result jsontext.Value, tools []rawTool, extra int) ([]rawTool, int, string, error) {
	f, ok := object(result, "tools", "nextCursor")
	if !ok {
		return nil, 0, "", &listingError{"the listing is not an object"}
	}
	switch list := f["tools"]; list.Kind() {
	case '[':
		err := elements(list, func(v jsontext.Value) bool {
			if len(tools) == maxTools {
				extra++
				return true
			}
			tools = append(tools, readTool(v, len(tools)+1))
			return true
		})
		if err != nil {
			return nil, 0, "", &listingError{"the listing has broken tools"}
		}
	case 'n', 0: // null or absent: how some languages write an empty list
	default:
		return nil, 0, "", &listingError{`the "tools" of the listing are not an array`}
	}
	switch next := f["nextCursor"]; next.Kind() {
	case '"':
		cursor, _ := text(next)
		return tools, extra, cursor, nil
	case 'n', 0:
		return tools, extra, "", nil
	}
	return nil, 0, "", &listingError{`the "nextCursor" of the listing is not a string`}
}

// readTool reads one tool; position is for those without a name. What else a tool says (outputSchema, annotations, icons) is
// of no use here: annotations are claims, and icons would have to be fetched.
func readTool(v jsontext.Value, position int) rawTool {
	f, ok := object(v, "name", "title", "description", "inputSchema")
	if !ok {
		return rawTool{name: "tool " + strconv.Itoa(position), problem: "it is not an object"}
	}
	t := rawTool{schema: f["inputSchema"]}
	if t.name, ok = text(f["name"]); !ok {
		return rawTool{name: "tool " + strconv.Itoa(position), problem: "it has no name"}
	}
	t.title, _ = text(f["title"])
	t.description, _ = text(f["description"])
	return t
}

// catalogue makes a listing of raw tools. Duplicate names spoil the whole of it (R-N1); every other defect its tool only.
func (s *server) catalogue(raw []rawTool, extra int) (*listing, error) {
	names := make(map[string]bool, len(raw))
	folded := make(map[string]int, len(raw))
	for _, t := range raw {
		if t.problem != "" {
			continue
		}
		if names[t.name] {
			return nil, &listingError{fmt.Sprintf("the server lists two tools of the name %q", shownName(t.name))}
		}
		names[t.name] = true
		folded[strings.ToLower(t.name)]++
	}
	l := &listing{}
	tools := make([]tool.Tool, 0, len(raw))
	omit := func(t rawTool, why string) {
		if len(l.omitted) == maxOmitted {
			extra++
			return
		}
		l.omitted = append(l.omitted, OmittedTool{Name: s.line(shownName(t.name), maxShownName), Reason: s.line(why, maxText)})
	}
	for _, t := range raw {
		if t.problem == "" {
			t.problem = nameProblem(s.name, t.name)
		}
		if t.problem == "" && folded[strings.ToLower(t.name)] > 1 {
			t.problem = "another tool's name differs from its name in case only"
		}
		if t.problem != "" {
			omit(t, t.problem)
			continue
		}
		schema, err := s.callSchema(t.schema)
		if err != nil {
			omit(t, err.Error())
			continue
		}
		description, _ := untrusted.Cut(tool.Scrubbed(s.o.Scrub, t.description), maxDescription)
		l.infos = append(l.infos, ToolInfo{Name: t.name, Title: untrusted.Head(tool.Scrubbed(s.o.Scrub, t.title), maxTitle), Description: description})
		tools = append(tools, s.tool(t.name, description, schema))
	}
	if extra > 0 {
		l.omitted = append(l.omitted, OmittedTool{Name: "...", Reason: fmt.Sprintf("%d more, beyond what is kept of one server", extra)})
	}
	slices.SortFunc(l.infos, func(a, b ToolInfo) int { return strings.Compare(a.Name, b.Name) })
	set, err := tool.NewSet(tools...)
	if err != nil {
		return nil, &listingError{err.Error()} // cannot be: names were compared above
	}
	l.set, l.digest = set, set.Digest()
	return l, nil
}

// tool is one tool as the agent gets it. Its Run finds the live connection at each call.
func (s *server) tool(name, description string, schema jsontext.Value) tool.Tool {
	return tool.Tool{
		Name: advertised(s.name, name), Description: untrusted.Text(description), Schema: schema,
		Origin: tool.MCP, Server: s.name, Remote: name,
		Run: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			result, err := s.call(ctx, name, call.Arguments)
			return result, withLastWords(err)
		},
	}
}

// took is how long something has taken, rounded for display.
func took(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }
