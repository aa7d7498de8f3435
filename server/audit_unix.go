//go:build unix

package server

import (
	"io/fs"
	"syscall"
)

// noFollow makes an open fail if a link stands at the name.
const noFollow = syscall.O_NOFOLLOW

// auditOpen says whether others may look into a directory.
func auditOpen(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
