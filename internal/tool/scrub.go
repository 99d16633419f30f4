package tool

import (
	"magi-code/internal/secret"
	"magi-code/internal/untrusted"
)

// Scrubbed removes known secrets from foreign text that may still hold escape sequences and hidden characters. They are kept, unless
// a secret shows once they are gone (a search that colours what it found tears it apart, and whoever cleans the text for a screen
// would put it together again): then they stay gone.
func Scrubbed(s *secret.Scrubber, text string) string {
	if s == nil {
		return text
	}
	text = s.Text(text)
	if clean := untrusted.Text(text); clean != text {
		if again := s.Text(clean); again != clean {
			return again
		}
	}
	return text
}
