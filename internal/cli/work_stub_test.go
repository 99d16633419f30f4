package cli

import "testing"

func testSubagents(t *testing.T, zoo string) {}
func testCatalog(t *testing.T, zoo string)   {}
