//go:build unix

package audit

import (
	"io/fs"
	"syscall"
)

// noFollow makes an open fail if a link stands at the name.
const noFollow = syscall.O_NOFOLLOW

// openToOthers says whether others may look into a directory.
func openToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
