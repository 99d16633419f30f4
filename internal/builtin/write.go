package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"magi-code/internal/tool"
)

const (
	writeDescription = "Create a file or replace all of it. Missing folders are made. To change parts of a file use edit."
	writeSchema      = `{"type":"object","properties":{` + intentProperty + `,` +
		`"path":{"type":"string"},` +
		`"content":{"type":"string"}},` +
		`"required":["intent","path","content"],"additionalProperties":false}`

	maxFile     = 10 << 20 // bytes of a file that is written or edited
	newFileMode = 0o644    // the umask takes away from it
	newDirMode  = 0o755
)

type writeArgs struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

// change is a file as it is and as it is to be.
type change struct {
	at      place
	path    string // as the model wrote it
	exists  bool
	mode    fs.FileMode
	old     string // "" when it does not exist
	text    string
	oddOld  bool // old is not shown in a diff: it is binary or too large
	message string
}

func (t *toolset) write(ctx context.Context, c tool.Call) (tool.Result, error) {
	return t.make(ctx, c, t.planWrite)
}

func (t *toolset) edit(ctx context.Context, c tool.Call) (tool.Result, error) {
	return t.make(ctx, c, t.planEdit)
}

// make plans a change and carries it out, one at a time.
func (t *toolset) make(ctx context.Context, c tool.Call, plan func(context.Context, tool.Call) (change, error)) (tool.Result, error) {
	t.changing.Lock()
	defer t.changing.Unlock()
	ch, err := plan(ctx, c)
	if err != nil {
		return failed(err)
	}
	if err := ctx.Err(); err != nil {
		return failed(fmt.Errorf("nothing was written: %w", context.Cause(ctx)))
	}
	if ch.exists && ch.old == ch.text && !ch.oddOld {
		return tool.TextResult("[" + oneLine(ch.at.shown) + " already has this content]"), nil
	}
	if err := t.put(ctx, ch); err != nil {
		return failed(explain(err, ch.path))
	}
	r := tool.TextResult(ch.message)
	r.Diff = ch.diff()
	return r, nil
}

// Preview returns the unified diff that a write or edit call would make, for the permission question; "" when the
// call is of another tool or would fail.
func Preview(ctx context.Context, o Options, c tool.Call) string {
	t := &toolset{o: o}
	plan := t.planWrite
	switch c.Name {
	case nameWrite:
	case nameEdit:
		plan = t.planEdit
	default:
		return ""
	}
	ch, err := plan(ctx, c)
	if err != nil {
		return ""
	}
	return ch.diff()
}

func (ch change) diff() string {
	old := "/dev/null"
	if ch.exists {
		old = "a/" + oneLine(ch.at.shown)
	}
	name := "b/" + oneLine(ch.at.shown)
	if ch.oddOld {
		return fmt.Sprintf("--- %s\n+++ %s\n(the old content is binary or too large to be compared)\n", old, name)
	}
	return unified(old, name, ch.old, ch.text)
}

func (t *toolset) planWrite(ctx context.Context, c tool.Call) (change, error) {
	a, err := arguments[writeArgs](c)
	if err != nil {
		return change{}, err
	}
	if a.Content == nil {
		return change{}, errors.New("content is missing")
	}
	if len(*a.Content) > maxFile {
		return change{}, fmt.Errorf("content has more than %d bytes", maxFile)
	}
	ch, err := t.current(ctx, a.Path)
	if err != nil {
		return change{}, err
	}
	ch.text = *a.Content
	lines := strings.Count(ch.text, "\n")
	if ch.text != "" && !strings.HasSuffix(ch.text, "\n") {
		lines++
	}
	word := "created"
	if ch.exists {
		word = "replaced"
	}
	ch.message = fmt.Sprintf("[%s %s: %d lines, %d bytes]", word, oneLine(ch.at.shown), lines, len(ch.text))
	return ch, nil
}

// current finds the file that a path names and reads it when it is there.
func (t *toolset) current(ctx context.Context, path string) (change, error) {
	ch := change{path: path}
	at, err := t.o.locate(path)
	if err != nil {
		return ch, err
	}
	ch.at = at
	if at.rel == "." {
		return ch, fmt.Errorf("%q is a folder", clip(path, maxShownPath))
	}
	root, err := os.OpenRoot(at.root)
	if err != nil {
		return ch, explain(err, path)
	}
	defer func() { _ = root.Close() }()
	f, st, err := openRegular(root, at.rel)
	if errors.Is(err, fs.ErrNotExist) {
		if t.o.Files != nil { // so far perhaps only in the editor
			text, err := t.o.Files.ReadText(ctx, at.abs)
			ch.old, ch.exists = text, err == nil
		}
		return ch, nil
	}
	if err != nil {
		return ch, explain(err, path)
	}
	defer func() { _ = f.Close() }()
	ch.exists, ch.mode = true, st.Mode().Perm()
	if ch.mode&0o200 == 0 {
		return ch, fmt.Errorf("%q is read-only; change its mode first if that is meant", clip(path, maxShownPath))
	}
	if st.Size() > maxFile {
		ch.oddOld = true
		return ch, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return ch, explain(err, path)
	}
	ch.old, ch.oddOld = string(data), isBinary(data)
	if t.o.Files != nil && !ch.oddOld {
		if ch.old, err = t.o.Files.ReadText(ctx, at.abs); err != nil {
			return ch, explain(err, path)
		}
	}
	return ch, nil
}

// put writes the new text.
func (t *toolset) put(ctx context.Context, ch change) error {
	root, err := os.OpenRoot(ch.at.root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if !ch.exists {
		if err := makeParents(root, ch.at.rel); err != nil {
			return err
		}
	}
	if t.o.Files != nil {
		return t.o.Files.WriteText(ctx, ch.at.abs, ch.text)
	}
	return replaceFile(root, ch)
}
