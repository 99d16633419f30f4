// Command magi-code is a terminal coding agent with a careful MCP client.
package main

import (
	"os"

	"magi-code/internal/cli"
)

func main() { os.Exit(cli.Main()) }
