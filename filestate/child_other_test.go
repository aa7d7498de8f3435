//go:build !linux

package filestate_test

import (
	"errors"

	"codehand/filestate"
)

func childLimited(*filestate.Ledger, string) error { return errors.ErrUnsupported }
