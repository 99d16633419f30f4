package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/safefile"
	"magi-code/internal/tool"
)

// An approval covers a server's definition, not its tools, which may change under it. So the tools of each server
// are remembered from run to run, as digests, and a change is announced before the first turn that has them (S29).

// maxKnownTools bounds the file, in bytes.
const maxKnownTools = 16 << 20

// knownWait bounds the wait for another process that writes the file.
const knownWait = time.Second

// knownKey names a definition: another form of it was approved anew, so its tools may well be others.
func knownKey(d definition.Server) string {
	sum := sha256.Sum256(d.Canonical())
	return d.Source + "\n" + hex.EncodeToString(sum[:8]) + "\n" + d.Name
}

// known maps definitions to their tools' names and digests.
type known map[string]map[string]string

// told is the catalog that the person was last told about, at the start or by any conversation: what is new against it when a
// conversation begins is told in its first turn. A nil told knows nothing.
type told struct {
	mu       sync.Mutex
	snapshot mcp.Snapshot
}

func (t *told) last() mcp.Snapshot {
	if t == nil {
		return mcp.Snapshot{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshot
}

func (t *told) set(s mcp.Snapshot) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.snapshot = s
}

// announceTools compares the tools of all servers with those of the last run, remembers them, and says what
// changed. Failing to remember is told, not fatal.
func (w *workshop) announceTools(ctx context.Context, m *mcp.Manager) []string {
	changes, err := w.compareTools(ctx, m)
	notices := changeNotices(changes)
	if err != nil {
		notices = append(notices, fmt.Sprintf("the servers' tools could not be remembered for the next run: %s", err))
	}
	return notices
}

// compareTools returns how the tools of all servers differ from those of the last run, and remembers them.
func (w *workshop) compareTools(ctx context.Context, m *mcp.Manager) ([]mcp.Change, error) {
	now := known{}
	byName := map[string]map[string]string{}
	for _, e := range w.entries {
		if _, ok := e.Approved(); ok {
			byName[e.Server.Name] = map[string]string{}
			now[knownKey(e.Server)] = byName[e.Server.Name]
		}
	}
	snapshot, _ := m.Prepare(ctx, mcp.Snapshot{})
	for _, t := range snapshot.Tools().All() {
		if tools := byName[t.Server]; tools != nil {
			tools[t.Remote] = toolDigest(t)
		}
	}
	w.told.set(snapshot)
	return updateKnown(ctx, filepath.Join(w.home, "known-tools.json"), now)
}

// toolDigest is over what the server says of a tool; the wrapper that we put around its schema is no change of the server's.
func toolDigest(t tool.Tool) string {
	_, theirs, _ := bytes.Cut(t.Schema, []byte(`"arguments":`))
	h := sha256.New()
	for _, part := range []string{t.Name, t.Description, string(theirs)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func updateKnown(ctx context.Context, path string, now known) (differences []mcp.Change, err error) {
	old, err := readKnown(path)
	if err != nil {
		return nil, err
	}
	changed := false
	for key, tools := range now {
		before, seen := old[key]
		if seen && maps.Equal(before, tools) {
			continue
		}
		changed = true
		if seen {
			name := key[strings.LastIndex(key, "\n")+1:]
			differences = append(differences, difference(name, before, tools))
		}
	}
	slices.SortFunc(differences, func(a, b mcp.Change) int { return strings.Compare(a.Server, b.Server) })
	if !changed {
		return differences, nil
	}
	wait, cancel := context.WithTimeout(ctx, knownWait)
	defer cancel()
	release, err := safefile.Lock(wait, path+".lock")
	if err != nil {
		return differences, err
	}
	defer release()
	safefile.Sweep(path)
	if old, err = readKnown(path); err != nil {
		return differences, err
	}
	maps.Copy(old, now)
	b, err := json.Marshal(old, json.Deterministic(true), jsontext.Multiline(true))
	if err != nil {
		return differences, err
	}
	return differences, safefile.Write(path, b, 0o600)
}

func difference(server string, before, now map[string]string) mcp.Change {
	c := mcp.Change{Server: server}
	for _, n := range slices.Sorted(maps.Keys(now)) {
		if d, ok := before[n]; !ok {
			c.Added = append(c.Added, n)
		} else if d != now[n] {
			c.Changed = append(c.Changed, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(before)) {
		if _, ok := now[n]; !ok {
			c.Removed = append(c.Removed, n)
		}
	}
	return c
}

// readKnown reads the file; a missing or damaged one knows nothing.
func readKnown(path string) (known, error) {
	b, err := safefile.Read(path, maxKnownTools)
	if errors.Is(err, fs.ErrNotExist) {
		return known{}, nil
	}
	if err != nil {
		return nil, err
	}
	k := known{}
	if json.Unmarshal(b, &k) != nil {
		return known{}, nil
	}
	return k, nil
}
