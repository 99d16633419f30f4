package approval

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"magi-code/internal/mcp/definition"
)

// domain separates this use of the key from any other, and versions what is hashed.
const domain = "magi-code mcp approval 1"

// recordVersion is the version of a record whose digest is made like this.
const recordVersion = "1"

// digest commits to a definition, its canonical source and its name.
func digest(key []byte, d definition.Server) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{[]byte(domain), []byte(d.Source), []byte(d.Name), d.Canonical()} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		mac.Write(n[:])
		mac.Write(part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// sameDigest compares in constant time.
func sameDigest(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// isDigest reports whether s is 64 lowercase hexadecimal digits.
func isDigest(s string) bool {
	if len(s) != hex.EncodedLen(sha256.Size) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
