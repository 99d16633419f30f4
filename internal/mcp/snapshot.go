package mcp

import "magi-code/internal/tool"

// Snapshot is the frozen catalogue of all servers at one moment. The zero Snapshot is empty.
type Snapshot struct {
	set   tool.Set
	parts []part // one per server of the manager, in its order
}

// part is what one server gives to a snapshot.
type part struct {
	set    tool.Set
	digest string
}

// Tools returns the tools of the snapshot; their Run goes through the manager to the live connection.
func (s Snapshot) Tools() tool.Set { return s.set }

// snapshot returns the catalogue as it is now. It stays the same value as long as no listing changed.
func (m *Manager) snapshot() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	parts := make([]part, len(m.servers))
	same := len(m.current.parts) == len(parts)
	for i, s := range m.servers {
		s.mu.Lock()
		if l := s.listing; l != nil {
			parts[i] = part{l.set, l.digest}
		}
		s.mu.Unlock()
		same = same && m.current.parts[i].digest == parts[i].digest
	}
	if same {
		return m.current
	}
	m.current = Snapshot{set: mergeParts(parts), parts: parts}
	return m.current
}

// mergeParts makes one set. Names of different servers cannot meet: a server's name holds no __ and does not end in _.
func mergeParts(parts []part) tool.Set {
	sets := make([]tool.Set, len(parts))
	for i, p := range parts {
		sets[i] = p.set
	}
	set, err := tool.Merge(sets...)
	if err != nil {
		// A definition whose name breaks the rule does not get here; if it did, no tool is better than the wrong one.
		return tool.Set{}
	}
	return set
}
