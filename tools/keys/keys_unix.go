//go:build unix

package keys

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a file that others may read, or that another user owns.
func private(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return errors.New("belongs to another user")
	case info.Mode().Perm()&0o077 != 0:
		return errors.New("can be read by others; run chmod 600 on it")
	}
	return nil
}
