package approval

import (
	"errors"
	"fmt"

	"magi-code/internal/jsondoc"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/settings"
)

// keyPathOfRecords is where the records are in settings.json.
func keyPathOfRecords(more ...string) []string {
	return append([]string{"capabilities", "mcp_approvals"}, more...)
}

// Check reads settings and key once and returns the state of every definition, in order. It creates no key. An unusable
// key file (mode, kind, form) is an error; a missing one makes approved entries RenewalRequired.
func (s *Store) Check(servers []definition.Server) ([]Entry, error) {
	if len(servers) == 0 {
		return nil, nil
	}
	records, err := s.records()
	if err != nil {
		return nil, err
	}
	key, err := s.key()
	if err != nil && !errors.Is(err, errNoKey) {
		return nil, err
	}
	entries := make([]Entry, len(servers))
	for i, d := range servers {
		state := judge(record(records, d.Source, d.Name), key, d)
		entries[i] = Entry{Server: d, State: state, ok: state == IsApproved}
	}
	return entries, nil
}

// records reads all records; nil when there are none.
func (s *Store) records() (*jsondoc.Value, error) {
	raw, err := settings.Raw(s.settingsPath(), keyPathOfRecords()...)
	if err != nil {
		return nil, fmt.Errorf("read the approvals: %w", err)
	}
	if raw == nil {
		return nil, nil
	}
	return jsondoc.Parse(raw)
}

// record returns one record; nil when there is none. What is no object where one must be counts as a malformed record.
func record(records *jsondoc.Value, source, name string) *jsondoc.Value {
	if records == nil || records.Kind != '{' {
		return malformedUnless(records)
	}
	bySource := records.Get(source)
	if bySource == nil || bySource.Kind != '{' {
		return malformedUnless(bySource)
	}
	return bySource.Get(name)
}

// malformedUnless returns a value that no record has, unless there is nothing at all.
func malformedUnless(v *jsondoc.Value) *jsondoc.Value {
	if v == nil {
		return nil
	}
	return &jsondoc.Value{Kind: 'n'}
}

// judge says what a record means for a definition. The key is nil when it is gone.
func judge(v *jsondoc.Value, key []byte, d definition.Server) State {
	if v == nil {
		return NeverApproved
	}
	switch v.Kind {
	case 'f':
		return Revoked
	case 't':
		return RenewalRequired
	case '{':
	default:
		return Invalid
	}
	version := v.Get("version")
	if version == nil || !isWhole(version) {
		return Invalid
	}
	if string(version.Raw) != recordVersion {
		return RenewalRequired
	}
	stored := v.Get("digest")
	if stored == nil || stored.Kind != '"' || !isDigest(stored.Text) || len(v.Members) != 2 {
		return Invalid
	}
	if key == nil {
		return RenewalRequired
	}
	if !sameDigest(stored.Text, digest(key, d)) {
		return Changed
	}
	return IsApproved
}

// isWhole reports whether v is a number without fraction and exponent.
func isWhole(v *jsondoc.Value) bool {
	if v.Kind != '0' {
		return false
	}
	for i, c := range v.Raw {
		if (c < '0' || c > '9') && !(i == 0 && c == '-') {
			return false
		}
	}
	return true
}

// Record is the place of a stored approval or revocation.
type Record struct{ Source, Name string }

// Leftover returns the records for which there is no definition among servers, in the file's order: what Revoke can still take back.
func (s *Store) Leftover(servers []definition.Server) ([]Record, error) {
	records, err := s.records()
	if err != nil || records == nil {
		return nil, err
	}
	known := map[Record]bool{}
	for _, d := range servers {
		known[Record{d.Source, d.Name}] = true
	}
	var out []Record
	for _, source := range records.Members {
		for _, m := range source.Value.Members {
			if r := (Record{source.Name, m.Name}); !known[r] {
				out = append(out, r)
			}
		}
	}
	return out, nil
}
