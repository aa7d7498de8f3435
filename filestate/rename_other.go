//go:build !linux && !darwin

package filestate

import (
	"errors"
	"os"
)

// renameNew renames without replacing. errors.ErrUnsupported: this system cannot.
func renameNew(*os.Root, string, string) error { return errors.ErrUnsupported }

// swap gives two names of a directory each other's file, in one step. errors.ErrUnsupported: this system cannot.
func swap(*os.Root, string, string) error { return errors.ErrUnsupported }
