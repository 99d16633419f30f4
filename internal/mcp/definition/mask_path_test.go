package definition

import "testing"

// TestMaskPaths: a path is shown whole, since it decides what runs; a key of a known issuer in it is not (S9).
func TestMaskPaths(t *testing.T) {
	for _, c := range []struct{ raw, shown string }{
		{"/tmp/TestZoo1889271263004/001/server", "/tmp/TestZoo1889271263004/001/server"},
		{"./node_modules/.pnpm/a1b2c3d4e5f6a7b8c9d0e1f2/x.js", "./node_modules/.pnpm/a1b2c3d4e5f6a7b8c9d0e1f2/x.js"},
		{`C:\Temp\a1b2c3d4e5f6a7b8c9d0e1f2\x.exe`, `C:\Temp\a1b2c3d4e5f6a7b8c9d0e1f2\x.exe`},
		{"${DIR}/a1b2c3d4e5f6a7b8c9d0e1f2/x", "${DIR}/a1b2c3d4e5f6a7b8c9d0e1f2/x"},
		{"/srv/ghp_a1b2c3d4e5f6a7b8c9d0/x", "/srv/[redacted]/x"},
		{"a1b2c3d4e5f6a7b8c9d0e1f2", "[redacted]"},
		{"--key=a1b2c3d4e5f6a7b8c9d0e1f2", "--key=[redacted]"},
	} {
		if got := (&masker{}).arg("", c.raw); got != c.shown {
			t.Errorf("%s is shown as %s", c.raw, got)
		}
	}
}
