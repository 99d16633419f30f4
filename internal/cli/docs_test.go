package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"mvdan.cc/sh/v3/syntax"
)

// The documents are held to the program: their links lead somewhere, their JSON is valid, their commands run (docs_commands_test.go)
// and the sentences that they explain are in the source.

// page is one document.
type page struct {
	name   string // slash-separated, from the root of the project
	text   string
	blocks []block
}

// block is fenced text.
type block struct {
	language string
	line     int // of its first line
	text     string
}

// readPages reads README.md, CHANGELOG.md and docs/*.md.
func readPages(t *testing.T) (pages []page) {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("the documents are not found: %v %v", names, err)
	}
	for _, n := range append(names, "../../README.md", "../../CHANGELOG.md") {
		text, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		p := page{name: strings.TrimPrefix(filepath.ToSlash(n), "../../"), text: strings.ReplaceAll(string(text), "\r\n", "\n")}
		p.blocks = findBlocks(p.text)
		pages = append(pages, p)
	}
	return pages
}

// findBlocks finds the fenced blocks of a document.
func findBlocks(text string) (blocks []block) {
	var open *block
	for i, line := range strings.Split(text, "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{language: language, line: i + 2}
		case fence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return blocks
}

// prose is a document without its fenced blocks.
func (p page) prose() string {
	text := p.text
	for _, b := range p.blocks {
		text = strings.Replace(text, "```"+b.language+"\n"+b.text+"```", "", 1)
	}
	return text
}

var (
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	mdCode    = regexp.MustCompile("`([^`]+)`")
	mdBold    = regexp.MustCompile(`(?m)^- \*\*(.+?)\*\*`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// slug is the anchor of a heading.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// TestDocsLinks: each relative link leads to a file, and to a heading where it names one.
func TestDocsLinks(t *testing.T) {
	pages := readPages(t)
	for _, p := range pages {
		for _, m := range mdLink.FindAllStringSubmatch(p.prose(), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := p.name
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(p.name), target))
			}
			if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
				t.Errorf("%s: link to %s, which is not there", p.name, m[1])
				continue
			}
			if i := slices.IndexFunc(pages, func(q page) bool { return q.name == path }); anchor != "" && i >= 0 {
				headings := mdHeading.FindAllStringSubmatch(pages[i].prose(), -1)
				if !slices.ContainsFunc(headings, func(h []string) bool { return slug(h[1]) == anchor }) {
					t.Errorf("%s: link to %s, and %s has no such heading", p.name, m[1], path)
				}
			}
		}
	}
}

// foreignJSON are the documents of others that ours show, by a key of theirs.
var foreignJSON = map[string]string{
	"agent_servers": "the editors' settings",
	"json.schemas":  "an editor's settings",
	"_meta":         "a request of the Agent Client Protocol",
	"tasks":         "a call of the tool subagents, which its own tests check",
}

// TestDocsJSON: each JSON block is JSON, and what it shows is accepted by the schema and by the program.
func TestDocsJSON(t *testing.T) {
	servers, set := readSchema(t, mcpSchema), readSchema(t, settingsSchema)
	payload := readSchema(t, "internal/hook/payload.schema.json")
	for _, p := range readPages(t) {
		for _, b := range p.blocks {
			if b.language == "json" {
				if err := checkJSON(t, b.text, servers, set, payload); err != nil {
					t.Errorf("%s:%d: %v", p.name, b.line, err)
				}
			}
		}
	}
}

func checkJSON(t *testing.T, doc string, servers, set, payload *jsonschema.Resolved) error {
	t.Helper()
	var top map[string]any
	if err := json.Unmarshal([]byte(doc), &top); err != nil {
		return err
	}
	var schema *jsonschema.Resolved
	accept := func(*testing.T, string) error { return nil }
	for key := range top {
		switch {
		case key == "mcpServers":
			schema, accept = servers, acceptServers
		case set.Schema().Properties[key] != nil:
			schema, accept = set, acceptSettings
		case key == "event":
			schema = payload
		case foreignJSON[key] != "":
			return nil
		}
	}
	if schema == nil {
		return fmt.Errorf("it is not known what this is: %s", doc)
	}
	for key := range top {
		if schema.Schema().Properties[key] == nil {
			return fmt.Errorf("nothing is called %s there", key)
		}
	}
	if err := schema.Validate(top); err != nil {
		return err
	}
	return accept(t, doc)
}

// TestDocsInline: a command in running text is one that exists, with flags that exist. So are those in the examples of --help.
func TestDocsInline(t *testing.T) {
	for _, p := range readPages(t) {
		for _, m := range mdCode.FindAllStringSubmatch(p.prose(), -1) {
			if strings.HasPrefix(m[1], "magi-code ") && !strings.Contains(m[1], "COMMAND") {
				checkLine(t, p.name, m[1])
			}
		}
	}
	commands := newRoot(&app{}).Commands()
	for i := 0; i < len(commands); i++ {
		for line := range strings.Lines(commands[i].Example) {
			checkLine(t, commands[i].CommandPath()+" --help", strings.TrimSpace(line))
		}
		commands = append(commands, commands[i].Commands()...)
	}
}

// checkLine checks each use of magi-code in a line of shell.
func checkLine(t *testing.T, where, line string) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(line), where)
	if err != nil {
		t.Errorf("%s: %s: %v", where, line, err)
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 || call.Args[0].Lit() != "magi-code" {
			return true
		}
		var args []string
		for _, w := range call.Args[1:] {
			args = append(args, line[w.Pos().Offset():w.End().Offset()])
		}
		if cmd, rest, err := newRoot(&app{}).Find(args); err == nil && cmd.HasParent() && len(rest) == 0 {
			return true // the name of a command alone
		}
		if err := checkCommand(args); err != nil {
			t.Errorf("%s: %s: %v", where, line, err)
		}
		return true
	})
}

// checkCommand says what is wrong with a command line, without running it.
func checkCommand(args []string) error {
	root := newRoot(&app{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	root.InitDefaultVersionFlag()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestDocsSentences: what docs/troubleshooting.md explains is what magi-code says: each part between the dots is in the source.
func TestDocsSentences(t *testing.T) {
	var source strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	program := strings.ReplaceAll(source.String(), `\"`, `"`)
	sentences := 0
	for _, p := range readPages(t) {
		if p.name != "docs/troubleshooting.md" {
			continue
		}
		for _, m := range mdBold.FindAllStringSubmatch(p.text, -1) {
			for _, part := range strings.Split(m[1], "…") {
				if part = strings.Trim(strings.ReplaceAll(part, "`", ""), " "); part != "" && !strings.Contains(program, part) {
					t.Errorf("%s explains %q, and nothing says %q", p.name, m[1], part)
				}
			}
			sentences++
		}
	}
	if sentences < 10 {
		t.Errorf("docs/troubleshooting.md explains %d sentences only", sentences)
	}
}

// TestDocsFail plants one mistake of each kind and sees it found.
func TestDocsFail(t *testing.T) {
	for _, args := range []string{"frob", "mcp frob", "run --frob x", "mcp get", "mcp get a b", "mcp call a", "demo x", "serve --stdio=maybe"} {
		if checkCommand(strings.Fields(args)) == nil {
			t.Errorf("magi-code %s passes for a command", args)
		}
	}
	w := newWorld(t, "planted")
	for _, line := range []string{
		"magi-code mcp get nobody", "magi-code mcp get nobody --json | jq -r .fingerprint", "magi-code run --frob x", "frob", "magi-code mcp frob",
		"magi-code mcp get NAME --json | jq -r .frob", ".ci/frob", "cd frob",
	} {
		if err := w.runLine(t.Context(), line); err == nil {
			t.Errorf("%s: passes", line)
		}
	}
	for _, line := range []string{"magi-code mcp get NAME --json | jq -r .fingerprint", "echo hello", ".ci/run"} {
		if err := w.runLine(t.Context(), line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	servers, set, payload := readSchema(t, mcpSchema), readSchema(t, settingsSchema), readSchema(t, "internal/hook/payload.schema.json")
	for _, doc := range []string{
		`{`, `{}`, `{"frob":1}`, `{"mcpServers":{"a":{}}}`, `{"model":"x","frob":1}`, `{"model":1}`, `{"hooks":[{"event":"before_tool"}]}`, `{"event":"frob"}`,
	} {
		if checkJSON(t, doc, servers, set, payload) == nil {
			t.Errorf("%s passes", doc)
		}
	}
}
