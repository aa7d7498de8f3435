//go:build !linux

package filestate

import (
	"errors"
	"os"
)

// renameNew renames without replacing. errors.ErrUnsupported: this system cannot.
func renameNew(*os.Root, string, string) error { return errors.ErrUnsupported }
