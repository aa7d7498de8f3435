//go:build unix

package lock

import (
	"os"
	"syscall"
)

// lockFlags open or make a lock file, never behind a link.
const lockFlags = os.O_CREATE | os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
