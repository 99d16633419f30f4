package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"magi-code/internal/secret"
)

// verifierBytes is the entropy of a code verifier; as base64url it has 43 characters, the least that RFC 7636 (4.1) allows.
const verifierBytes = 32

// newVerifier makes the code verifier of one login (RFC 7636).
func newVerifier() secret.String {
	b := make([]byte, verifierBytes)
	_, _ = rand.Read(b) // it never fails: see crypto/rand
	return secret.New(base64.RawURLEncoding.EncodeToString(b))
}

// challenge is the S256 challenge of a verifier (RFC 7636, 4.2).
func challenge(verifier secret.String) string {
	sum := sha256.Sum256([]byte(verifier.Reveal()))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
