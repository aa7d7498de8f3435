//go:build unix

package filestate

import (
	"os"
	"syscall"
)

// writeFlags open a file for writing into it, and follow no link.
const writeFlags = os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC
