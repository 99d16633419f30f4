package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of the completion of file names.
const (
	maxCompletionWalk = 20_000 // entries looked at
	maxCompletions    = 50
)

// files are the paths below the folder in which the letters of query stand in this order, shortest first.
func (c *cockpit) files(ctx context.Context, query string) []string {
	var found []string
	seen := 0
	_ = filepath.WalkDir(c.w.cwd, func(path string, d fs.DirEntry, err error) error { // what cannot be read is left out
		if seen++; seen > maxCompletionWalk || ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil {
			return nil
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(c.w.cwd, path)
		if err == nil && rel != "." && subsequence(strings.ToLower(query), strings.ToLower(rel)) {
			if d.IsDir() {
				rel += string(filepath.Separator)
			}
			found = append(found, rel)
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b string) int {
		if ca, cb := strings.Contains(a, query), strings.Contains(b, query); ca != cb {
			if ca {
				return -1
			}
			return 1
		}
		return len(a) - len(b)
	})
	return found[:min(len(found), maxCompletions)]
}

func subsequence(query, text string) bool {
	for _, r := range query {
		i := strings.IndexRune(text, r)
		if i < 0 {
			return false
		}
		text = text[i+len(string(r)):]
	}
	return true
}

// maxEdited bounds a text that comes back from the editor, in bytes.
const maxEdited = 4 << 20

// editor lets the user edit a text in $VISUAL or $EDITOR, started without a shell; vi when neither is set.
func (a *app) editor(ctx context.Context, text string, in io.Reader, out io.Writer) (string, error) {
	command := "vi"
	for _, variable := range []string{"VISUAL", "EDITOR"} {
		if v, ok := a.lookup(variable); ok && strings.TrimSpace(v) != "" {
			command = v
			break
		}
	}
	f, err := os.CreateTemp("", "magi-code-prompt-*.md")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString(text); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	argv := append(strings.Fields(command), f.Name())
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the editor %q did not end well, so the prompt stays as it was: %w", command, err)
	}
	file, err := os.Open(f.Name())
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxEdited+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxEdited {
		return "", fmt.Errorf("the edited text is longer than %d bytes, so the prompt stays as it was", maxEdited)
	}
	return strings.TrimRight(string(b), "\n"), nil
}
