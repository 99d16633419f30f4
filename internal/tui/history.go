package tui

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"
	"github.com/go-json-experiment/json"
)

const (
	maxHistory     = 500      // prompts kept
	maxHistoryFile = 4 << 20  // bytes of the file that are read
	maxHistoryText = 64 << 10 // bytes of one prompt that are kept on disk: longer ones live in this process only
)

// history is what was sent before, newest last.
type history struct {
	list []draft
	at   int   // index shown; len(list) is the prompt being written
	own  draft // that prompt, while older ones are shown
}

func (h *history) add(d draft) {
	if n := len(h.list); n == 0 || h.list[n-1].String() != d.String() {
		h.list = append(h.list, d)
		if len(h.list) > maxHistory {
			h.list = h.list[len(h.list)-maxHistory:]
		}
	}
	h.at = len(h.list)
}

// prev shows the prompt before in the editor.
func (h *history) prev(e *editor) bool {
	if h.at == 0 {
		return false
	}
	if h.at == len(h.list) {
		h.own = draft{text: append([]rune(nil), e.text...), chips: append([]string(nil), e.chips...)}
	}
	h.at--
	h.show(e, h.list[h.at])
	return true
}

// next shows the prompt after; behind the newest comes what was being written.
func (h *history) next(e *editor) bool {
	if h.at >= len(h.list) {
		return false
	}
	h.at++
	if h.at == len(h.list) {
		h.show(e, h.own)
		return true
	}
	h.show(e, h.list[h.at])
	return true
}

func (h *history) show(e *editor, d draft) {
	e.changed(false)
	e.text = append([]rune(nil), d.text...)
	e.chips = append([]string(nil), d.chips...)
	e.at = len(e.text)
}

// load puts what the file holds before what was sent since.
func (h *history) load(prompts []string) {
	own := h.list
	h.list = nil
	for _, p := range prompts {
		h.add(draftOf(p))
	}
	for _, d := range own {
		h.add(d)
	}
	h.at = len(h.list)
}

func (m *model) loadHistory() {
	path := m.o.HistoryFile
	if path == "" {
		return
	}
	m.rt.do(func() tea.Msg {
		list, err := readHistory(path)
		if err != nil {
			return historyMsg(nil)
		}
		return historyMsg(list)
	})
}

// remember keeps a prompt, here and in the file.
func (m *model) remember(d draft) {
	m.hist.add(d)
	path, text := m.o.HistoryFile, d.String()
	if path == "" || len(text) > maxHistoryText {
		return
	}
	m.rt.do(func() tea.Msg {
		_ = appendHistory(path, text) // losing a line of history must not disturb anybody
		return nil
	})
}

// readHistory returns the newest prompts of a file of JSON strings, oldest first.
func readHistory(path string) ([]string, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxHistoryFile {
		if _, err := f.Seek(info.Size()-maxHistoryFile, 0); err != nil {
			return nil, fmt.Errorf("prompt history: %w", err)
		}
	}
	var list []string
	sc := bufio.NewScanner(f)
	sc.Buffer(make([]byte, 64<<10), 4*maxHistoryText)
	for sc.Scan() {
		var s string
		if json.Unmarshal(sc.Bytes(), &s) == nil && s != "" {
			list = append(list, s)
		}
	}
	if len(list) > maxHistory {
		list = list[len(list)-maxHistory:]
	}
	return list, nil
}

func appendHistory(path, text string) error {
	b, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("prompt history: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("prompt history: %w", err)
	}
	f, err := openRegular(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

// openRegular opens a file that is none of the kinds that can block.
func openRegular(path string, flag int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("prompt history: %s is not a regular file", path)
	}
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("prompt history: %w", err)
	}
	return f, nil
}
