package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/mcp/definition"
	"magi-code/internal/settings"
)

// Review returns the view of a definition, making the key when there is none.
//
// A record made under a key that is gone needs renewal; once Review has made a new key, Check can only tell
// that the digest is another one, and calls it changed.
func (s *Store) Review(ctx context.Context, d definition.Server) (View, error) {
	entries, err := s.Check([]definition.Server{d})
	if err != nil {
		return View{}, err
	}
	key, err := s.ensureKey(ctx)
	if err != nil {
		return View{}, err
	}
	return View{Server: d, State: entries[0].State, Fingerprint: digest(key, d)}, nil
}

// Approve stores the approval after reading and parsing the definition's file again, comparing the fingerprint, and
// expanding and checking it. A changed definition is a *StaleError; nothing is saved on any error.
func (s *Store) Approve(ctx context.Context, v View, lookup func(string) (string, bool)) error {
	d, err := reread(v.Server)
	if err != nil {
		return err
	}
	key, err := s.key()
	stale := &StaleError{Server: v.Server.Name, Source: v.Server.Source}
	if errors.Is(err, errNoKey) {
		return stale
	}
	if err != nil {
		return err
	}
	current := digest(key, d)
	if !sameDigest(current, v.Fingerprint) {
		return stale
	}
	if _, err := d.Expand(lookup); err != nil {
		return err
	}
	value := jsontext.Value(`{"version":` + recordVersion + `,"digest":"` + current + `"}`)
	return s.save(ctx, d.Source, d.Name, value)
}

// reread returns the definition as its file has it now.
func reread(shown definition.Server) (definition.Server, error) {
	servers, _, err := definition.LoadSource(shown.Source, shown.Scope)
	i := slices.IndexFunc(servers, func(d definition.Server) bool { return d.Name == shown.Name })
	if i < 0 && err != nil {
		return definition.Server{}, fmt.Errorf("read the definition again: %w", err)
	}
	if i < 0 || servers[i].Source != shown.Source {
		return definition.Server{}, &StaleError{Server: shown.Name, Source: shown.Source}
	}
	return servers[i], nil
}

// Revoke stores false for the definition's source and name. It works for definitions that no longer parse or exist.
func (s *Store) Revoke(ctx context.Context, source, name string) error {
	if source == "" || name == "" {
		return errors.New("revoke: source and name of the server are needed")
	}
	return s.save(ctx, source, name, jsontext.Value("false"))
}

// save writes one record.
func (s *Store) save(ctx context.Context, source, name string, value jsontext.Value) error {
	if err := settings.Patch(ctx, s.settingsPath(), keyPathOfRecords(source, name), value); err != nil {
		return fmt.Errorf("save the decision on server %q: %w", name, err)
	}
	return nil
}
