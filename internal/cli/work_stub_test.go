package cli
import "testing"
func testCodeMode(t *testing.T, zoo string) {}
func testHooks(t *testing.T, zoo string) {}
func testSubagents(t *testing.T, zoo string) {}
func testCatalog(t *testing.T, zoo string) {}
