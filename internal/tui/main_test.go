package tui

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if s := os.Getenv("TUI_DEMO"); s != "" {
		os.Exit(demo(s))
	}
	goleak.VerifyTestMain(m)
}
