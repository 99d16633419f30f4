package jsonrpc

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxID bounds an id that is given back, in bytes of its text: a server could have us carry anything otherwise.
const maxID = 256

// UsableID reports whether an id may be echoed: an integer, or a string of at most 256 bytes.
func UsableID(id ID) bool {
	if len(id) == 0 {
		return false
	}
	if id[0] == '"' {
		if len(id) > 6*maxID+2 { // longer than 256 bytes even if each were written as an escape
			return false
		}
		u, err := jsontext.AppendUnquote(nil, []byte(id))
		return err == nil && len(u) <= maxID
	}
	return isInteger(id) && len(id) <= maxID
}

// isInteger reports whether v is an optional minus and digits.
func isInteger(v []byte) bool {
	if len(v) > 0 && v[0] == '-' {
		v = v[1:]
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(v) > 0
}

// alternate returns the other way to write id that a confused server may have changed it from: "7" for 7 and 7 for
// "7", 1.0 and 1e0. Empty: there is none.
func alternate(id ID) string {
	if len(id) == 0 || len(id) > 6*maxID+2 {
		return ""
	}
	if id[0] == '"' {
		if t := unquote(id); isInteger([]byte(t)) {
			return t
		}
		return ""
	}
	if isInteger(id) {
		return `"` + string(id) + `"`
	}
	if n, ok := wholeFloat(id); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

// wholeFloat returns the value of a number such as 7.0 or 7e0 that is a whole one and exact as a float.
func wholeFloat(v []byte) (int64, bool) {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// integer reads a code: an integer, a whole float, or either in quotes; 0 for anything else.
func integer(v jsontext.Value) int64 {
	t := string(v)
	if v.Kind() == '"' {
		t = unquote(v)
	}
	if n, err := strconv.ParseInt(t, 10, 64); err == nil {
		return n
	}
	n, _ := wholeFloat([]byte(t))
	return n
}
