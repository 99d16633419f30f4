package hook

// playUnixRole has no roles: the tests that start processes with them need a Unix system.
func playUnixRole(string, []string) {}
