package mcp

import "io"

// childServer is what the test binary does when it is run as a server.
func childServer(mode string, in io.Reader, out, stderr io.Writer) int { return 1 }
