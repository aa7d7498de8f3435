//go:build !linux && !darwin

package exchange

import (
	"errors"
	"os"
)

// RenameNew renames without replacing. errors.ErrUnsupported: this system cannot.
func RenameNew(*os.Root, string, string) error { return errors.ErrUnsupported }

// Swap gives two names of a directory each other's file, in one step. errors.ErrUnsupported: this system cannot.
func Swap(*os.Root, string, string) error { return errors.ErrUnsupported }
