package tool

// Set is an ordered (by name) immutable collection of tools. The zero Set is empty.
type Set struct{ tools []Tool }

// NewSet sorts the tools by name. A name that occurs twice is an error that names it.
func NewSet(tools ...Tool) (Set, error) { panic("to be built") }

// Get returns the tool of that name.
func (s Set) Get(name string) (Tool, bool) { panic("to be built") }

// All returns a copy of the tools in order.
func (s Set) All() []Tool { panic("to be built") }

// Len is the number of tools.
func (s Set) Len() int { return len(s.tools) }

// Filter returns the set of those for which keep is true.
func (s Set) Filter(keep func(Tool) bool) Set { panic("to be built") }

// Digest is a hex SHA-256 over name, description and schema of every tool in order: equal exactly when
// what is advertised is equal. It is part of the prompt-cache key.
func (s Set) Digest() string { panic("to be built") }
