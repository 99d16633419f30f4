package oauth

import (
	"testing"

	"magi-code/internal/secret"
)

// TestPKCE: the example of RFC 7636, appendix B; and no verifier comes twice (S22).
func TestPKCE(t *testing.T) {
	if c := challenge(secret.New("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")); c != "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" {
		t.Error(c)
	}
	a, b := newVerifier(), newVerifier()
	if a == b || len(a.Reveal()) != 43 {
		t.Errorf("%d characters", len(a.Reveal()))
	}
}
