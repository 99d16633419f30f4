package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxVisited = 200_000 // entries looked at in one call, so that a call on a huge tree ends
	maxFolder  = 20_000  // entries read of one folder
	maxDepth   = 64      // folders below each other; each is an open descriptor while it is walked
	readAhead  = 1024    // entries per read of a folder

	maxWalk = 30 * time.Second // of one call: long enough for a large project, short enough for a home folder by mistake
)

// errStop ends a walk early without being an error.
var errStop = errors.New("stop")

// entry is one thing found by a walk.
type entry struct {
	dir   *os.Root // the folder that holds it, open only until the callback returns
	name  string
	rel   string // with slashes, relative to where the walk began
	depth int    // 1 for what lies directly in the folder that is walked
	fs.DirEntry
}

// walker goes through the folders below a place in the order of names. It follows no links, and passes over .git,
// node_modules and what is protected: a call that means those names them as path.
type walker struct {
	depth   int // how far down
	visit   func(entry) error
	hidden  map[string]bool // absolute paths, lower case
	visited int
	until   time.Time
	late    bool // the time was over before the end
	cut     bool // something was too large to be seen completely
	unread  int  // folders that could not be read
}

// walk calls visit for everything below a folder.
func (o Options) walk(ctx context.Context, at place, depth int, visit func(entry) error) (*walker, error) {
	w := &walker{depth: min(depth, maxDepth), visit: visit, hidden: make(map[string]bool), until: time.Now().Add(maxWalk)}
	for _, p := range o.Protected {
		w.hidden[strings.ToLower(p)] = true
		w.hidden[strings.ToLower(realOr(p))] = true
	}
	root, err := os.OpenRoot(at.root)
	if err != nil {
		return w, explain(err, at.shown)
	}
	defer func() { _ = root.Close() }()
	dir, err := root.OpenRoot(at.rel)
	if err != nil {
		return w, explain(err, at.shown)
	}
	defer func() { _ = dir.Close() }()
	if err := w.folder(ctx, dir, at.abs, "", 1); err != nil && !errors.Is(err, errStop) {
		return w, err
	}
	return w, nil
}

func (w *walker) folder(ctx context.Context, dir *os.Root, abs, rel string, depth int) error {
	list, err := w.read(dir)
	if err != nil {
		w.unread++
	}
	for _, d := range list {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if w.visited++; w.visited > maxVisited {
			w.cut = true
			return errStop
		}
		if time.Now().After(w.until) {
			w.late = true
			return errStop
		}
		name := d.Name()
		child := filepath.Join(abs, name)
		if w.hidden[strings.ToLower(child)] {
			continue
		}
		e := entry{dir: dir, name: name, rel: path.Join(rel, name), depth: depth, DirEntry: d}
		if err := w.visit(e); err != nil {
			return err
		}
		if !d.IsDir() || name == ".git" || name == "node_modules" {
			continue
		}
		if depth >= w.depth {
			w.cut = w.cut || depth >= maxDepth
			continue
		}
		sub, err := dir.OpenRoot(name)
		if err != nil {
			w.unread++
			continue
		}
		err = w.folder(ctx, sub, child, e.rel, depth+1)
		_ = sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the entries of a folder by name.
func (w *walker) read(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var list []fs.DirEntry
	for {
		more, err := f.ReadDir(readAhead)
		list = append(list, more...)
		if len(more) == 0 || err != nil {
			break
		}
		if len(list) >= maxFolder {
			w.cut = true
			break
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// notes says in brackets what a walk did not see.
func (w *walker) notes() string {
	var text string
	if w.cut {
		text += "[the tree is too large to be seen completely: give a narrower path]\n"
	}
	if w.late {
		text += "[stopped after " + maxWalk.String() + ": give a narrower path]\n"
	}
	if w.unread > 0 {
		text += "[" + strconv.Itoa(w.unread) + " folders could not be read]\n"
	}
	return text
}

// under joins the name of a place as shown with a path below it.
func (p place) under(rel string) string {
	if p.shown == "." {
		return rel
	}
	return strings.TrimSuffix(p.shown, "/") + "/" + rel
}

// oneLine keeps a file name from looking like several: names with control characters are quoted.
func oneLine(name string) string {
	plain := utf8.ValidString(name)
	for _, r := range name {
		plain = plain && r >= ' ' && r != 0x7f
	}
	if plain {
		return name
	}
	return strconv.Quote(name)
}
