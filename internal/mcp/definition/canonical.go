package definition

import (
	"encoding/binary"
	"strconv"
)

// canonicalVersion opens the encoding. Whoever changes what the encoding says must change it, and approvals with it.
const canonicalVersion = "magi-code mcp definition 1"

// Canonical is the unambiguous, versioned, length-prefixed encoding of the definition, without source and
// name; approvals commit to it together with those.
//
// Every text is preceded by its length and every list by its count, each as 8 bytes, and the order of the fields is fixed; so
// no two definitions share an encoding. What a parser default or the order in an object decides is not in it.
func (s Server) Canonical() []byte {
	e := encoder{}
	e.text(canonicalVersion)
	e.text(string(s.Type))
	e.text(s.Command)
	e.texts(s.Args)
	e.pairs(s.Env)
	e.text(s.URL)
	e.pairs(s.Headers)
	if s.oddTimeout != "" {
		e.text("literal")
		e.text(s.oddTimeout)
	} else {
		e.text("seconds")
		e.text(strconv.Itoa(s.Timeout))
	}
	if s.OAuth == nil {
		e.count(0)
		return e.out
	}
	e.count(1)
	e.text(s.OAuth.ClientID)
	e.texts(s.OAuth.Scopes)
	e.text(s.OAuth.AuthorizationServer)
	return e.out
}

// encoder appends length-prefixed values.
type encoder struct{ out []byte }

// count appends a number.
func (e *encoder) count(n int) { e.out = binary.BigEndian.AppendUint64(e.out, uint64(n)) }

// text appends a text after its length.
func (e *encoder) text(s string) {
	e.count(len(s))
	e.out = append(e.out, s...)
}

// texts appends a list after its count.
func (e *encoder) texts(list []string) {
	e.count(len(list))
	for _, s := range list {
		e.text(s)
	}
}

// pairs appends a list of names and values after its count.
func (e *encoder) pairs(list []Pair) {
	e.count(len(list))
	for _, p := range list {
		e.text(p.Name)
		e.text(p.Value)
	}
}
