//go:build !linux && !darwin

package filestate

import (
	"io/fs"
	"os"
)

// copyMetadata gives to the mode of from. Owner and attributes are the system's here: a new file in a
// directory gets those of the directory.
func copyMetadata(to, from *os.File, s steps) (lost []string, at step, err error) {
	info, err := from.Stat()
	if err != nil {
		return nil, stepRead, err
	}
	if err := s.before(stepMode); err != nil {
		return nil, stepMode, err
	}
	return nil, stepMode, copyMode(to, info.Mode())
}

func copyMode(to *os.File, want fs.FileMode) error { return to.Chmod(want.Perm()) }

// ownedByUs is never sure here.
func ownedByUs(fs.FileInfo) bool { return false }
