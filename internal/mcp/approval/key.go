package approval

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"magi-code/internal/safefile"
	"magi-code/internal/settings"
)

const (
	keyBytes = 32
	keyMode  = 0o600
	homeMode = 0o700 // of an MC_HOME that we make
)

// ErrKey is wrapped when the key file is there and cannot be used.
var ErrKey = errors.New("the approval key cannot be used")

// errNoKey says that there is no key.
var errNoKey = errors.New("there is no approval key")

// key reads the key; errNoKey when there is no file.
func (s *Store) key() ([]byte, error) {
	path := s.keyPath()
	key, err := safefile.ReadPrivate(path, keyBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoKey
	case errors.Is(err, safefile.ErrTooLarge), err == nil && len(key) != keyBytes:
		return nil, fmt.Errorf("%w: %s must hold exactly %d bytes; restore it, or remove it and approve your servers again", ErrKey, path, keyBytes)
	case errors.Is(err, safefile.ErrNotRegular):
		return nil, fmt.Errorf("%w: %w; remove it and approve your servers again", ErrKey, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return key, nil
}

// ensureKey reads the key, making it when there is none. Whoever is second uses the first one's.
func (s *Store) ensureKey(ctx context.Context) ([]byte, error) {
	key, err := s.key()
	if !errors.Is(err, errNoKey) {
		return key, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.home, homeMode); err != nil {
		return nil, fmt.Errorf("make the folder for the approval key: %w", err)
	}
	// Creation is exclusive without a lock; it is there so that what killed processes left can be swept. It is that of the settings,
	// because the next approval removes its file, should we be killed too.
	release, err := settings.Lock(ctx, s.settingsPath())
	if err != nil {
		return nil, fmt.Errorf("create the approval key: %w", err)
	}
	defer func() { _ = release() }()
	safefile.Sweep(s.keyPath())
	fresh := make([]byte, keyBytes)
	_, _ = rand.Read(fresh) // never fails: it ends the program instead
	if err := safefile.Create(s.keyPath(), fresh, keyMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create the approval key: %w", err)
	}
	return s.key()
}
