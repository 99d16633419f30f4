package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/jsondoc"
	"magi-code/internal/safefile"
)

const (
	fileMode   = 0o600 // of a settings file that we make
	folderMode = 0o700 // of a folder that we make for it
)

// Raw returns the value at a key path of one file, or nil when it is not there.
func Raw(path string, keys ...string) (jsontext.Value, error) {
	_, root, err := parse(path)
	if err != nil {
		return nil, err
	}
	v := at(root, keys)
	if v == nil {
		return nil, nil
	}
	return v.Raw, nil
}

// at follows a key path; nil when it ends before.
func at(v *jsondoc.Value, keys []string) *jsondoc.Value {
	for _, k := range keys {
		v = v.Get(k)
	}
	return v
}

// Patch sets one key path of a settings file (or of another JSON file of that care, such as .mcp.json) to value (a JSON value; nil removes the key), under a
// cross-process lock, in the newest contents, keeping unknown fields, order, comments-free formatting and mode.
// The result is validated before sync-and-rename. A missing file is created 0600, its folder 0700.
// A file that is no strict JSON is not touched: the error says where and why.
func Patch(ctx context.Context, path string, keys []string, value jsontext.Value) error {
	return Update(ctx, path, keys, func(jsontext.Value) (jsontext.Value, error) { return value, nil })
}

// Update is Patch with a value that change makes of the one in the file, or of nil when there is none. It is called under the lock,
// so that of two processes that change one value neither loses what it did. An error of change ends it, and nothing is written.
func Update(ctx context.Context, path string, keys []string, change func(old jsontext.Value) (jsontext.Value, error)) error {
	if len(keys) == 0 {
		return errors.New("change a file: the key path is empty")
	}
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return fmt.Errorf("make the folder of %s: %w", filepath.Base(path), err)
	}
	release, err := Lock(ctx, path)
	if err != nil {
		return fmt.Errorf("change %s: %w", filepath.Base(path), err)
	}
	safefile.Sweep(path)
	return errors.Join(updateLocked(path, keys, change), release())
}

// Lock takes the cross-process lock under which Patch and Update change a file. It lies beside the file that path leads to, so that
// whoever writes by another name meets it.
func Lock(ctx context.Context, path string) (release func() error, err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return safefile.Lock(ctx, path+".lock")
}

// updateLocked reads, changes and writes the file.
func updateLocked(path string, keys []string, change func(jsontext.Value) (jsontext.Value, error)) error {
	data, root, err := parse(path)
	if err != nil {
		return err
	}
	if root == nil {
		data = []byte("{}\n")
		if root, err = parseBytes(path, data); err != nil {
			return err
		}
	}
	var old jsontext.Value
	if v := at(root, keys); v != nil {
		old = v.Raw
	}
	value, err := change(old)
	if err != nil {
		return err
	}
	if value != nil {
		if _, err := jsondoc.Parse(value); err != nil {
			return fmt.Errorf("change %s: the new value is not JSON: %w", filepath.Base(path), err)
		}
	}
	e := &editor{path: path, data: data}
	changed, err := e.set(root, keys, value)
	if err != nil {
		return err
	}
	if bytes.Equal(changed, data) {
		return nil
	}
	if err := validate(path, changed, keys, value); err != nil {
		return err
	}
	if err := safefile.Write(path, changed, fileMode); err != nil {
		return fmt.Errorf("change %s: %w", filepath.Base(path), err)
	}
	return nil
}

// validate reads the result again before it replaces anything.
func validate(path string, changed []byte, keys []string, value jsontext.Value) error {
	if len(changed) > MaxBytes {
		return &Error{Path: path, Text: "the file would be larger than 1 MiB"}
	}
	root, err := parseBytes(path, changed)
	if err != nil {
		return fmt.Errorf("change %s: the result would be broken: %w", filepath.Base(path), err)
	}
	v := at(root, keys)
	if (v == nil) != (value == nil) || v != nil && !bytes.Equal(v.Raw, bytes.TrimSpace(value)) {
		return &Error{Path: path, Key: safe(strings.Join(keys, ".")), Text: "the change would not arrive in the file"}
	}
	return nil
}
