//go:build !linux

package sandbox

import "os"

// A Shut is a file or directory of this user's that this user could not reach.
type Shut struct{}

// Unshut opens nothing: no level here holds what commands make.
func Unshut(string, string, os.FileMode) []Shut { return nil }

// Again does nothing.
func (Shut) Again() {}
