package cli

import "testing"

// TestStampedVersion: what Go stamps from git becomes a version without v, with the commit where there is no tag.
func TestStampedVersion(t *testing.T) {
	for module, want := range map[string]string{
		"":                                     version,
		"(devel)":                              version,
		"v1.2.3":                               "1.2.3",
		"v1.2.4-0.20261201045300-5a948d2f93dd": "1.2.4-0.20261201045300-5a948d2f93dd",
		"v0.0.0-20261201045300-5a948d2f93dd":   version + "+5a948d2f93dd",
		"v0.0.0-20261201045300-5a948d2f93dd+dirty":     version + "+5a948d2f93dd.dirty",
		"v0.105.1-0.20261201045300-5a948d2f93dd+dirty": "0.105.1-0.20261201045300-5a948d2f93dd+dirty",
	} {
		if got := stampedVersion(module); got != want {
			t.Errorf("%q gives %q, not %q", module, got, want)
		}
	}
}
