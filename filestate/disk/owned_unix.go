//go:build linux || darwin

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

// OwnedByUs says whether a file belongs to the user of this process.
func OwnedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
