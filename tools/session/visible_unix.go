//go:build unix

package session

import (
	"os"
	"syscall"
)

// listFlags open a directory and nothing else. Without O_NONBLOCK a FIFO would wait for its other end first.
const listFlags = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK | syscall.O_NOCTTY
