//go:build !windows && !linux && !darwin

package safefile

import "errors"

// renameNew would rename unless path exists; this system has no such call.
func renameNew(string, string) error {
	return errors.New("no rename without replacing")
}
