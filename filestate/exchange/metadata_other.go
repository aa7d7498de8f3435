//go:build !linux && !darwin

package exchange

import (
	"io/fs"
	"os"

	"codehand/filestate/fault"
)

// CopyMetadata gives to the mode of from. Owner and attributes are the system's here: a new file in a
// directory gets those of the directory.
func CopyMetadata(to, from *os.File, s fault.Check) (lost []string, at fault.Step, err error) {
	info, err := from.Stat()
	if err != nil {
		return nil, fault.Metadata, err
	}
	if err := s.Before(fault.Mode); err != nil {
		return nil, fault.Mode, err
	}
	return nil, fault.Mode, CopyMode(to, info.Mode())
}

// Privileges are nothing here: no write takes anything from a file.
type Privileges struct{}

// PrivilegesOf reads nothing.
func PrivilegesOf(*os.File) (Privileges, error) { return Privileges{}, nil }

// Restore does nothing.
func (Privileges) Restore(*os.File) (lost []string, changed bool) { return nil, false }

// CopyMode sets what the system has of a mode.
func CopyMode(to *os.File, want fs.FileMode) error { return to.Chmod(want.Perm()) }
