//go:build !linux

package filestate_test

import (
	"errors"

	"codehand/filestate"
)

func childLimited(*filestate.Ledger, string) error { return errors.ErrUnsupported }

// childDisk needs FUSE.
func childDisk(string, string) error { return errors.ErrUnsupported }
