//go:build !linux

package shell

import (
	"errors"
	"os"
)

// punch has no portable form, so a command with more output than is kept is ended.
func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }
